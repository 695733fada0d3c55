package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	guestrelay "github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRelayOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		rt   roundTripper
		want string
	}{
		"nothing taken": {
			func(*http.Request) (*http.Response, error) { return nil, boom }, "not sent: boom",
		},
		"a byte taken": {func(r *http.Request) (*http.Response, error) {
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
			return nil, boom
		}, "failed: boom"},
		"a copy taken": {func(r *http.Request) (*http.Response, error) {
			body, err := r.GetBody()
			if err == nil {
				_, _ = io.ReadAll(body)
			}
			return nil, boom
		}, "failed: boom"},
		"taken and late": {func(r *http.Request) (*http.Response, error) {
			_, _ = io.ReadAll(r.Body)
			<-r.Context().Done()
			return nil, boom
		}, "timeout: context deadline exceeded"},
		"given up": {func(r *http.Request) (*http.Response, error) {
			return nil, boom
		}, "canceled: context canceled"},
	} {
		r := relay{base: "http://127.0.0.1:1", transport: tt.rt}
		ctx, cancel := context.WithCancel(t.Context())
		if strings.HasPrefix(tt.want, "timeout") {
			ctx, cancel = context.WithTimeout(t.Context(), 1)
		} else if strings.HasPrefix(tt.want, "canceled") {
			cancel()
		}
		got := string(r.answer(ctx, []byte("http://127.0.0.1:1/\nA: b\n\n[]"), 10))
		cancel()
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Over HTTP/2 too, if an answer begins early and stalls, it ends with its
// context. The server takes no more of the request, so its writer waits.
func TestRelayOfAnEarlyAnswerEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "abc")
		_ = http.NewResponseController(w).Flush()
		time.AfterFunc(10*time.Millisecond, cancel) // most often the answer has begun by then
		<-r.Context().Done()
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	transport := &http.Transport{Protocols: server.Config.Protocols}
	defer transport.CloseIdleConnections()
	r := relay{base: baseOf(server.URL), transport: transport}
	message := fmt.Sprintf("%s/\n\n%s", server.URL, strings.Repeat("x", 24<<20))
	answer := string(r.answer(ctx, []byte(message), 1<<20))
	if !strings.HasPrefix(answer, "canceled: ") {
		t.Errorf("the relay's answer: %.200q, want \"canceled: …\"", answer)
	}
}

// The host's relay is over net/http.
var stray = transporttest.Exception{
	Case:   "stray answer",
	Reason: "net/http may take an answer that nobody asked for as that of the next request",
}

// TestReactorConformance runs the conformance test of transports over the
// reactor's transport, in a guest of its own for each server.
func TestReactorConformance(t *testing.T) {
	path := filepath.Join(scratch, "relay.wasm")
	runCmd(t, wasip1(exec.Command(testenv.Need(t, "go", "go"),
		"test", "-c", "-ldflags=-s -w", "-o", path, "./reactor")))
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig())
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	// The relay of the running case. Cases run one at a time.
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
	startOver := func(t *testing.T, url string, below *http.Transport) upstash.Transport {
		current.base, current.transport = baseOf(url), below
		return startGuest(t, runtime, guest, below)
	}
	start := func(t *testing.T, url string, roots *x509.CertPool) upstash.Transport {
		return startOver(t, url, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}})
	}
	t.Run("plain", func(t *testing.T) {
		transporttest.Run(t, func(t *testing.T, url string) upstash.Transport { return start(t, url, nil) }, stray)
	})
	t.Run("TLS", func(t *testing.T) { transporttest.RunTLS(t, start, stray) })
	t.Run("HTTP2", func(t *testing.T) {
		transporttest.RunHTTP2(t, func(t *testing.T, url string) upstash.Transport {
			below := &http.Transport{Protocols: new(http.Protocols)}
			below.Protocols.SetUnencryptedHTTP2(true)
			return startOver(t, url, below)
		})
	})
}

// guestTransport is the reactor's transport in a guest that runs until Close.
type guestTransport struct {
	*guestrelay.Transport

	giveUp context.CancelFunc // ends the host's context and so all calls
	below  *http.Transport
	out    *os.File // a pipe with a buffer: a guest can write to it and end
	ended  chan struct{}
}

func startGuest(t *testing.T, runtime wazero.Runtime, guest wazero.CompiledModule,
	below *http.Transport,
) *guestTransport {
	t.Helper()
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, to := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	g := &guestTransport{guestrelay.New(to, out), cancel, below, out, make(chan struct{})}
	config := wazero.NewModuleConfig().WithName("").
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader).
		WithArgs("relay", "-test.run=^TestRelay$").WithEnv(guestrelay.Env, "1").
		WithStdin(in).WithStdout(stdout).WithStderr(stdout)
	go func() {
		defer close(g.ended)
		_, err := runtime.InstantiateModule(ctx, guest, config)
		_ = in.CloseWithError(fmt.Errorf("the guest has ended: %w", err))
		_ = stdout.Close()
	}()
	return g
}

// RoundTrip makes the guest send the request. While a guest waits for its host,
// it cannot be told of the end of ctx. RoundTrip tells the host instead.
func (g *guestTransport) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			g.giveUp()
		}
	})
	defer stop()
	return g.Transport.RoundTrip(ctx, req, resp)
}

// Close ends the guest and the connections of its relay.
func (g *guestTransport) Close() error {
	_ = g.End()
	<-g.ended
	g.giveUp()
	_ = g.out.Close()
	g.below.CloseIdleConnections()
	return nil
}
