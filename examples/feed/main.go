// Command feed shows users the videos they have not watched in the last 90
// days. It looks up 200 candidates in the user's window with one request, which
// is one billed command.
//
//	go run ./examples/feed
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	// A page is shown without the feed after a second or two.
	err := run(context.Background(), os.Stdout, upstash.WithTimeout(time.Second), upstash.WithRetry(1))
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts ...upstash.Option) error {
	server, err := upstashtest.Start() // upstash.FromEnv for your database
	if err != nil {
		return err
	}
	defer server.Close()
	f := feed{server.Client(opts...)}
	defer f.client.Close()
	candidates := make([]string, 200)
	for i := range candidates {
		candidates[i] = fmt.Sprintf("video-%d", i)
	}
	if err := f.watched(ctx, "ada", candidates[:50]); err != nil {
		return err
	}
	server.ResetStats()
	fresh, err := f.fresh(ctx, "ada", candidates)
	if err != nil {
		return err
	}
	used := server.Stats()
	fmt.Fprintf(out, "ada: %d of %d candidates are new to her: %d request, %d command, %d bytes sent\n",
		len(fresh), len(candidates), used.Requests, used.Commands, used.BytesIn)
	return nil
}

// feed knows what each user has watched in the last 90 days. Older videos are
// forgotten within 270 days and 15 s, all of a pane at once. With more Panes
// there are fewer of them in each, and the window takes more memory.
//
// The window of a user who has left goes away by itself, three Spans after the
// last video (ExpireIdle). A bloom.Filter for each user does not: no Add prolongs a
// TTL, so call its Expire whenever the user comes, which is a request of its own and
// 4 billed commands. Without that, filters of users who left stay for ever.
type feed struct{ client *upstash.Client }

// window returns a user's window, for about a thousand videos in 90 days, which
// take 6 KB. A handle costs about a microsecond, so each request makes its own.
func (f feed) window(user string) (*bloom.Window, error) {
	return bloom.NewWindow(f.client, "watched:"+user, bloom.WindowConfig{
		Capacity: 1000, FPRate: 0.001, Span: 90 * 24 * time.Hour,
		// The window of a user who has not come for long expires. A user without
		// a window has watched nothing.
		ExpireIdle: true,
	})
}

// watched records what a user has watched.
func (f feed) watched(ctx context.Context, user string, videos []string) error {
	window, err := f.window(user)
	if err != nil {
		return err
	}
	if _, err = window.AddAll(ctx, videos); bloom.InFilter(err) {
		return nil // perhaps an answer was lost, but all of them are recorded
	}
	return err
}

// fresh returns the candidates a user has not watched. It leaves out one in a
// thousand of them, as a false positive.
func (f feed) fresh(ctx context.Context, user string, candidates []string) (fresh []string, err error) {
	window, err := f.window(user)
	if err != nil {
		return nil, err
	}
	seen, err := window.ExistsAll(ctx, candidates)
	if err != nil {
		return nil, err
	}
	for i, video := range candidates {
		if !seen[i] {
			fresh = append(fresh, video)
		}
	}
	return fresh, nil
}
