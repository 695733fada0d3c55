package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestShardedCreateCost(t *testing.T) {
	for databases := range 4 {
		var clients []*upstash.Client
		var servers []*upstashtest.Server
		for range databases + 1 {
			s := upstashtest.NewServer(t)
			servers, clients = append(servers, s), append(clients, s.Client())
		}
		f := sharded(t, shards(12), clients...)
		made := int64(6 + databases) // it asks each other database
		for _, step := range []struct {
			completes, makes bool
			billed           int64
		}{{false, true, 12 * made}, {false, false, 12 * 2}, {true, true, 11*5 + made}} {
			if step.completes {
				do(t, servers[0], "DEL", shardKey(0))
			}
			for _, s := range servers {
				s.ResetStats()
			}
			create(t, f, step.makes)
			billed := int64(0)
			for _, s := range servers {
				billed += s.Stats().Billed
			}
			if billed != step.billed {
				t.Errorf("%d other databases, %+v: %d commands billed", databases, step, billed)
			}
		}
	}
}

// A mortal is a transport of a process that dies at its request number left,
// before the request is sent or before the reply arrives.
type mortal struct {
	left  *atomic.Int64
	after bool
	next  upstash.Transport
}

func (m mortal) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	left := m.left.Add(-1)
	if left < 0 || left == 0 && !m.after {
		return errDead
	}
	err := m.next.RoundTrip(ctx, req, resp)
	if left == 0 {
		return errDead
	}
	return err
}

// process makes the clients of a process that dies at one of its requests.
func process(s [2]*upstashtest.Server, request int64, after bool) []*upstash.Client {
	left := new(atomic.Int64)
	left.Store(request)
	var clients []*upstash.Client
	for i := range s {
		transport := mortal{left, after, httptransport.New(http.DefaultClient)}
		clients = append(clients, s[i].Client(upstash.WithRetry(0), upstash.WithTransport(transport)))
	}
	return clients
}

// Two Creates are interrupted anywhere. The third completes what they left, and
// at most one of the three says that it made the filter.
func TestShardedCreateAfterCrashes(t *testing.T) {
	s := [2]*upstashtest.Server{upstashtest.NewServer(t), upstashtest.NewServer(t)}
	const most = 9 // at least one more than a Create has requests
	for n := range most * most * 2 {
		if (n+n/most)%3 != 0 && !testenv.Long() {
			continue
		}
		flushBoth(s)
		first := process(s, int64(n%most+1), n/most/most == 1)
		second := process(s, int64(n/most%most+1), n/most/most == 0)
		third := []*upstash.Client{s[0].Client(), s[1].Client()}
		made := 0
		var last error
		for _, clients := range [][]*upstash.Client{first, second, third} {
			var created bool
			if created, last = sharded(t, shards(5), clients...).Create(t.Context()); created {
				made++
			}
		}
		if last != nil || made > 1 {
			t.Fatalf("case %d: %d Creates made it, want one at most; the last: %v", n, made, last)
		}
		f := sharded(t, shards(5), third...)
		for i := range 5 {
			if added, err := f.Add(t.Context(), ofShard(f, i, 1)[0]); err != nil || !added {
				t.Fatalf("case %d: Add to shard %d = %v, %v, want true", n, i, added, err)
			}
		}
	}
}

// Of simultaneous Creates exactly one makes the filter and none fails. Each can
// add at once.
func TestShardedCreateAtOnce(t *testing.T) {
	s := [2]*upstashtest.Server{upstashtest.NewServer(t), upstashtest.NewServer(t)}
	runs := 10
	if testenv.Long() {
		runs = 25
	}
	for n := range runs {
		flushBoth(s)
		var made atomic.Int64
		var running sync.WaitGroup
		for i := range 5 {
			f := sharded(t, shards(6), s[0].Client(), s[1].Client())
			running.Go(func() {
				time.Sleep(time.Duration(n*i) * 20 * time.Microsecond)
				created, err := f.Create(t.Context())
				if err != nil {
					t.Errorf("round %d: Create: %v", n, err)
				}
				if created {
					made.Add(1)
				}
				items := numbered(fmt.Sprint("of-", i), 20)
				if added, err := f.AddAll(t.Context(), items); err != nil || count(added) != 20 {
					t.Errorf("round %d: AddAll: %d new, want 20: %v", n, count(added), err)
				}
			})
		}
		running.Wait()
		if made.Load() != 1 {
			t.Fatalf("round %d: %d Creates made it, want 1", n, made.Load())
		}
		f := sharded(t, shards(6), s[0].Client(), s[1].Client())
		for i := range 5 {
			wantFound(t, f, numbered(fmt.Sprint("of-", i), 20))
		}
	}
}

// A lost shard is not made again while others hold items.
func TestShardedCreateAfterLoss(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		f := sharded(t, shards(4), s[0].Client(), s[1].Client())
		for _, lost := range []int{0, 3} {
			flushBoth(s)
			create(t, f, true)
			do(t, s[lost%2], "DEL", shardKey(lost))
			create(t, f, true) // nothing was in it
			noError(t, errorOf(f.Add(t.Context(), ofShard(f, 2, 1)[0])))
			do(t, s[lost%2], "DEL", shardKey(lost))
			created, err := f.Create(t.Context())
			if created || !errors.Is(err, bloom.ErrNotFound) || !strings.Contains(err.Error(), fmt.Sprintf("shard %d of 4", lost)) {
				t.Errorf("Create = %v, %v, want an error that names shard %d", created, err, lost)
			}
			wantNoKey(t, s[lost%2], shardKey(lost))
			noError(t, errorOf(f.Delete(t.Context())))
			create(t, f, true)
		}
	})
}

// If the clients come in another order than at the Create, their databases lack
// the shards. A Create finds them, and makes nothing.
func TestShardedCreateInAnotherOrder(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		a, b := s[0].Client(), s[1].Client()
		create(t, sharded(t, shards(4), a, b), true)
		created, err := sharded(t, shards(4), b, a).Create(t.Context())
		if created || !errors.Is(err, upstash.ErrArgument) || !upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), "shard 1 of 4 is missing, and is in the database of another client") {
			t.Errorf("Create = %v, %v, want an error that names shard 1 and the other database", created, err)
		}
		for i := range 4 {
			wantNoKey(t, s[1-i%2], shardKey(i))
		}
	})
}

// Before a Create makes a shard, it asks the other databases for it. Other data
// at that key there is no shard. Without an answer it makes none.
func TestShardedCreateAsksElsewhere(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		f := sharded(t, shards(4), s[0].Client(), s[1].Client())
		s[1].DenyFunc(func(command []string) bool { return slices.Contains(command, shardKey(2)) })
		created, err := f.Create(t.Context())
		if created || !errors.Is(err, upstash.ErrNoPermission) || !upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), "shard 2 of 4") {
			t.Errorf("Create = %v, %v, want ErrNoPermission of shard 2", created, err)
		}
		for i := range 4 {
			wantNoKey(t, s[i%2], shardKey(i))
		}
		s[1].DenyFunc(nil)
		do(t, s[1], "RPUSH", shardKey(0), "a list")
		do(t, s[1], "SET", shardKey(2), "some text that is long enough")
		create(t, f, true)
	})
}

// The error names the lost shards, the first eight of them.
func TestShardedNamesLostShards(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := sharded(t, shards(12), s.Client())
	create(t, f, true)
	noError(t, errorOf(f.Add(t.Context(), ofShard(f, 11, 1)[0])))
	for lost, want := range []string{"", "shard 0 of 12", "shard 0, 1 of 12", 9: "shard 0, 1, 2, 3, 4, 5, 6, 7 and 1 more of 12"} {
		if want == "" {
			continue
		}
		for i := range lost {
			do(t, s, "DEL", shardKey(i))
		}
		created, err := f.Create(t.Context())
		if created || !errors.Is(err, bloom.ErrNotFound) || !strings.Contains(err.Error(), want+" not found: evicted") {
			t.Errorf("%d lost: Create = %v, %v, want %q", lost, created, err, want)
		}
	}
}

// Nothing tells the loss of the only shard with items from a Create that was
// interrupted. Create then answers true, and the item is not found.
func TestShardedCreateAfterTheOnlyFilledShardIsLost(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := sharded(t, shards(4), s.Client())
	create(t, f, true)
	item := ofShard(f, 2, 1)[0]
	add(t, f, item, true)
	do(t, s, "DEL", shardKey(2))
	create(t, f, true)
	exists(t, f, item, false)
}

var errDead = errors.New("the process is dead")
