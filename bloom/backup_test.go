package bloom_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A backedUp is a type whose string TakeBackup takes. open opens the filter at a
// key, of the shards those of Shards: 1.
type backedUp struct {
	name string
	key  string // of its string, at the filter's key "from"
	ttl  time.Duration
	open func(t *testing.T, c *upstash.Client, key string) batches
	most time.Duration // the TTL of a restored one without ttl
}

type batches interface {
	Create(ctx context.Context) (bool, error)
	AddAll(ctx context.Context, items []string) ([]bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
}

func handleOf[F batches](t *testing.T) func(F, error) batches {
	return func(f F, err error) batches {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

var backedUps = []backedUp{
	{"filter", "from", time.Hour, func(t *testing.T, c *upstash.Client, key string) batches {
		return handleOf[*bloom.Filter](t)(bloom.New(c, key, bloom.Config{Capacity: 3000, FPRate: 0.01, Seed: 7}))
	}, 0},
	{"window", "from", 0, func(t *testing.T, c *upstash.Client, key string) batches {
		return handleOf[*bloom.Window](t)(bloom.NewWindow(c, key, bloom.WindowConfig{
			Capacity: 3000, FPRate: 0.01, Span: time.Hour, Panes: 2, Seed: 7,
		}))
	}, 0},
	{"idle window", "from", 0, func(t *testing.T, c *upstash.Client, key string) batches {
		return handleOf[*bloom.Window](t)(bloom.NewWindow(c, key, bloom.WindowConfig{
			Capacity: 3000, FPRate: 0.01, Span: time.Hour, ExpireIdle: true,
		}))
	}, 4*time.Hour + 20*time.Second},
	{"scalable", "from", time.Hour, func(t *testing.T, c *upstash.Client, key string) batches {
		return handleOf[*bloom.Scalable](t)(bloom.NewScalable(c, key, bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01}))
	}, 0},
	{"cuckoo", "from", 0, func(t *testing.T, c *upstash.Client, key string) batches {
		return handleOf[*bloom.Cuckoo](t)(bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: 3000, FPRate: 0.01, Seed: 7}))
	}, 0},
	{"shard", "from:0", 0, func(t *testing.T, c *upstash.Client, key string) batches {
		return handleOf[*bloom.Sharded](t)(bloom.NewSharded([]*upstash.Client{c}, strings.TrimSuffix(key, ":0"),
			bloom.ShardedConfig{Capacity: 3000, FPRate: 0.01, Shards: 1}))
	}, 0},
}

// inKilobytes has a string of some kilobytes travel in parts.
var inKilobytes = bloom.MovePartBytes(1 << 10)

// backedUpItems are in two layers of the scalable filter.
const backedUpItems = 1100

// fill makes a filter of a type with so many items.
func (b backedUp) fill(t *testing.T, s *upstashtest.Server) batches {
	t.Helper()
	f := b.open(t, s.Client(), b.key)
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.AddAll(t.Context(), numbered("item", backedUpItems)); err != nil {
		t.Fatal(err)
	}
	return f
}

func takeBackup(t *testing.T, c *upstash.Client, key string, opts ...bloom.MoveOption) *bloom.Backup {
	t.Helper()
	b, err := bloom.TakeBackup(t.Context(), c, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// likeSaved is a string without what a restored one has of its own: the random
// bits of the birth number, of a plain filter its rate too, and bit 127.
func likeSaved(t *testing.T, s string, plain bool) string {
	t.Helper()
	own := binary.BigEndian.Uint64([]byte(s[8:16])) &^ 1 & (1<<63 | (1<<10-1)<<11)
	if plain {
		own = 1 << 63
	}
	return s[:8] + string(binary.BigEndian.AppendUint64(nil, own)) + s[16:]
}

// A filter of any type comes back with its items, its kind's own word and its
// rate, a new birth number and the TTL of the restored one.
func TestBackupOfEveryType(t *testing.T) {
	for _, b := range backedUps {
		t.Run(b.name, func(t *testing.T) {
			eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				f := b.fill(t, s)
				before := bloomtest.StoredAt(t, s, b.key)
				var whole, parts, again bytes.Buffer
				for to, opts := range map[*bytes.Buffer][]bloom.MoveOption{&whole: nil, &parts: {inKilobytes}} {
					if _, err := takeBackup(t, s.Client(), b.key, opts...).WriteTo(to); err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(whole.Bytes(), parts.Bytes()) {
					t.Error("a backup in parts differs from one in one piece")
				}
				if plain, ok := f.(*bloom.Filter); ok {
					var saved bytes.Buffer
					if err := plain.Save(t.Context(), &saved); err != nil || !bytes.Equal(saved.Bytes(), whole.Bytes()) {
						t.Errorf("the stream of Save differs: %v", err)
					}
				}
				if bloomtest.StoredAt(t, s, b.key) != before {
					t.Error("the backup has changed the filter")
				}
				wantNoScratch(t, s, 1)
				read, err := bloom.ReadBackup(&parts)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := read.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), whole.Bytes()) {
					t.Errorf("what was read is written otherwise: %v", err)
				}
				seen, err := bloom.Inspect(t.Context(), s.Client(), b.key)
				if err != nil {
					t.Fatal(err)
				}
				seen.TTL = 0
				if b.name == "filter" {
					seen.Capacity, seen.FPRate = 0, 0
				}
				if got := read.Stats(); got != seen {
					t.Errorf("the backup's Stats: %+v, want %+v", got, seen)
				}

				for _, ttl := range []time.Duration{0, b.ttl} {
					do(t, s, "DEL", b.key)
					r, err := read.Restore(t.Context(), s.Client(), b.key, ttl, inKilobytes)
					if err != nil || !r.Created || r.NewBits != seen.SetBits || r.Requests < 4 || r.Bytes < 3000 {
						t.Fatalf("%+v, %v", r, err)
					}
					after := bloomtest.StoredAt(t, s, b.key)
					if likeSaved(t, after, b.name == "filter") != likeSaved(t, before, b.name == "filter") {
						t.Error("the restored string differs")
					}
					if bloomtest.BirthOf(t, after) == bloomtest.BirthOf(t, before) {
						t.Error("the restored filter has the birth number of the saved one")
					}
					want := max(ttl, b.most)
					left, err := s.Client().TTL(t.Context(), b.key)
					if err != nil || left > want || want-left > time.Minute || bloomtest.IsSettled(t, after) != (want > 0) {
						t.Errorf("TTL %v, settled %v: want %v; %v", left, bloomtest.IsSettled(t, after), want, err)
					}
					again := b.open(t, s.Client(), b.key)
					if all, err := again.ExistsAll(t.Context(), numbered("item", backedUpItems)); err != nil || slices.Contains(all, false) {
						t.Errorf("not all items are in: %v", err)
					}
					if areNew, err := again.AddAll(t.Context(), numbered("more", 20)); err != nil || bloomtest.Count(areNew) < 10 {
						t.Errorf("Adds after it: %v, %v", areNew, err)
					}
					wantNoScratch(t, s, 1)
				}
			})
		})
	}
}

// A backup of a type whose bits are cleared or moved is of one moment, whoever
// writes while it is read.
func TestBackupIsOfOneMoment(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, opts := range map[string][]bloom.MoveOption{"in one piece": nil, "in parts": {inKilobytes}} {
			t.Run(name, func(t *testing.T) {
				do(t, s, "FLUSHALL")
				f, err := bloom.NewCuckoo(s.Client(), "from", bloom.CuckooConfig{Capacity: 3000, FPRate: 0.01})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.AddAll(t.Context(), numbered("item", 1000)); err != nil {
					t.Fatal(err)
				}
				// Some items leave and as many come: the word stays as it is.
				round, command := 0, "EVAL_RO"
				if opts == nil {
					command = "MULTI" // after the look at the string
				}
				var mu sync.Mutex
				c := s.Client(upstash.WithObserver(func(_ context.Context, e upstash.Event) {
					mu.Lock()
					defer mu.Unlock()
					if !strings.Contains(e.Command, command) && !strings.HasPrefix(e.Command, "EVALSHA") {
						return
					}
					leave := numbered("item", 1000)[100*round : 100*round+100]
					if _, err := f.RemoveAll(context.Background(), leave); err != nil {
						t.Error(err)
					}
					if _, err := f.AddAll(context.Background(), numbered(fmt.Sprint("round", round), 100)); err != nil {
						t.Error(err)
					}
					round++
				}))
				b := takeBackup(t, c, "from", opts...)
				if round == 0 {
					t.Fatal("nobody wrote meanwhile")
				}
				if _, err := b.Restore(t.Context(), s.Client(), "to", 0); err != nil {
					t.Fatal(err)
				}
				copied, err := bloom.OpenCuckoo(t.Context(), s.Client(), "to")
				if err != nil {
					t.Fatal(err)
				}
				st, err := copied.Stats(t.Context())
				if err != nil || st.Damaged || st.Items != 1000 {
					t.Errorf("after %d rounds: %+v, %v", round, st, err)
				}
				// Each round is in with all of its items, or with none.
				for i := range round {
					in, err := copied.ExistsAll(t.Context(), numbered(fmt.Sprint("round", i), 100))
					if err != nil {
						t.Fatal(err)
					}
					if n := bloomtest.Count(in); n > 20 && n < 100 {
						t.Errorf("%d of 100 items of round %d", n, i)
					}
				}
			})
		}
	})
}

// A string that grows past a part between the look and the read is copied.
func TestBackupOfAStringThatGrows(t *testing.T) {
	s := upstashtest.NewServer(t)
	f, err := bloom.NewCuckoo(s.Client(), "from", bloom.CuckooConfig{Capacity: 3000, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	length := 4096
	for i := 0; length > 2048; i++ { // the string ends with the only item
		do(t, s, "DEL", "from")
		if _, err := f.Add(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		length = int(do(t, s, "STRLEN", "from").(int64))
	}
	grown := false
	c := s.Client(upstash.WithObserver(func(context.Context, upstash.Event) {
		if !grown {
			grown = true
			if _, err := f.AddAll(context.Background(), numbered("item", 500)); err != nil {
				t.Error(err)
			}
		}
	}))
	b := takeBackup(t, c, "from", bloom.MovePartBytes(length+1))
	if got := b.Stats(); got.Items != 501 || int(do(t, s, "STRLEN", "from").(int64)) <= length+1 {
		t.Errorf("%+v, want all 501 items of a string that has grown", got)
	}
	bloomtest.WantNoScratch(t, s, 1)
}

// A token that may only read backs up what one request reads.
func TestBackupReadOnly(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, b := range backedUps {
		do(t, s, "FLUSHALL")
		b.fill(t, s)
		c := s.ReadOnlyClient()
		takeBackup(t, c, b.key)
		_, err := bloom.TakeBackup(t.Context(), c, b.key, inKilobytes)
		if onlySets := b.name == "filter" || b.name == "shard"; (err == nil) != onlySets ||
			!onlySets && (!errors.Is(err, upstash.ErrReadOnly) || !upstash.SafeToRetry(err)) {
			t.Errorf("%s in parts: %v", b.name, err)
		}
		if _, err := takeBackup(t, c, b.key).Restore(t.Context(), c, "to:0", 0); !errors.Is(err, upstash.ErrReadOnly) {
			t.Errorf("Restore: %v, want ErrReadOnly", err)
		}
	}
}

// Restore goes to a free key alone, and leaves alone what is there or comes
// meanwhile.
func TestRestoreToAFreeKey(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, b := range backedUps {
			do(t, s, "FLUSHALL")
			b.fill(t, s)
			saved := takeBackup(t, s.Client(), b.key)
			before := bloomtest.StoredAt(t, s, b.key)
			_, err := saved.Restore(t.Context(), s.Client(), b.key, 0)
			if !errors.Is(err, bloom.ErrKeyExists) || !upstash.SafeToRetry(err) || bloomtest.StoredAt(t, s, b.key) != before {
				t.Errorf("%s to its own key: %v", b.name, err)
			}
			do(t, s, "SET", "to:0", "")
			do(t, s, "SETRANGE", "to:0", "0", strings.Repeat("\x00", 30))
			if _, err = saved.Restore(t.Context(), s.Client(), "to:0", 0); !errors.Is(err, bloom.ErrKeyExists) {
				t.Errorf("%s to zeros: %v", b.name, err)
			}
			do(t, s, "DEL", "to:0")
			do(t, s, "RPUSH", "to:0", "a")
			if _, err = saved.Restore(t.Context(), s.Client(), "to:0", 0); !errors.Is(err, bloom.ErrKeyExists) ||
				!upstash.SafeToRetry(err) {
				t.Errorf("%s to a list: %v", b.name, err)
			}
			do(t, s, "DEL", "to:0")
			late := afterCommand(s, "SETEX", 2, func() { do(t, s, "SET", "to:0", "came meanwhile") })
			if _, err = saved.Restore(t.Context(), late, "to:0", 0, inKilobytes); !errors.Is(err, bloom.ErrKeyExists) ||
				bloomtest.StoredAt(t, s, "to:0") != "came meanwhile" {
				t.Errorf("%s to a key taken meanwhile: %v", b.name, err)
			}
			wantNoScratch(t, s, 2)
		}
	})
}

// If the answers to the script are lost, the birth number says whether it ran.
func TestRestoreTwiceTheScript(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, b := range backedUps {
			do(t, s, "FLUSHALL")
			b.fill(t, s)
			saved := takeBackup(t, s.Client(), b.key)
			for _, lost := range []int{1, 5} { // of 4 attempts
				do(t, s, "DEL", "to:0")
				loseReplies(s, "EVAL", lost)
				r, err := saved.Restore(t.Context(), impatient(s), "to:0", 0, inKilobytes)
				s.InjectFunc(nil)
				if err != nil || !r.Created {
					t.Errorf("%s, %d answers lost: %+v, %v", b.name, lost, r, err)
				}
				all, err := b.open(t, s.Client(), "to:0").ExistsAll(t.Context(), numbered("item", backedUpItems))
				if err == nil && slices.Contains(all, false) || err != nil {
					t.Errorf("%s, %d answers lost: not all items are in: %v", b.name, lost, err)
				}
				wantNoScratch(t, s, 2)
			}
			// Another took the place of what the lost attempt made.
			do(t, s, "DEL", "to:0")
			loseReplies(s, "EVAL", 1)
			c := afterCommand(s, "EVAL", 1, func() { do(t, s, "SET", "to:0", "another") })
			_, err := saved.Restore(t.Context(), c, "to:0", 0)
			s.InjectFunc(nil)
			if !errors.Is(err, bloom.ErrKeyExists) || upstash.SafeToRetry(err) {
				t.Errorf("%s, replaced after a lost attempt: %v", b.name, err)
			}
		}
	})
}

// Under every fault in every request, a backup and its restore are whole or an
// error, and an error that is safe to retry has changed nothing.
func TestBackupUnderFaults(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		onRedis := strings.HasSuffix(t.Name(), "redis")
		b := backedUps[4] // the cuckoo, whose table tells if it is damaged
		b.fill(t, s)
		saved := takeBackup(t, s.Client(), b.key)
		quick := bloomtest.Impatient(s, upstash.WithTimeout(250*time.Millisecond), upstash.WithRetry(1))
		check := func(what string) {
			t.Helper()
			f, err := bloom.OpenCuckoo(t.Context(), s.Client(), "to", bloom.CuckooConfig{Seed: 7})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if st, err := f.Stats(t.Context()); err != nil || st.Damaged || st.Items != backedUpItems {
				t.Errorf("%s: %+v, %v", what, st, err)
			}
		}
		faults := immediateFaults()
		if testenv.Long() {
			faults = upstashtest.EveryFault()
		}
		for i, fault := range faults {
			if fault.String() == upstashtest.RateLimit(0).String() || onRedis && !fault.Executes() {
				continue // these have their own tests
			}
			requests := []int64{1, 2, 5} // the look, the copy or a part, a part or the last step
			if !testenv.Long() {
				requests = requests[i%3 : i%3+1]
			}
			for _, nth := range requests {
				under := func(do func() error) error {
					var mu sync.Mutex
					s.ResetStats()
					struck := false
					n := int64(0)
					s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
						mu.Lock()
						defer mu.Unlock()
						if n++; n == nth && !struck {
							struck = true
							return fault
						}
						return upstashtest.Fault{}
					})
					err := do()
					s.InjectFunc(nil)
					_, _ = s.Client(upstash.WithRetry(0)).Do(t.Context(), upstash.Cmd("PING"))
					return err
				}
				what := fmt.Sprintf("%v in request %d", fault, nth)
				var taken *bloom.Backup
				err := under(func() (err error) {
					taken, err = bloom.TakeBackup(t.Context(), quick, b.key, inKilobytes)
					return err
				})
				if err != nil && !upstash.SafeToRetry(err) {
					t.Errorf("TakeBackup, %s: %v is not safe to retry", what, err)
				}
				if err == nil {
					if _, err := taken.Restore(t.Context(), s.Client(), "to", 0); err != nil {
						t.Fatal(err)
					}
					check("TakeBackup, " + what)
					do(t, s, "DEL", "to")
				}
				err = under(func() error {
					_, err := saved.Restore(t.Context(), quick, "to", 0, inKilobytes)
					return err
				})
				exists := do(t, s, "EXISTS", "to") == int64(1)
				switch {
				case exists && err != nil && upstash.SafeToRetry(err):
					t.Errorf("Restore, %s: %v is safe to retry, and the filter is there", what, err)
				case err == nil || exists:
					check("Restore, " + what)
				}
				do(t, s, "DEL", "to")
				bloomtest.WantScratchExpires(t, s, b.key)
			}
		}
	})
}

// What cannot be is refused before anything is sent.
func TestRestoreRefuses(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, b := range backedUps {
		do(t, s, "FLUSHALL")
		b.fill(t, s)
		saved := takeBackup(t, s.Client(), b.key)
		s.ResetStats()
		for name, restore := range map[string]func() error{
			"a negative ttl": func() error {
				_, err := saved.Restore(t.Context(), s.Client(), "to:0", -1)
				return err
			},
			"a ttl": func() error {
				if b.ttl != 0 {
					return upstash.ErrArgument
				}
				_, err := saved.Restore(t.Context(), s.Client(), "to:0", time.Hour)
				return err
			},
			"another number": func() error {
				if b.name != "shard" {
					return upstash.ErrArgument
				}
				_, err := saved.Restore(t.Context(), s.Client(), "to:1", 0)
				return err
			},
		} {
			if err := restore(); !errors.Is(err, upstash.ErrArgument) || !upstash.SafeToRetry(err) {
				t.Errorf("%s, %s: %v, want ErrArgument", b.name, name, err)
			}
		}
		if _, err := saved.Restore(t.Context(), s.Client(), "", 0); err == nil {
			t.Error("an empty key is no error")
		}
		if n := s.Stats().Requests; n != 0 {
			t.Errorf("%d requests", n)
		}
	}
	do(t, s, "FLUSHALL")
	if _, err := bloom.TakeBackup(t.Context(), s.Client(), "none"); !errors.Is(err, bloom.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	do(t, s, "SET", "text", "some text that is no filter at all")
	if _, err := bloom.TakeBackup(t.Context(), s.Client(), "text"); !errors.Is(err, bloom.ErrNotFilter) {
		t.Errorf("%v, want ErrNotFilter", err)
	}
}

// resum makes the checksum of a stream right again.
func resum(stream []byte) []byte {
	return binary.BigEndian.AppendUint64(stream[:len(stream)-8:len(stream)-8], xxh3.Hash(stream[:len(stream)-8]))
}

// A stream that was cut or changed anywhere is refused, and one whose words
// cannot be, although its checksum is right.
func TestReadBackupRefuses(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, b := range backedUps {
		do(t, s, "FLUSHALL")
		b.fill(t, s)
		var stream bytes.Buffer
		if _, err := takeBackup(t, s.Client(), b.key).WriteTo(&stream); err != nil {
			t.Fatal(err)
		}
		good := stream.Bytes()
		refused := func(what string, bad []byte) {
			t.Helper()
			if _, err := bloom.ReadBackup(bytes.NewReader(bad)); !errors.Is(err, bloom.ErrBadStream) {
				t.Errorf("%s, %s: %v, want ErrBadStream", b.name, what, err)
			}
		}
		for _, n := range []int{0, 7, 8, 23, 24, 40, len(good) / 2, len(good) - 9, len(good) - 1} {
			refused(fmt.Sprintf("%d bytes", n), good[:n])
		}
		refused("one byte more", append(slices.Clone(good), 0))
		for at := 0; at < len(good); at += max(1, at/16) {
			bad := slices.Clone(good)
			bad[at] ^= 4
			refused(fmt.Sprintf("byte %d changed", at), bad)
		}
		const first = 24 // where the string begins
		for what, change := range map[string]func(b []byte){
			"bit 127":                    func(b []byte) { b[first+15] |= 1 },
			"bit 118":                    func(b []byte) { b[first+14] |= 2 },
			"bits behind the third word": func(b []byte) { b[first+23] |= 1 },
			"no third word":              func(b []byte) { b[first+16] ^= 0x80 },
			"another header within":      func(b []byte) { b[first+7] ^= 1 },
			"another length":             func(b []byte) { b[22] ^= 1 },
		} {
			bad := slices.Clone(good)
			change(bad)
			refused(what, resum(bad))
		}
		if _, err := bloom.ReadLocal(bytes.NewReader(good), 7); b.name != "filter" && !errors.Is(err, bloom.ErrBadStream) {
			t.Errorf("a Local of a %s: %v, want ErrBadStream", b.name, err)
		}
	}
}

func FuzzReadBackup(f *testing.F) {
	f.Add([]byte("\x89upbloom"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 32 {
			data = resum(data)
		}
		b, err := bloom.ReadBackup(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := b.WriteTo(&out); err != nil || !bytes.Equal(out.Bytes(), data) {
			t.Errorf("written otherwise: %v", err)
		}
		_ = b.Stats()
	})
}

// A TTL that Redis cannot keep is refused, as Expire refuses it.
func TestRestoreRefusesATTLBelowAMillisecond(t *testing.T) {
	s := upstashtest.NewServer(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	saved := takeBackup(t, s.Client(), key)
	_, err := saved.Restore(t.Context(), s.Client(), "to", 100*time.Microsecond)
	if !errors.Is(err, upstash.ErrArgument) || !strings.Contains(err.Error(), "100µs") {
		t.Errorf("Restore for 100 µs: %v, want ErrArgument", err)
	}
	wantNoKey(t, s, "to")
}

// A table that is made again before it is copied is another one.
func TestTakeBackupOfATableMadeAgain(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		table := func() {
			c, err := bloom.NewCuckoo(s.Client(), "table", bloom.CuckooConfig{Capacity: 3000, FPRate: 0.01})
			noError(t, err)
			_, err = c.Create(t.Context()) // all of its length
			noError(t, err)
		}
		table()
		again := sync.OnceFunc(func() {
			do(t, s, "DEL", "table")
			table()
		})
		client := s.Client(upstash.WithObserver(func(context.Context, upstash.Event) { again() }))
		_, err := bloom.TakeBackup(t.Context(), client, "table", inKilobytes)
		if !errors.Is(err, bloom.ErrRecreated) {
			t.Errorf("TakeBackup: %v, want ErrRecreated", err)
		}
		wantNoScratch(t, s, 1)
	})
}

// A Backup prints none of its bits.
func TestBackupString(t *testing.T) {
	s := upstashtest.NewServer(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	saved := takeBackup(t, s.Client(), key)
	for _, verb := range []string{"%v", "%+v", "%#v", "%x"} {
		if got := fmt.Sprintf(verb, saved); got != saved.String() || !strings.HasPrefix(got, "bloom.Backup(") || len(got) > 100 {
			t.Errorf("%s: %q", verb, got)
		}
	}
}
