// Command giveback knows which user names are taken, if names are given back
// when an account is closed. A Bloom filter cannot forget a name, but a
// [bloom.Cuckoo] can. Its "taken" is a false positive 1 time in 1,000, and its
// "free" is certain.
//
// Each name has a key in the database, which decides. It also enforces the rule
// of a Cuckoo: remove only what was added, and only as often. If names stay
// taken forever, see examples/usernames.
//
//	go run ./examples/giveback
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	// Whoever types waits a second or two for a database that stalls, no longer.
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
	client := server.Client(opts...)
	defer client.Close()
	// Users choose the names: with the usual seed anybody can compute a few that make a
	// free name look taken. ParseUint refuses an UPBLOOM_SEED that is not set; only here,
	// where the database ends with the program, that is the usual seed.
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("UPBLOOM_SEED"), "0"), 0, 64)
	if err != nil {
		return err
	}
	n, err := newNames(client, seed)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context, string) (bool, error)
	}{
		{"taken", n.take},
		{"taken again", n.take},
		{"free", n.looksFree},
		{"given back", n.giveBack},
		{"free", n.looksFree},
		{"taken", n.take},
	} {
		ok, err := step.do(ctx, "ada")
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "ada %s: %v\n", step.what, ok)
	}
	return nil
}

// names knows the taken names. The filter holds a copy of each name with a key.
// After a crash or a lost reply it may hold one copy more, a false positive,
// but never one less.
type names struct {
	client *upstash.Client
	taken  *bloom.Cuckoo
}

func newNames(client *upstash.Client, seed uint64) (*names, error) {
	taken, err := bloom.NewCuckoo(client, "usernames", bloom.CuckooConfig{
		Capacity: 10_000, FPRate: 0.001, Seed: seed, // names taken at the same time
		MissingIsEmpty: true, // before the first name; turn eviction off
	})
	return &names{client, taken}, err
}

// looksFree reports whether a name looks free. It costs one command. False may
// be a false positive: [names.take] finds out.
func (n *names) looksFree(ctx context.Context, name string) (bool, error) {
	taken, err := n.taken.Exists(ctx, name)
	return err == nil && !taken, err
}

// take claims a name and reports whether it was free. It adds the copy first,
// because no taken name may look free. If someone else has the name, it removes
// the copy again. If many try to take a name in the same moment, some get
// [bloom.ErrFull], because a name has room for about eight copies.
func (n *names) take(ctx context.Context, name string) (bool, error) {
	if _, err := n.taken.Add(ctx, name); err != nil {
		return false, err
	}
	r, err := n.client.Do(ctx, upstash.Cmd("SET", "username:"+name, "1", "NX"))
	if err != nil {
		return false, err
	}
	if !r.IsNil() {
		return true, r.Err()
	}
	_, err = n.taken.Remove(ctx, name)
	return false, err
}

// giveBack frees a name and reports whether it was taken. Whoever deletes the
// key removes the copy. Two who give a name back at the same time then remove
// only one copy.
func (n *names) giveBack(ctx context.Context, name string) (bool, error) {
	r, err := n.client.Do(ctx, upstash.Cmd("DEL", "username:"+name))
	if err != nil {
		return false, err
	}
	if deleted, err := r.Int64(); err != nil || deleted == 0 {
		return false, err
	}
	_, err = n.taken.Remove(ctx, name)
	return true, err
}
