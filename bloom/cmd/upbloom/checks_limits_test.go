package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// doctor reports the limits as numbers: those that a refusal names, or what it
// tried.
func TestDoctorFindsLimits(t *testing.T) {
	const request, record = "limit of a request", "limit of a record"
	unnamed := func(sh *shell) {
		sh.through(func(*http.Request) {}, func(r *http.Response) error {
			if r.StatusCode == http.StatusRequestEntityTooLarge {
				r.Body = io.NopCloser(strings.NewReader("too large"))
				r.ContentLength = -1
				r.Header.Del("Content-Length")
			}
			return nil
		})
	}
	for name, c := range map[string]struct {
		maxRequest, maxRecord int64
		large, unnamed        bool
		check, verdict, says  string
	}{
		"enough":          {10 << 20, 1e8, false, false, request, found, "at least 8 MiB; --large asks for 16 MiB"},
		"named":           {10 << 20, 1e8, true, false, request, found, "10,485,760 bytes"},
		"unnamed":         {10<<20 + 1000, 1e8, true, true, request, found, "between 10 and 11 MiB"},
		"all":             {20 << 20, 1e8, true, false, request, found, "at least 16 MiB"},
		"small":           {3e6, 1e8, false, false, request, notice, "3,000,000 bytes: leave MovePartBytes at 1 MiB"},
		"small, unnamed":  {3e6, 1e8, false, true, request, notice, "between 2 and 3 MiB: leave MovePartBytes"},
		"not asked":       {10 << 20, 5e7, false, false, record, notAsked, "--large checks it"},
		"record":          {10 << 20, 5e7, true, false, record, found, "between 50 and 51 MB"},
		"record of 37":    {10 << 20, 37_500_000, true, false, record, found, "between 37 and 38 MB"},
		"small record":    {10 << 20, 1_500_000, true, false, record, found, "between 1 and 2 MB"},
		"record in plans": {10 << 20, 1e8, true, false, record, found, "at least 100 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, upstashtest.WithMaxRequest(c.maxRequest), upstashtest.WithMaxRecord(c.maxRecord))
			var args []string
			if c.large {
				args = append(args, "--large")
			}
			if c.unnamed {
				unnamed(sh)
			}
			f := sh.diagnosis(0, args...)[c.check]
			if f.Verdict != c.verdict || !strings.HasPrefix(f.Says, c.says) {
				t.Errorf("%+v, want %s and %q", f, c.verdict, c.says)
			}
		})
	}
}

// A limit below one step is only called that, and another error is no limit.
func TestLargest(t *testing.T) {
	other := errors.New("no answer")
	for _, tt := range []struct {
		limit  uint64
		beyond error
		says   string
		err    error
	}{
		{700_000, upstash.ErrRequestTooLarge, "less than 1 MiB", nil},
		{5 << 20, upstash.ErrRequestTooLarge, "between 5 and 6 MiB", nil},
		{8 << 20, upstash.ErrRequestTooLarge, "at least 8 MiB", nil},
		{5 << 20, other, "", other},
	} {
		s, err := largest(8<<20, 1<<20, upstash.ErrRequestTooLarge, func(n uint64) error {
			if n > tt.limit {
				return tt.beyond
			}
			return nil
		})
		if !errors.Is(err, tt.err) || err == nil && s.text(1<<20, "MiB") != tt.says {
			t.Errorf("a limit of %d: %+v, %v, want %q, %v", tt.limit, s, err, tt.says, tt.err)
		}
	}
}
