package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Verdict is the guest's answer about an event.
type Verdict int32

// The values are the results of the guest's export seen.
const (
	New       Verdict = 0
	Seen      Verdict = 1
	Uncertain Verdict = 2

	failed Verdict = -1 // the guest's export message says why
)

func (v Verdict) String() string {
	switch v {
	case New:
		return "new"
	case Seen:
		return "seen"
	case Uncertain:
		return "uncertain"
	}
	return fmt.Sprintf("Verdict(%d)", int32(v))
}

// Config describes a guest.
type Config struct {
	_ struct{}

	// Wasm is the reactor module.
	Wasm []byte
	// CacheDir keeps the compiled module from one process to the next. If it is
	// empty, Load compiles the module each time, which takes about two seconds.
	CacheDir string
	// URL and Token name the database. The guest can reach no other host.
	URL, Token string
	// Transport carries the guest's requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Guest is a reactor. Make one with Load. It is safe for concurrent use and
// must not be copied. It runs one call at a time: load several guests to run
// several calls at once.
type Guest struct {
	turn    chan struct{} // has room for the running call
	grace   time.Duration
	runtime wazero.Runtime
	code    wazero.CompiledModule
	config  wazero.ModuleConfig

	// module is nil after a call trapped or was ended: its memory could be in
	// any state. The next call starts another one.
	module api.Module
}

// grace is how long a guest may go on after the end of its caller's context, to
// notice and say what it knows. Then it is ended.
const grace = 200 * time.Millisecond

// Load compiles and starts a reactor. Close it after use.
func Load(ctx context.Context, cfg Config) (*Guest, error) {
	config := wazero.NewRuntimeConfig()
	if cfg.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cfg.CacheDir)
		if err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(cache)
	}
	// Without this, a spinning guest would outlive its context.
	config = config.WithCloseOnContextDone(true)
	g := &Guest{
		turn: make(chan struct{}, 1), grace: grace,
		runtime: wazero.NewRuntimeWithConfig(ctx, config),
	}
	err := g.prepare(ctx, cfg)
	if err == nil {
		err = g.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close(context.WithoutCancel(ctx)))
	}
	return g, nil
}

// prepare compiles the module and makes its imports.
func (g *Guest) prepare(ctx context.Context, cfg Config) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, g.runtime); err != nil {
		return err
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	relay := &relay{base: baseOf(cfg.URL), transport: cfg.Transport}
	_, err := g.runtime.NewHostModuleBuilder("upbloom").
		NewFunctionBuilder().WithFunc(relay.exchange).Export("exchange").
		Instantiate(ctx)
	if err != nil {
		return err
	}
	// By default wazero's clocks stand still and its randomness repeats. A
	// guest needs real ones for its pauses between retries.
	g.config = wazero.NewModuleConfig().
		WithName(""). // the one before may still be closing
		WithStartFunctions("_initialize").
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().
		WithRandSource(rand.Reader).
		WithStderr(os.Stderr).
		WithEnv("UPSTASH_REDIS_REST_URL", cfg.URL).
		WithEnv("UPSTASH_REDIS_REST_TOKEN", cfg.Token)
	g.code, err = g.runtime.CompileModule(ctx, cfg.Wasm)
	return err
}

// start starts the module.
func (g *Guest) start(ctx context.Context) (err error) {
	g.module, err = g.runtime.InstantiateModule(ctx, g.code, g.config)
	return err
}

// Close frees the module and its memory.
func (g *Guest) Close(ctx context.Context) error { return g.runtime.Close(ctx) }

// Seen adds id to the guest's filter and returns whether it was there before.
// The call takes at most ctx's remaining time, or a minute if ctx has no
// deadline, including the wait for other calls. When ctx ends, so does the
// call: at once if it still waits, and otherwise within 0.2 seconds. An id has
// 1 byte to 1 MiB. After an error the id may be in the filter.
func (g *Guest) Seen(ctx context.Context, id string) (Verdict, error) {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-g.turn }()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	guestCtx, cancel := withGrace(ctx, g.grace)
	defer cancel()
	verdict, err := g.seen(guestCtx, id)
	if err != nil && guestCtx.Err() != nil {
		return 0, fmt.Errorf("wasi: the guest was ended: %w", ctx.Err())
	}
	return verdict, err
}

// callerKey is the key of the caller's own context in that of the guest.
type callerKey struct{}

// callerOf returns the caller's context if ctx belongs to a guest, else ctx.
func callerOf(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
}

// withGrace returns a context that ends d after ctx does, or by cancel.
func withGrace(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(
		context.WithValue(context.WithoutCancel(ctx), callerKey{}, ctx))
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(d)
		defer late.Stop()
		select {
		case <-late.C:
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// seen is Seen in the guest, which runs until ctx ends.
func (g *Guest) seen(ctx context.Context, id string) (Verdict, error) {
	if g.module == nil {
		if err := g.start(ctx); err != nil {
			return 0, err
		}
	}
	left := time.Minute
	if deadline, ok := callerOf(ctx).Deadline(); ok {
		left = time.Until(deadline)
	}
	address, err := g.call(ctx, "room", uint64(len(id)))
	if err != nil {
		return 0, err
	}
	if address == 0 {
		return 0, fmt.Errorf("wasi: the guest takes no id of %d bytes: send a digest of it", len(id))
	}
	if !g.module.Memory().WriteString(uint32(address), id) {
		return 0, errors.New("wasi: the guest's room is outside its memory")
	}
	result, err := g.call(ctx, "seen", uint64(len(id)), uint64(max(left.Milliseconds(), 0)))
	if err != nil {
		return 0, err
	}
	switch verdict := Verdict(api.DecodeI32(result)); verdict {
	case New, Seen, Uncertain:
		return verdict, nil
	case failed:
		return 0, g.failure(ctx)
	default:
		return 0, fmt.Errorf("wasi: the guest returned %d, which is no verdict", int32(verdict))
	}
}

// failure reads the text of the guest's last error.
func (g *Guest) failure(ctx context.Context) error {
	where, err := g.call(ctx, "message")
	if err != nil {
		return err
	}
	text, ok := g.module.Memory().Read(uint32(where>>32), uint32(where))
	if !ok {
		return errors.New("wasi: the guest's message is outside its memory")
	}
	return errors.New(string(text))
}

// call runs an export. After an error the module cannot be used again.
func (g *Guest) call(ctx context.Context, name string, params ...uint64) (uint64, error) {
	results, err := g.module.ExportedFunction(name).Call(ctx, params...)
	if err != nil {
		_ = g.module.Close(ctx)
		g.module = nil
		return 0, fmt.Errorf("wasi: %s: %w", name, err)
	}
	return results[0], nil
}
