package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	guestrelay "github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
)

const (
	noCancel = "a call to the host blocks the guest: only a deadline ends it"
	noStatus = "an answer that is too long comes without its status"
)

// TestReactorConformance runs the test of every transport over the reactor's,
// in a guest of its own for each server.
func TestReactorConformance(t *testing.T) {
	path := filepath.Join(scratch, "relay.wasm")
	runCmd(t, wasip1(exec.Command(testenv.Need(t, "go", "go"),
		"test", "-c", "-ldflags=-s -w", "-o", path, "./reactor")))
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig())
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	// The relay of the running case, of which there is one at a time.
	var current relay
	_, err := runtime.NewHostModuleBuilder("upbloom").
		NewFunctionBuilder().WithFunc(current.exchange).Export("exchange").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	guest, err := runtime.CompileModule(ctx, mustRead(t, path))
	if err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T, url string) upstash.Transport {
		current.base, current.transport = baseOf(url), &http.Transport{}
		return startGuest(t, runtime, guest, current.transport)
	}
	except := []transporttest.Exception{
		{Case: "limit/length, over", Reason: noStatus},
		{Case: "limit/chunked, over", Reason: noStatus},
		{Case: "limit/until close, over", Reason: noStatus},
		{Case: "limit/announced only", Reason: noStatus},
	}
	for _, stall := range []string{
		"before the header", "within the header", "within the body",
		"while it takes the request", "TLS handshake", "dial",
	} {
		except = append(except, transporttest.Exception{Case: "cancel/" + stall, Reason: noCancel})
	}
	transporttest.Run(t, start, except...)
}

// guestTransport is the reactor's transport in a guest that runs until Close.
type guestTransport struct {
	mu    sync.Mutex // the guest takes one call at a time
	to    *io.PipeWriter
	from  *bufio.Reader // of out, which has a buffer, as a guest's last words need
	out   *os.File
	below http.RoundTripper
	ended chan struct{}
}

func startGuest(t *testing.T, runtime wazero.Runtime, guest wazero.CompiledModule,
	below http.RoundTripper,
) *guestTransport {
	t.Helper()
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, to := io.Pipe()
	g := &guestTransport{to: to, from: bufio.NewReader(out), out: out, below: below, ended: make(chan struct{})}
	config := wazero.NewModuleConfig().WithName("").
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader).
		WithArgs("relay", "-test.run=^TestRelay$").WithEnv(guestrelay.Env, "1").
		WithStdin(in).WithStdout(stdout).WithStderr(stdout)
	go func() {
		defer close(g.ended)
		_, err := runtime.InstantiateModule(context.Background(), guest, config)
		_ = in.CloseWithError(fmt.Errorf("the guest has ended: %w", err))
		_ = stdout.Close()
	}()
	return g
}

// Close ends the guest and the connections of its relay.
func (g *guestTransport) Close() error {
	_ = g.to.Close()
	_, _ = io.Copy(io.Discard, g.from)
	<-g.ended
	_ = g.out.Close()
	g.below.(*http.Transport).CloseIdleConnections()
	return nil
}

func (g *guestTransport) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	call := guestrelay.Call{URL: req.URL, Body: req.Body, MaxResponse: req.MaxResponse}
	for _, h := range req.Header {
		call.Header = append(call.Header, [2]string{h.Name, h.Value})
	}
	if deadline, ok := ctx.Deadline(); ok {
		call.Timeout = max(time.Until(deadline), 1) // 0 would be none
	}
	if err := guestrelay.WriteCall(g.to, call); err != nil {
		return err
	}
	result, err := guestrelay.ReadResult(g.from)
	if err != nil {
		return err
	}
	resp.StatusCode = result.StatusCode
	resp.Body = append(resp.Body, result.Body...)
	for _, h := range result.Header {
		resp.SetHeader(h[0], h[1])
	}
	if !result.Failed {
		return nil
	}
	err = errors.New(result.Error)
	switch result.Cause {
	case guestrelay.TooLarge:
		err = upstash.ErrResponseTooLarge
	case guestrelay.DeadlineExceeded:
		err = context.DeadlineExceeded
	}
	if result.NotSent {
		return upstash.NotSent(err)
	}
	return err
}
