//go:build unix && !js

package recording_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

// TestRecordAtAFullDisk: a partly written file must not replace the old one. A
// limit for the size of files stands for a full disk.
func TestRecordAtAFullDisk(t *testing.T) {
	server := upstashtest.NewServer(t)
	file := writeFile(t, "old")
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	low := before
	low.Cur = 64 << 10
	fake := faketest.Run(func(tb testing.TB) {
		c := recording.Record(tb, file, server.URL, server.Token)
		if _, err := c.Do(t.Context(), upstash.Cmd("SET", "a", strings.Repeat("v", 100<<10))); err != nil {
			t.Error(err)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
			t.Fatal(err)
		}
	})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	fake.WantFailures(t, "writing the recording: ")
	if got, err := os.ReadFile(file); string(got) != "old" {
		t.Errorf("after a full disk the file has %d bytes, %v, want the old 3", len(got), err)
	}
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".recording-*")); len(names) != 0 {
		t.Errorf("after a full disk %q are left, want no files", names)
	}
}
