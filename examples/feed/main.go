// Command feed shows a user the videos that they have not watched yet. It looks
// up 200 candidates in the user's filter by one request, which is one billed
// command. Another request, of one command a user, tells which of a hundred
// users have seen a video.
//
//	go run ./examples/feed
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "feed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	server, err := upstashtest.Start() // upstash.FromEnv for your database
	if err != nil {
		return err
	}
	defer server.Close()
	f := feed{server.Client()}
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

	users := make([]string, 100)
	for i := range users {
		users[i] = fmt.Sprintf("user-%d", i)
	}
	if err := f.watched(ctx, "user-7", []string{"video-1"}); err != nil {
		return err
	}
	server.ResetStats()
	saw, err := f.whoSaw(ctx, "video-1", users)
	if err != nil {
		return err
	}
	used = server.Stats()
	fmt.Fprintf(out, "video-1: seen by %v of %d users: %d request, %d commands\n",
		saw, len(users), used.Requests, used.Commands)
	return nil
}

// feed knows what each user has watched since the user's filter was made. That
// is at most 90 days ago: then the filter expires, and all that the user has
// watched is new again, that of the last hour too.
type feed struct{ client *upstash.Client }

// filter returns a user's filter, for about a thousand videos, which take 2 KB.
// A handle costs about a microsecond: each request makes its own.
func (f feed) filter(user string) (*bloom.Filter, error) {
	return bloom.New(f.client, "watched:"+user, bloom.Config{
		Capacity: 1000, FPRate: 0.001, TTL: 90 * 24 * time.Hour,
		MissingIsEmpty: true, // a user who has watched nothing has no filter
	})
}

// watched records what a user has watched.
func (f feed) watched(ctx context.Context, user string, videos []string) error {
	filter, err := f.filter(user)
	if err != nil {
		return err
	}
	_, err = filter.AddAll(ctx, videos)
	return err
}

// fresh returns the candidates that a user has not watched. One in a thousand
// of them is left out, as a false positive.
func (f feed) fresh(ctx context.Context, user string, candidates []string) (fresh []string, err error) {
	filter, err := f.filter(user)
	if err != nil {
		return nil, err
	}
	seen, err := filter.ExistsAll(ctx, candidates)
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

// whoSaw returns the users who have watched a video.
func (f feed) whoSaw(ctx context.Context, video string, users []string) (saw []string, err error) {
	filters := make([]*bloom.Filter, len(users))
	for i, user := range users {
		if filters[i], err = f.filter(user); err != nil {
			return nil, err
		}
	}
	answers, err := bloom.ExistsIn(ctx, video, filters...)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		if a.Yes {
			saw = append(saw, users[i])
		}
	}
	return saw, nil
}
