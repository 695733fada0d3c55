//go:build unix

package recording

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A recording into a link or a pipe leaves what they are: for root, /dev/null
// is a file that can be replaced.
func TestReplaceFileKeepsLinksAndPipes(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, content := range []string{"first", "again"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, kind := range map[string]fs.FileMode{file: 0, link: fs.ModeSymlink, pipe: fs.ModeNamedPipe} {
			if err := replaceFile(name, []byte(content)); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(name); err != nil || info.Mode().Type() != kind {
				t.Fatalf("%s is now %v, %v, want %v", name, info.Mode(), err, kind)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("the file holds %q, %v, want %q", got, err, content)
		}
		got := make([]byte, len(content))
		if _, err := reader.Read(got); err != nil || string(got) != content {
			t.Errorf("the pipe carried %q, %v, want %q", got, err, content)
		}
	}
}
