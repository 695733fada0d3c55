package bloom_test

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Scan finds each filter that the pattern matches, with what Inspect says of it,
// among thousands of other keys. It takes a command for each key and four more for
// each filter.
func TestScan(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		for i := range 40 {
			mustAdd(t, handleAt(t, c, "seen:"+strconv.Itoa(i), bloom.Config{Capacity: 100, FPRate: 0.01, Seed: uint64(i % 2)}), "a")
		}
		mustAdd(t, handleAt(t, c, "other", small()), "a")
		for i := range 2100 {
			do(t, s, "SET", "seen:text:"+strconv.Itoa(i), "text")
		}
		do(t, s, "RPUSH", "seen:list", "a")
		do(t, s, "SET", "seen:\xff", storedAt(t, s, "seen:1"))
		do(t, s, "SET", "seen:like", "\x88\x10 begins like a filter, and is none")
		denied := ""
		s.DenyFunc(func(command []string) bool { return slices.Contains(command, denied) && command[0] == "BITCOUNT" })
		scan := func() map[string]bloom.Inspection {
			found := make(map[string]bloom.Inspection)
			for one, err := range bloom.Scan(t.Context(), c, "seen:*") {
				noError(t, err)
				found[one.Key] = one
			}
			return found
		}
		s.ResetStats()
		found := scan()
		n := s.Stats()
		if scans := n.Commands - 2142 - 41*4; len(found) != 40 || scans < 1 || scans > 9 {
			t.Errorf("%d filters by %d requests of %d commands, want 40, and few SCAN", len(found), n.Requests, n.Commands)
		}
		for key, got := range found {
			if want, err := bloom.Inspect(t.Context(), c, key); err != nil || got.Err != nil || !reflect.DeepEqual(got.Stats, want) {
				t.Errorf("%s: %+v, want %+v, %v", key, got, want, err)
			}
		}
		denied = "seen:7"
		if found := scan(); len(found) != 40 || !errors.Is(found[denied].Err, upstash.ErrNoPermission) {
			t.Errorf("with one that is denied: %d, %v", len(found), found[denied].Err)
		}
	})
}

// Whoever stops early stops the requests, and an error ends the iteration, with
// what was found before.
func TestScanEnds(t *testing.T) {
	s := upstashtest.NewServer(t)
	for i := range 40 {
		mustAdd(t, handleAt(t, s.Client(), strconv.Itoa(i), small()), "a")
	}
	s.ResetStats()
	for range bloom.Scan(t.Context(), s.Client(), "*") {
		break
	}
	if n := s.Stats().Requests; n != 3 {
		t.Errorf("%d requests until the first filter, want 3", n)
	}
	for last, want := range []int{0, 0, 0, 32} {
		s.ResetStats()
		s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
			if n > int64(last) {
				return upstashtest.ErrorObject("ERR no")
			}
			return upstashtest.Fault{}
		})
		found, failed := 0, 0
		for one, err := range bloom.Scan(t.Context(), s.Client(), "*") {
			if err == nil {
				found++
				continue
			}
			failed++
			if !reflect.DeepEqual(one, bloom.Inspection{}) || !upstash.SafeToRetry(err) {
				t.Errorf("%+v, %v, want an error that is safe to retry, and nothing else", one, err)
			}
		}
		if found != want || failed != 1 {
			t.Errorf("after %d requests: %d filters and %d errors, want %d and 1", last, found, failed, want)
		}
	}
}
