package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Verdict is the guest's answer about an event.
type Verdict int32

// The values are those that the guest's export seen returns.
const (
	New       Verdict = 0
	Seen      Verdict = 1
	Uncertain Verdict = 2
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

// Config is what a guest needs.
type Config struct {
	_ struct{}

	// Wasm is the reactor module.
	Wasm []byte
	// CacheDir keeps the compiled module from one process to the next. If it is
	// empty, Load compiles the module each time, which takes about two seconds.
	CacheDir string
	// URL and Token are those of the database. The guest can reach no other host.
	URL, Token string
	// Transport carries the guest's requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Guest is a running reactor. Make one with Load. It is safe for concurrent use
// and must not be copied. It runs one call at a time: load several guests to
// run several calls at once.
type Guest struct {
	mu      sync.Mutex
	runtime wazero.Runtime
	module  api.Module
}

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
	g := &Guest{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if err := g.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, g.Close(ctx))
	}
	return g, nil
}

func (g *Guest) start(ctx context.Context, cfg Config) error {
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
	// By default wazero's clocks stand still and its randomness repeats. A guest
	// that pauses between retries needs real ones.
	g.module, err = g.runtime.InstantiateWithConfig(ctx, cfg.Wasm, wazero.NewModuleConfig().
		WithStartFunctions("_initialize").
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().
		WithRandSource(rand.Reader).
		WithStderr(os.Stderr).
		WithEnv("UPSTASH_REDIS_REST_URL", cfg.URL).
		WithEnv("UPSTASH_REDIS_REST_TOKEN", cfg.Token))
	return err
}

// Close frees the module and its memory.
func (g *Guest) Close(ctx context.Context) error { return g.runtime.Close(ctx) }

// Seen adds id to the guest's filter and returns whether it was there before.
// The call has ctx's remaining time, or a minute if ctx has no deadline, and it
// ends when ctx ends. An id has at most 1 MiB.
func (g *Guest) Seen(ctx context.Context, id string) (Verdict, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}

	left := time.Minute
	if deadline, ok := ctx.Deadline(); ok {
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
	if verdict := Verdict(api.DecodeI32(result)); verdict >= 0 {
		return verdict, nil
	}
	return 0, g.failure(ctx)
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

// call runs an export. After an error the guest has trapped and cannot be used
// again.
func (g *Guest) call(ctx context.Context, name string, params ...uint64) (uint64, error) {
	results, err := g.module.ExportedFunction(name).Call(ctx, params...)
	if err != nil {
		return 0, fmt.Errorf("wasi: %s: %w", name, err)
	}
	return results[0], nil
}
