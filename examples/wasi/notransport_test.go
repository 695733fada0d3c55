package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// Without a transport, a guest gets an error with the reason, after one
// attempt.
func TestNoTransport(t *testing.T) {
	path := filepath.Join(scratch, "notransport.wasm")
	runCmd(t, wasip1(exec.Command(testenv.Need(t, "go", "go"),
		"build", "-ldflags=-s -w", "-o", path, "./testdata/notransport")))
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(scratch, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	var out bytes.Buffer
	_, err = runtime.InstantiateWithConfig(ctx, mustRead(t, path),
		wazero.NewModuleConfig().WithStdout(&out).WithStderr(&out))
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	// errors.Is ErrNoTransport, SafeToRetry, attempts, and the text
	if got := out.String(); !strings.HasPrefix(got, "true true 1 ") || !strings.Contains(got, "WithTransport") {
		t.Errorf("the guest printed %q, want \"true true 1\" and the name of WithTransport", got)
	}
}
