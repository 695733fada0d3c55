package systemtest

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The largest filter is a string of 512 MiB. The test checks its requests
// without a database.
func TestLargestFilter(t *testing.T) {
	cfg := bloom.Config{Bits: 1<<32 - 192, Hashes: 7, Scheme: bloom.SchemeXXH3}
	h := bloomtest.HeaderWordOf(cfg)

	c, w := bloomtest.CannedWatched(t, `{"result":[`+h+`,4503599627370496,0]}`)
	if created, err := bloomtest.Handle(t, c, cfg).Create(t.Context()); err != nil || created {
		t.Fatalf("Create = %v, %v, want false: the birth number is another's", created, err)
	}
	if last := w.Bodies[0]; !strings.HasSuffix(last, `,"4294967295","0","0"]`) {
		t.Errorf("Create sent %s, want the last bit's offset as a string", last)
	}

	zeros := strings.Repeat(",0", 7)
	c, w = bloomtest.CannedWatched(t, `{"result":[null,`+h+`,null`+zeros+`]}`)
	bloomtest.Add(t, bloomtest.Handle(t, c, cfg), "user-123@example.com", true)
	c, r := bloomtest.CannedWatched(t, `{"result":[`+h+zeros+`]}`)
	bloomtest.Exists(t, bloomtest.Handle(t, c, cfg), "user-123@example.com", false)
	g := bloom.Geometry{Bits: cfg.Bits, Hashes: 7, Scheme: bloom.SchemeXXH3}
	want, above := bloomtest.PositionsOf(g, "user-123@example.com"), 0
	for op, body := range map[string]string{"SET": w.Bodies[0], "GET": r.Bodies[0]} {
		offsets := regexp.MustCompile(`"`+op+`","u1","(\d+)"`).FindAllStringSubmatch(body, -1)
		if len(offsets) != len(want) {
			t.Fatalf("%d offsets in %s, want %d", len(offsets), body, len(want))
		}
		for i, o := range offsets {
			if o[1] != strconv.FormatUint(192+want[i], 10) {
				t.Errorf("%s %d at %s, want %d", op, i, o[1], 192+want[i])
			}
			if want[i] >= 1<<31 {
				above++
			}
		}
	}
	if above == 0 {
		t.Error("no offset above 2^31: choose another item")
	}
	for _, body := range append(w.Bodies, r.Bodies...) {
		if number := regexp.MustCompile(`[,\[]-?\d{2,}[,\]]|[eE][+-]\d`).FindString(body); number != "" {
			t.Errorf("%s travels as a JSON number", number)
		}
	}
}

// On plans with a record limit of 100 MB the server refuses it, and nothing is
// left behind.
func TestLargestFilterIsRefused(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := bloomtest.Handle(t, s.Client(), bloom.Config{Bits: 1<<32 - 192, Hashes: 7, Scheme: bloom.SchemeXXH3})
	var server *upstash.Error
	if _, err := f.Create(t.Context()); !errors.As(err, &server) || !upstash.SafeToRetry(err) {
		t.Errorf("Create: %v, want the server's refusal", err)
	}
	if n := bloomtest.Do(t, s, "EXISTS", bloomtest.Key); n != int64(0) {
		t.Error("a refused Create left something behind")
	}
}
