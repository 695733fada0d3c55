// Command usernames answers "is this name taken?" while a user types into a
// form. It asks a copy of a filter in the memory of the process, so most
// keystrokes cost no request. A "no" of the copy is at most five seconds old. A
// name is taken in the database, by SET NX, which decides. The names stay taken
// forever. If they are given back, see examples/giveback.
//
//	go run ./examples/usernames
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
	for i := range 1000 {
		if ok, err := n.take(ctx, fmt.Sprintf("user%d", i)); err != nil || !ok {
			return fmt.Errorf("user%d: taken: %v, %w", i, !ok, err)
		}
	}
	if err := n.taken.Refresh(ctx); err != nil {
		return err
	}
	server.ResetStats()
	free := 0
	for i := range 100_000 {
		if ok, err := n.looksFree(ctx, fmt.Sprintf("typed%d", i)); err != nil {
			return err
		} else if ok {
			free++
		}
	}
	asked := server.Stats().Commands
	again, err := n.take(ctx, "user7")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of 100000 typed names look free, for %d commands\n", free, asked)
	fmt.Fprintf(out, "user7, taken once more: %v\n", again)
	return nil
}

// names knows the taken names. Each has a key in the database, which decides.
// The filter holds them all and is asked first.
type names struct {
	client *upstash.Client
	taken  *bloom.Mirror
}

func newNames(client *upstash.Client, seed uint64) (*names, error) {
	filter, err := bloom.New(client, "usernames", bloom.Config{
		Capacity: 1_000_000, FPRate: 0.01, Seed: seed,
		MissingIsEmpty: true, // before the first name
	})
	if err != nil {
		return nil, err
	}
	mirror, err := bloom.NewMirror(filter, bloom.MirrorConfig{MaxStale: 5 * time.Second})
	return &names{client, mirror}, err
}

// looksFree reports whether a name is free, for the form. A "maybe" of the
// filter, a false positive 1 time in 100, costs a look into the database. The
// answer may be five seconds old.
func (n *names) looksFree(ctx context.Context, name string) (bool, error) {
	maybe, err := n.taken.Exists(ctx, name)
	if err != nil || !maybe {
		return err == nil, err
	}
	r, err := n.client.Do(ctx, upstash.Cmd("EXISTS", "username:"+name))
	if err != nil {
		return false, err
	}
	there, err := r.Int64()
	return there == 0, err
}

// take claims a name for good and reports whether it was free. It adds the name
// to the filter first. If it fails after that, the name is a false positive. In
// the other order a taken name could look free.
func (n *names) take(ctx context.Context, name string) (bool, error) {
	if _, err := n.taken.AddThrough(ctx, name); !bloom.InFilter(err) {
		return false, err
	}
	r, err := n.client.Do(ctx, upstash.Cmd("SET", "username:"+name, "1", "NX"))
	if err != nil {
		return false, err
	}
	return !r.IsNil(), r.Err()
}
