package bloom_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A backedUp is a type whose string TakeBackup takes.
type backedUp struct {
	name string
	key  string // of its string, at the filter's key "from"
	cfg  any
	ttl  time.Duration // that may be asked for
	most time.Duration // the TTL of a restored one without ttl
}

var backedUps = []backedUp{
	{"filter", "from", bloom.Config{Capacity: 3000, FPRate: 0.01, Seed: 7}, time.Hour, 0},
	{"window", "from", bloom.WindowConfig{Capacity: 3000, FPRate: 0.01, Span: time.Hour, Panes: 2, Seed: 7}, 0, 0},
	{
		"idle window", "from",
		bloom.WindowConfig{Capacity: 3000, FPRate: 0.01, Span: time.Hour, ExpireIdle: true},
		0, 4*time.Hour + 20*time.Second,
	},
	{"scalable", "from", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01}, time.Hour, 0},
	{"cuckoo", "from", bloom.CuckooConfig{Capacity: 3000, FPRate: 0.01, Seed: 7}, 0, 0},
	{"shard", "from:0", bloom.ShardedConfig{Capacity: 3000, FPRate: 0.01, Shards: 1}, 0, 0},
}

// open opens the filter whose string is at a key.
func (b backedUp) open(t *testing.T, c *upstash.Client, key string) bloomtest.Adder {
	t.Helper()
	if b.name == "shard" {
		key = strings.TrimSuffix(key, ":0")
	}
	return made(t, c, key, b.cfg)
}

// inKilobytes has a string of some kilobytes travel in parts.
var inKilobytes = bloom.WithPartBytes(1 << 10)

// backedUpItems are in two layers of the scalable filter.
const backedUpItems = 1100

// fill makes a filter of a type with so many items.
func (b backedUp) fill(t *testing.T, s *upstashtest.Server) bloomtest.Adder {
	t.Helper()
	f := b.open(t, s.Client(), b.key)
	create(t, f, true)
	mustAdd(t, f, numbered("item", backedUpItems)...)
	return f
}

func takeBackup(t *testing.T, c *upstash.Client, key string, opts ...bloom.MoveOption) *bloom.Backup {
	t.Helper()
	b, err := bloom.TakeBackup(t.Context(), c, key, opts...)
	noError(t, err)
	return b
}

// readBackup reads a Local as a Backup.
func readBackup(t *testing.T, l *bloom.Local) *bloom.Backup {
	t.Helper()
	var stream bytes.Buffer
	noError(t, errorOf(l.WriteTo(&stream)))
	b, err := bloom.ReadBackup(&stream)
	noError(t, err)
	return b
}

// likeSaved is a string without what a restored one has of its own: the random
// bits of the birth number and bit 127.
func likeSaved(t *testing.T, s string) string {
	t.Helper()
	own := binary.BigEndian.Uint64([]byte(s[8:16])) &^ 1 & (1<<63 | (1<<10-1)<<11)
	return s[:8] + string(binary.BigEndian.AppendUint64(nil, own)) + s[16:]
}

// A filter of any type comes back with its items, its kind's own word and its
// rate, a new birth number and the TTL of the restored one.
func TestBackupOfEveryType(t *testing.T) {
	for _, b := range backedUps {
		t.Run(b.name, func(t *testing.T) {
			eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				f := b.fill(t, s)
				before := storedAt(t, s, b.key)
				var whole, parts, again bytes.Buffer
				for to, opts := range map[*bytes.Buffer][]bloom.MoveOption{&whole: nil, &parts: {inKilobytes}} {
					noError(t, errorOf(takeBackup(t, s.Client(), b.key, opts...).WriteTo(to)))
				}
				if !bytes.Equal(whole.Bytes(), parts.Bytes()) {
					t.Error("a backup in parts differs from one in one piece")
				}
				if plain, ok := f.(*bloom.Filter); ok {
					var saved bytes.Buffer
					l, err := plain.Snapshot(t.Context())
					noError(t, err)
					if _, err := l.WriteTo(&saved); err != nil || !bytes.Equal(saved.Bytes(), whole.Bytes()) {
						t.Errorf("the stream of its Snapshot differs: %v", err)
					}
				}
				if storedAt(t, s, b.key) != before {
					t.Error("the backup has changed the filter")
				}
				wantNoScratch(t, s, 1)
				read, err := bloom.ReadBackup(&parts)
				noError(t, err)
				if _, err := read.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), whole.Bytes()) {
					t.Errorf("what was read is written otherwise: %v", err)
				}
				seen, err := bloom.Inspect(t.Context(), s.Client(), b.key)
				noError(t, err)
				seen.TTL = 0
				if got := read.Stats(); !reflect.DeepEqual(got, seen) {
					t.Errorf("the backup's Stats: %+v, want %+v", got, seen)
				}

				for _, ttl := range []time.Duration{0, b.ttl} {
					do(t, s, "DEL", b.key)
					r, err := read.Restore(t.Context(), s.Client(), b.key, ttl, inKilobytes)
					if err != nil || !r.Created || r.NewBits != seen.SetBits || r.Requests < 4 || r.Bytes < 3000 {
						t.Fatalf("%+v, %v", r, err)
					}
					after := storedAt(t, s, b.key)
					if likeSaved(t, after) != likeSaved(t, before) {
						t.Error("the restored string differs")
					}
					if birthOf(t, after) == birthOf(t, before) {
						t.Error("the restored filter has the birth number of the saved one")
					}
					want := max(ttl, b.most)
					left, err := s.Client().TTL(t.Context(), b.key)
					if err != nil || !bloomtest.IsLeft(left, want) || isSettled(t, after) != (want > 0) {
						t.Errorf("TTL %v, settled %v: want %v; %v", left, isSettled(t, after), want, err)
					}
					again := b.open(t, s.Client(), b.key)
					wantFound(t, again, numbered("item", backedUpItems))
					if areNew, err := again.AddAll(t.Context(), numbered("more", 20)); err != nil || count(areNew) < 10 {
						t.Errorf("Adds after it: %v, %v", areNew, err)
					}
					wantNoScratch(t, s, 1)
				}
			})
		})
	}
}

// A backup of a type whose bits are cleared or moved is of one moment, although others
// write before each of its requests.
func TestBackupIsOfOneMoment(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, opts := range map[string][]bloom.MoveOption{"in one piece": nil, "in parts": {inKilobytes}} {
			do(t, s, "FLUSHALL")
			f := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 3000, FPRate: 0.01})
			mustAdd(t, f, numbered("item", 1000)...)
			if opts == nil { // without EVAL, after the look at the string
				s.DenyFunc(deniesStart)
			}
			// Some items leave and as many come: the word stays as it is.
			c, wire := timedClient(t, s, newServerClock())
			var one sync.Mutex
			round := 0
			wire.before = func(string) error {
				one.Lock()
				if round < 10 {
					leave := numbered("item", 1000)[100*round : 100*round+100]
					wantError(t, errorOf(f.RemoveAll(context.Background(), leave)), nil)
					wantError(t, errorOf(f.AddAll(context.Background(), numbered(fmt.Sprint("round", round), 100))), nil)
					round++
				}
				return nil
			}
			wire.after = func(string) error {
				one.Unlock()
				return nil
			}
			b := takeBackup(t, c, key, opts...)
			s.DenyFunc(nil)
			if round < 2 {
				t.Fatalf("%s: nobody wrote between the requests", name)
			}
			noError(t, errorOf(b.Restore(t.Context(), s.Client(), "to", 0)))
			copied, err := bloom.OpenCuckoo(t.Context(), s.Client(), "to")
			noError(t, err)
			st, err := copied.Stats(t.Context())
			if err != nil || st.Damaged || st.Items != 1000 {
				t.Errorf("%s, after %d rounds: %+v, %v", name, round, st, err)
			}
			for i := range round { // which is in with all of its items, or with none
				in, err := copied.ExistsAll(t.Context(), numbered(fmt.Sprint("round", i), 100))
				noError(t, err)
				if n := count(in); n > 20 && n < 100 {
					t.Errorf("%s: %d of 100 items of round %d", name, n, i)
				}
			}
		}
	})
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
			saved, before := takeBackup(t, s.Client(), b.key), storedAt(t, s, b.key)
			refused := func(what, key string) {
				t.Helper()
				_, err := saved.Restore(t.Context(), s.Client(), key, 0)
				if !errors.Is(err, bloom.ErrKeyExists) || !upstash.SafeToRetry(err) {
					t.Errorf("%s to %s: %v, want ErrKeyExists, safe to retry", b.name, what, err)
				} else if !strings.Contains(err.Error(), "use Backup.Local and Filter.Replace") {
					t.Errorf("%s to %s: %v, want a word on how to replace what is there", b.name, what, err)
				}
			}
			refused("its own key", b.key)
			if storedAt(t, s, b.key) != before {
				t.Errorf("%s has changed", b.name)
			}
			do(t, s, "SETRANGE", "to:0", "0", strings.Repeat("\x00", 30))
			refused("zeros", "to:0")
			do(t, s, "DEL", "to:0")
			do(t, s, "RPUSH", "to:0", "a")
			refused("a list", "to:0")
			do(t, s, "DEL", "to:0")
			late := afterCommand(s, "SETEX", 2, func() { do(t, s, "SET", "to:0", "came meanwhile") })
			wantError(t, errorOf(saved.Restore(t.Context(), late, "to:0", 0, inKilobytes)), bloom.ErrKeyExists)
			if storedAt(t, s, "to:0") != "came meanwhile" {
				t.Errorf("%s took a key that was taken meanwhile", b.name)
			}
			wantNoScratch(t, s, 2)
			do(t, s, "DEL", "to:0")
			lost := afterCommand(s, "SETEX", 2, func() { do(t, s, "DEL", do(t, s, "KEYS", "*:load:*").([]any)[0].(string)) })
			wantUntouched(t, errorOf(saved.Restore(t.Context(), lost, "to:0", 0, inKilobytes)), bloom.ErrLoadLost)
			wantNoScratch(t, s, 1)
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
				s.ResetStats()
				r, err := saved.Restore(t.Context(), impatient(s), "to:0", 0, inKilobytes)
				s.InjectFunc(nil)
				if err != nil || !r.Created || lost == 1 && s.Stats().Requests != r.Requests+1 { // nobody has to ask
					t.Errorf("%s, %d answers lost: %+v, %v", b.name, lost, r, err)
				}
				wantFound(t, b.open(t, s.Client(), "to:0"), numbered("item", backedUpItems))
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

// What cannot be is refused before anything is sent.
func TestRestoreRefuses(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, b := range backedUps {
		do(t, s, "FLUSHALL")
		b.fill(t, s)
		saved := takeBackup(t, s.Client(), b.key)
		s.ResetStats()
		refused := func(key string, ttl time.Duration) {
			t.Helper()
			_, err := saved.Restore(t.Context(), s.Client(), key, ttl)
			if !errors.Is(err, upstash.ErrArgument) || !upstash.SafeToRetry(err) ||
				ttl != 0 && !strings.Contains(err.Error(), ttl.String()) {
				t.Errorf("%s to %q for %v: %v, want ErrArgument", b.name, key, ttl, err)
			}
		}
		refused("to:0", -1)
		refused("to:0", 100*time.Microsecond) // which Redis cannot keep
		if b.ttl == 0 {
			refused("to:0", time.Hour)
		}
		if b.name == "shard" {
			refused("to:1", 0)
		}
		if _, err := saved.Restore(t.Context(), s.Client(), "", 0); err == nil {
			t.Error("an empty key is no error")
		}
		wantRequests(t, s, 0)
	}
	do(t, s, "FLUSHALL")
	wantError(t, errorOf(bloom.TakeBackup(t.Context(), s.Client(), "none")), bloom.ErrNotFound)
	do(t, s, "SET", "text", "some text that is no filter at all")
	wantError(t, errorOf(bloom.TakeBackup(t.Context(), s.Client(), "text")), bloom.ErrNotFilter)
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
		noError(t, errorOf(takeBackup(t, s.Client(), b.key).WriteTo(&stream)))
		good := stream.Bytes()
		refused := func(what string, bad []byte) {
			t.Helper()
			err := errorOf(bloom.ReadBackup(bytes.NewReader(bad)))
			if !errors.Is(err, bloom.ErrBadStream) || strings.Contains(err.Error(), "the key") {
				t.Errorf("%s, %s: %v, want ErrBadStream, which speaks of no key", b.name, what, err)
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
		for _, change := range []struct {
			what string
			at   int
			bits byte
		}{
			{"bit 127", first + 15, 1},
			{"bit 118", first + 14, 2},
			{"bits behind the third word", first + 23, 1},
			{"no third word", first + 16, 0x80},
			{"another header within", first + 7, 1},
			{"another length", 22, 1},
		} {
			bad := slices.Clone(good)
			bad[change.at] ^= change.bits
			refused(change.what, resum(bad))
		}
		_, err := bloom.ReadLocal(bytes.NewReader(good), 7)
		var mismatch *bloom.MismatchError
		if b.name != "filter" && (!errors.As(err, &mismatch) || !strings.Contains(err.Error(), "Backup.Restore")) {
			t.Errorf("a Local of a %s: %v, want a MismatchError that says what to do", b.name, err)
		}
	}
}

func FuzzReadBackup(f *testing.F) {
	v := loadKinds(f)
	for _, s := range v.Streams {
		f.Add(decoded(f, s.Hex))
		f.Add(decoded(f, s.Hex+s.Trailer))
	}
	for _, s := range v.Strings {
		if s.StreamBytes < 1000 {
			f.Add(s.stream(f))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 32 && !bytes.Contains(data, []byte(format.TrailerMagic)) {
			data = resum(data)
		}
		b, err := bloom.ReadBackup(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := b.WriteTo(&out); err != nil {
			t.Error(err)
		}
		after, ok := bytes.CutPrefix(data, out.Bytes())
		if !ok || len(after) > 0 && !bytes.HasPrefix(after, []byte(format.TrailerMagic)) {
			t.Errorf("written otherwise: %x, want %x", out.Bytes(), data)
		}
		_ = b.Stats()
	})
}

// deniesStart refuses the script that reads how a string begins, as EVAL.
func deniesStart(command []string) bool {
	return command[0] == "EVAL" && strings.Contains(command[1], "GETRANGE")
}

// A string that is shorter than a part comes in one request. No bytes come of a longer
// one that has to be copied, nor of other data.
func TestStartOfAString(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		got := 0 // bytes in the first answer
		c := s.Client(upstash.WithObserver(func(_ context.Context, e upstash.Event) {
			if got == 0 {
				got = e.BytesIn
			}
		}))
		for _, b := range backedUps {
			do(t, s, "FLUSHALL")
			f := b.fill(t, s)
			bloomtest.Costs(t, s, b.name, 1, 3, func() error { return errorOf(bloom.TakeBackup(t.Context(), c, b.key)) })
			got = 0
			parts := int64(len(storedAt(t, s, b.key))+1023) / 1024
			requests, billed, plain := parts+3, 3*parts+4+6+1, b.name == "filter" || b.name == "shard"
			if plain {
				requests, billed = parts, 3*parts+1
			}
			bloomtest.Costs(t, s, b.name+" in parts", requests, billed, func() error {
				return errorOf(bloom.TakeBackup(t.Context(), c, b.key, inKilobytes))
			})
			if got > 1<<10 != plain {
				t.Errorf("%s in parts: %d bytes in the first answer", b.name, got)
			}
			if f, ok := f.(*bloom.Filter); ok {
				bloomtest.Costs(t, s, "Snapshot", 1, 3, func() error { return errorOf(f.Snapshot(t.Context())) })
				bloomtest.Costs(t, s, "Snapshot in parts", requests, billed, func() error {
					return errorOf(f.Snapshot(t.Context(), inKilobytes))
				})
			}
		}
		g, tail := handle(t, c, small()).Geometry(), strings.Repeat("\xa5", 100_000)
		for name, data := range map[string]string{
			"a text":          strings.Repeat("a text of theirs", 6000),
			"zeros":           strings.Repeat("\x00", 100_000),
			"ones":            strings.Repeat("\xff", 100_000),
			"version 2":       bloomtest.HeaderOfVersion(2, bloom.KindFilter, g) + tail,
			"behind the word": spoilt(63) + tail,
			"behind birth":    spoilt(117) + tail,
			"another filter":  bloomtest.HeaderOf(bloom.KindFilter, handle(t, c, middling()).Geometry()) + tail[:12_000],
		} {
			do(t, s, "SET", key, data)
			for call, err := range map[string]func() error{
				"Snapshot":   func() error { return errorOf(handle(t, c, small()).Snapshot(t.Context())) },
				"TakeBackup": func() error { return errorOf(bloom.TakeBackup(t.Context(), c, key)) },
			} {
				got = 0
				s.ResetStats()
				whole := name == "another filter" && call == "TakeBackup"
				if err := err(); whole != (err == nil) || err != nil && !isRefusal(err) {
					t.Errorf("%s of %s: %v", call, name, err)
				}
				if got > 200 != whole || s.Stats().Requests != 1 {
					t.Errorf("%s of %s: %d bytes in %d requests", call, name, got, s.Stats().Requests)
				}
			}
		}
	})
}

// A filter that is gone, or made again, before it is read or copied is another
// one.
func TestTakeBackupOfAFilterMadeAgain(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, b := range backedUps {
			made := func() string {
				do(t, s, "FLUSHALL")
				b.fill(t, s)
				return storedAt(t, s, b.key)
			}
			first, again := made(), made()
			for what, then := range map[string]func(){
				"gone":            func() {},
				"made again":      func() { do(t, s, "SET", b.key, again) },
				"of another size": func() { noError(t, errorOf(handleAt(t, s.Client(), b.key, small()).Create(t.Context()))) },
				"a list":          func() { do(t, s, "RPUSH", b.key, "element") },
				"a text":          func() { do(t, s, "SET", b.key, "no filter, but long enough for the words of one") },
				"zeros":           func() { do(t, s, "SETRANGE", b.key, "100", "\x00") },
			} {
				for size, opts := range map[string][]bloom.MoveOption{"without EVAL": nil, "in parts": {inKilobytes}} {
					do(t, s, "FLUSHALL")
					do(t, s, "SET", b.key, first)
					look := "EVAL"
					if opts == nil {
						look = "MULTI-EXEC"
						s.DenyFunc(deniesStart)
					}
					change := sync.OnceFunc(func() {
						do(t, s, "DEL", b.key)
						then()
					})
					client := s.Client(upstash.WithObserver(func(_ context.Context, e upstash.Event) {
						if e.Command == look {
							change()
						}
					}))
					_, err := bloom.TakeBackup(t.Context(), client, b.key, opts...)
					s.DenyFunc(nil)
					if !errors.Is(err, bloom.ErrRecreated) || !upstash.SafeToRetry(err) {
						t.Errorf("%s, %s, %s: %v, want ErrRecreated", b.name, size, what, err)
					}
					if b.name != "shard" || what != "made again" {
						wantNoScratch(t, s, int(do(t, s, "DBSIZE").(int64)))
					}
				}
			}
		}
	})
}

// A string that is too long for a record is not restored, nor takes another's place, and
// leaves nothing.
func TestRestoreBeyondTheRecordLimit(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(8000)) // four parts
	f := handle(t, s.Client(), middling())
	saved := readBackup(t, bloom.NewLocal(f.Geometry()))
	wantTooLarge(t, s, f.Replace(t.Context(), localOf(f, 0, 9), inParts()), 0)
	wantTooLarge(t, s, errorOf(saved.Restore(t.Context(), s.Client(), "copy", 0, inParts())), 0)
}

// Progress begins with nothing, and ends with all of the string.
func TestTakeBackupProgress(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, b := range backedUps {
		do(t, s, "FLUSHALL")
		b.fill(t, s)
		length := int64(len(storedAt(t, s, b.key)))
		for size, opts := range map[string][]bloom.MoveOption{"in one piece": nil, "in parts": {inKilobytes}} {
			var reports []int64
			takeBackup(t, s.Client(), b.key, append(opts, bloom.WithProgress(func(done, total int64) {
				reports = append(reports, done)
				if total != length {
					t.Errorf("%s, %s: %d bytes in all, want %d", b.name, size, total, length)
				}
			}))...)
			if n := len(reports); n < 2 || reports[0] != 0 || reports[n-1] != length || !slices.IsSorted(reports) {
				t.Errorf("%s, %s: %d, want from 0 to %d", b.name, size, reports, length)
			}
		}
	}
}

// A Backup prints none of its bits.
func TestBackupFormat(t *testing.T) {
	s := upstashtest.NewServer(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	saved := takeBackup(t, s.Client(), key)
	for _, verb := range []string{"%v", "%+v", "%#v", "%x"} {
		if got, want := fmt.Sprintf(verb, saved), "bloom.Backup("+saved.Stats().Geometry.String()+")"; got != want {
			t.Errorf("%s: %q, want %q", verb, got, want)
		}
	}
}
