package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/format"
)

// A file that cannot be read may be anything: it is not written over, though its
// folder allows that. Only a thread's own user is changed, because for root no file
// is unreadable.
func TestKeepsWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	file, newer := filepath.Join(dir, "others"), filepath.Join(dir, "new")
	for name, mode := range map[string]os.FileMode{file: 0, newer: 0o644} {
		if err := os.WriteFile(name, []byte(format.FrameMagic+"of another user"), mode); err != nil {
			t.Fatal(err)
		}
	}
	const nobody = 65534
	for dir := dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with the goroutine
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		errs <- mayOverwrite(file, format.FrameMagic, "saved filter", orForce)
		errs <- keepsBackup(newer, file)
	}()
	for range 2 {
		err := <-errs
		if err == nil || !strings.Contains(err.Error(), "cannot be read, and was left as it is: permission denied: name") {
			t.Errorf("%v, want a refusal", err)
		}
	}
}
