package upstash_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/upstash"
)

// TestRelay sends its standard input over the default transport, until the end
// of the input: internal/testkit/jstest has the conformance test at the other
// end.
func TestRelay(t *testing.T) {
	if os.Getenv(relay.Env) == "" {
		t.Skip("a part of the native test of internal/testkit/jstest")
	}
	var (
		in      = bufio.NewReader(pieces{os.Stdin})
		mu      sync.Mutex // of the output and of cancels
		cancels = map[int]context.CancelFunc{}
		group   sync.WaitGroup
	)
	for {
		call, err := relay.ReadCall(in)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if call.Cancel {
			mu.Lock()
			if cancel := cancels[call.ID]; cancel != nil { // else it has just ended
				cancel()
			}
			mu.Unlock()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		mu.Lock()
		cancels[call.ID] = cancel
		mu.Unlock()
		group.Go(func() {
			result := relayed(ctx, t, call)
			cancel()
			mu.Lock()
			defer mu.Unlock()
			delete(cancels, call.ID)
			if err := relay.WriteResult(os.Stdout, result); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func relayed(ctx context.Context, t *testing.T, call relay.Call) relay.Result {
	// The URL of a request is none of a database.
	at, err := url.Parse(call.URL)
	if err != nil {
		return relay.Result{ID: call.ID, Error: err.Error()}
	}
	return relay.RoundTrip(ctx, upstash.DefaultTransport(t, at.Scheme+"://"+at.Host), call)
}

// pieces reads 64 KB at most: on js every read costs a buffer of the host's as
// long as its own, and a pipe has no more than that.
type pieces struct{ r io.Reader }

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), 64<<10)]) }
