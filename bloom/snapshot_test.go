package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestSnapshotIsTheStoredString(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		f := handle(t, s.Client(), cfg)
		// The string of a filter that Add made ends with its last set bit.
		for i := range 3 {
			add(t, f, mail(i), true)
			l, err := f.Snapshot(t.Context(), parts)
			if err != nil {
				t.Fatal(err)
			}
			want := withoutOwn(t, stored(t, s))
			got := withoutOwn(t, string(l.Bytes()))
			if strings.TrimRight(got, "\x00") != strings.TrimRight(want, "\x00") {
				t.Errorf("after %d items the strings differ", i+1)
			}
			if ownWords(t, string(l.Bytes())) != strings.Repeat("\x00", 8) {
				t.Error("the key's own words are in the Local")
			}
		}
	})
}

func TestSnapshotBare(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := inParts(bloom.Config{
		Bits: 95_851, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare,
	})
	f := handle(t, s.Client(), cfg)
	_, err := f.Snapshot(t.Context())
	_, statsErr := f.Stats(t.Context())
	for _, err := range []error{err, statsErr} { // Create does not make such a filter
		if !errors.Is(err, bloom.ErrNotFound) || strings.Contains(err.Error(), "Create") {
			t.Errorf("%v, want ErrNotFound, and no word of Create", err)
		}
	}
	add(t, f, "item", true)
	var l *bloom.Local
	bloomtest.Costs(t, s, "Snapshot", 1+6, 2+6, func() error {
		l, err = f.Snapshot(t.Context(), parts)
		return err
	})
	if !l.Exists("item") || l.Exists("another") {
		t.Errorf("the Local has item: %v, another: %v", l.Exists("item"), l.Exists("another"))
	}
	s.DenyFunc(func(command []string) bool { return command[0] == "BITFIELD" })
	for _, c := range []*upstash.Client{s.Client(), s.ReadOnlyClient()} {
		if l, err = handle(t, c, cfg).Snapshot(t.Context(), parts); err != nil || !l.Exists("item") {
			t.Errorf("without BITFIELD: %v, want the item", err)
		}
	}
	s.DenyFunc(nil)
	do(t, s, "SETRANGE", key, "95851", "x")
	if _, err := f.Snapshot(t.Context(), parts); !errors.Is(err, bloom.ErrNotFilter) {
		t.Errorf("%v, want ErrNotFilter", err)
	}
}

// A new client near a region that lags has no sync token yet. Its Snapshot has
// the items that were acknowledged before, whatever the layout.
func TestSnapshotBesideALaggingRegion(t *testing.T) {
	headed := bare()
	headed.Layout = bloom.LayoutHeaded
	for _, cfg := range []bloom.Config{bare(), headed} {
		for name, old := range map[string]bool{"the filter": true, "nothing": false} {
			t.Run(cfg.Layout.String()+", the region has "+name, func(t *testing.T) {
				s := upstashtest.NewServer(t, upstashtest.WithRegions(
					upstashtest.Region{Name: "eu", Lag: math.MaxInt}))
				writer := handle(t, s.Client(), cfg)
				if old {
					add(t, writer, "old", true)
					s.CatchUp()
				}
				add(t, writer, "new", true)
				f := handle(t, s.RegionClient("eu"), cfg)
				l, err := f.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if !l.Exists("new") || l.Exists("old") != old {
					t.Errorf("new: %v, want true; old: %v, want %v", l.Exists("new"), l.Exists("old"), old)
				}
			})
		}
	}
}

// If the filter is replaced during a Snapshot, the error is ErrRecreated,
// because the parts would be of two filters.
func TestSnapshotNoticesAnotherFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		writer := handle(t, s.Client(), cfg)
		add(t, writer, "item", true)
		again := afterCommand(s, "EVAL_RO", 3, func() {
			do(t, s, "DEL", key)
			add(t, writer, "item", true)
		})
		if _, err := writer.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		full := handle(t, s.Client(), cfg)
		if _, err := full.Load(t.Context(), mails(0, 1000)); err != nil {
			t.Fatal(err)
		}
		if _, err := handle(t, again, cfg).Snapshot(t.Context(), parts); !errors.Is(err, bloom.ErrRecreated) {
			t.Errorf("%v, want ErrRecreated", err)
		}
		if _, err := full.Load(t.Context(), mails(0, 1000)); err != nil {
			t.Fatal(err)
		}
		gone := afterCommand(s, "EVAL_RO", 3, func() { do(t, s, "DEL", key) })
		if _, err := handle(t, gone, cfg).Snapshot(t.Context(), parts); !errors.Is(err, bloom.ErrRecreated) {
			t.Errorf("%v, want ErrRecreated", err)
		}
		if _, err := full.Snapshot(t.Context()); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("%v, want ErrNotFound", err)
		}
	})
}

// A filter is renamed away and back during a Snapshot. It is the same before
// and after, but the parts in between are missing, or another filter's.
func TestSnapshotOfAFilterThatLeavesAndReturns(t *testing.T) {
	for name, between := range map[string]func(t *testing.T, s *upstashtest.Server){
		"nothing": func(*testing.T, *upstashtest.Server) {},
		"another filter": func(t *testing.T, s *upstashtest.Server) {
			add(t, handle(t, s.Client(), middling()), "other", true)
		},
		"a filter with the same birth number": func(t *testing.T, s *upstashtest.Server) {
			do(t, s, "SET", key, do(t, s, "GETRANGE", "away", "0", "30").(string))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := upstashtest.NewServer(t)
			cfg, parts := inParts(middling())
			if _, err := handle(t, s.Client(), cfg).Load(t.Context(), mails(0, 1000)); err != nil {
				t.Fatal(err)
			}
			attempts := 0
			c := impatient(s, upstash.WithObserver(func(context.Context, upstash.Event) {
				switch attempts++; attempts {
				case 3:
					do(t, s, "RENAME", key, "away")
					between(t, s)
				case 6:
					do(t, s, "RENAME", "away", key)
				}
			}))
			l, err := handle(t, c, cfg).Snapshot(t.Context(), parts)
			if l != nil || !errors.Is(err, bloom.ErrRecreated) {
				t.Errorf("%v, %v, want ErrRecreated", l, err)
			}
			if attempts < 3 {
				t.Errorf("the filter stayed: %d attempts", attempts)
			}
		})
	}
}

// A Snapshot leaves out what an Add of another geometry left behind the last
// cell.
func TestSnapshotLeavesOutWhatIsBehindTheCells(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		f := handle(t, s.Client(), cfg)
		add(t, f, "item", true)
		before, err := f.Snapshot(t.Context(), parts)
		if err != nil {
			t.Fatal(err)
		}
		geo := f.Geometry()
		last := 8*(geo.Bytes(bloom.LayoutHeaded)-geo.Bytes(bloom.LayoutBare)) + geo.Bits
		do(t, s, "SETBIT", key, strconv.FormatUint(last, 10), "1") // in the last byte
		do(t, s, "SETBIT", key, strconv.FormatUint(last+100_000, 10), "1")
		after, err := f.Snapshot(t.Context(), parts)
		if err != nil || !bytes.Equal(after.Bytes(), before.Bytes()) {
			t.Errorf("bits behind the last cell are in the Snapshot: %v", err)
		}
	})
}

// With RESP2 a Snapshot receives hardly more bytes than the string has.
func TestSnapshotBytes(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), bloom.Config{Capacity: 1_000_000, FPRate: 0.01})
	if _, err := f.Load(t.Context(), mails(0, 1000)); err != nil {
		t.Fatal(err)
	}
	s.ResetStats()
	if _, err := f.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := s.Stats()
	size := float64(f.Geometry().Bytes(bloom.LayoutHeaded))
	t.Logf("%d requests, %.5f of the string", st.Requests, float64(st.BytesOut)/size)
	if float64(st.BytesOut) > 1.02*size || st.Requests != 3 {
		t.Errorf("%d bytes in %d requests, want 3 for a string of %.0f", st.BytesOut, st.Requests, size)
	}
}

// noRESP2 stands for a server that refuses the RESP2 form.
type noRESP2 struct{ upstash.Transport }

func (n noRESP2) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	for _, h := range req.Header {
		if h.Name == "Upstash-Response-Format" {
			resp.StatusCode, resp.Body = 400, []byte(`{"error":"ERR unknown format"}`)
			return nil
		}
	}
	return n.Transport.RoundTrip(ctx, req, resp)
}

func TestSnapshotWithoutRESP2(t *testing.T) {
	s := upstashtest.NewServer(t)
	web := &http.Client{}
	defer web.CloseIdleConnections()
	cfg, parts := inParts(middling())
	f := handle(t, s.Client(upstash.WithTransport(noRESP2{httptransport.New(web)})), cfg)
	if _, err := f.Load(t.Context(), mails(0, 1000)); err != nil {
		t.Fatal(err)
	}
	s.ResetStats()
	l, err := f.Snapshot(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	if withoutOwn(t, string(l.Bytes())) != withoutOwn(t, stored(t, s)) {
		t.Error("the strings differ")
	}
	if n := s.Stats().Requests; n != 1+7 {
		t.Errorf("%d requests reached the server, want 8", n)
	}
}

func TestSaveRestore(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		f := handle(t, s.Client(), cfg)
		if _, err := f.Load(t.Context(), mails(0, 3000)); err != nil {
			t.Fatal(err)
		}
		var stream bytes.Buffer
		if err := f.Save(t.Context(), &stream, parts); err != nil {
			t.Fatal(err)
		}
		saved := stream.Bytes()
		before := stored(t, s)
		do(t, s, "DEL", key)
		cut := bytes.NewReader(saved[:len(saved)-1])
		_, err := f.Restore(t.Context(), cut)
		if !errors.Is(err, bloom.ErrBadStream) || !upstash.SafeToRetry(err) {
			t.Errorf("a stream cut short: %v, want an ErrBadStream that is safe to retry", err)
		}
		if v := do(t, s, "EXISTS", key); v != int64(0) {
			t.Error("a stream cut short has made a filter")
		}
		if _, err := f.Restore(t.Context(), bytes.NewReader(saved), parts); err != nil {
			t.Fatal(err)
		}
		if withoutOwn(t, stored(t, s)) != withoutOwn(t, before) {
			t.Error("the restored string is another")
		}
		var mismatch *bloom.MismatchError
		other := handle(t, s.Client(), small())
		_, err = other.Restore(t.Context(), bytes.NewReader(saved))
		if !errors.As(err, &mismatch) || !upstash.SafeToRetry(err) {
			t.Errorf("into another geometry: %v, want a MismatchError that is safe to retry", err)
		}
	})
}

// A lagging region may have no filter yet, or the previous one. Snapshot
// returns neither in place of the primary's filter.
func TestSnapshotNearALaggingRegion(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	writer := handle(t, s.Client(), small())
	add(t, writer, "first", true)
	blind := handle(t, s.RegionClient("far", upstash.WithoutSyncToken()), small())
	behind := func() {
		t.Helper()
		l, err := blind.Snapshot(t.Context())
		if !errors.Is(err, bloom.ErrRecreated) || !strings.HasSuffix(err.Error(), " upstash.WithoutSyncToken") {
			t.Errorf("%v, %v, want ErrRecreated, and what to do", l, err)
		}
		l, err = handle(t, s.RegionClient("far"), small()).Snapshot(t.Context())
		if err != nil || !l.Exists("first") {
			t.Errorf("with a sync token: %v, %v, want the first item", l, err)
		}
	}
	behind()
	s.CatchUp()
	if l, err := blind.Snapshot(t.Context()); err != nil || !l.Exists("first") {
		t.Errorf("Snapshot = %v, %v, want one with the item first", l, err)
	}
	l := bloom.NewLocal(writer.Geometry())
	l.Add("first")
	if err := writer.Replace(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	behind()
}

// The late reply of an older write must not bring back the state before others
// wrote, between two requests of a Snapshot. The token of a refused first request
// names that state too.
func TestSnapshotBesideALateReply(t *testing.T) {
	refused := func(cmd []string) bool { return cmd[0] == "BITFIELD" && cmd[2] == "GET" }
	for _, c := range []struct {
		cfg  bloom.Config
		deny func(cmd []string) bool
	}{{small(), nil}, {bare(), nil}, {small(), refused}} {
		s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: 2}))
		writer := handle(t, s.Client(), c.cfg)
		add(t, writer, "first", true)
		held := holdReply(1)
		var adding sync.WaitGroup
		var once sync.Once
		client := s.RegionClient("far", held.through(t), upstash.WithObserver(
			func(_ context.Context, e upstash.Event) {
				if e.Label == "bloom.Snapshot" {
					once.Do(func() {
						close(held.release)
						adding.Wait()
					})
				}
			}))
		f := handle(t, client, c.cfg)
		adding.Go(func() { add(t, f, "older", true) })
		<-held.here
		add(t, writer, "newer", true)
		add(t, writer, "newest", true)
		s.DenyFunc(c.deny)
		l, err := f.Snapshot(t.Context())
		if err != nil || !l.Exists("newest") {
			t.Errorf("%v, refused: %t: %v, want a copy with what was added before the call",
				c.cfg.Layout, c.deny != nil, err)
		}
	}
}

// An observer may use its context for a client of another database, whose sync
// tokens say nothing of this one.
func TestSnapshotWithAnObserver(t *testing.T) {
	other := upstashtest.NewServer(t).Client()
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	add(t, handle(t, s.Client(), small()), "a", true)
	c := s.RegionClient("far", upstash.WithObserver(func(ctx context.Context, e upstash.Event) {
		if _, err := other.Do(ctx, upstash.Cmd("EXISTS", e.Label)); err != nil {
			t.Error(err)
		}
	}))
	l, err := handle(t, c, small()).Snapshot(t.Context())
	if err != nil || !l.Exists("a") {
		t.Errorf("%v, want a copy with what was added before the call", err)
	}
}
