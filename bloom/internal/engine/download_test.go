package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// resp2 is an answer in RESP2: integers, and last a string of bytes if there is
// one.
func resp2(numbers string, text ...string) step {
	list := strings.Split(numbers, ",")
	answer := fmt.Sprintf("*%d\r\n:%s\r\n", len(list)+len(text), strings.Join(list, "\r\n:"))
	for _, s := range text {
		answer += fmt.Sprintf("$%d\r\n%s\r\n", len(s), s)
	}
	return step{answer: answer}
}

// A server that sends RESP2 is asked for nothing else, whatever it says of the
// key. Only if it sends no RESP2 the question is asked again, for base64.
func TestDownloadInRESP2(t *testing.T) {
	refused := step{refused: "ERR unknown format"}
	for name, c := range map[string]struct {
		steps []step
		want  error
	}{
		"whole":         {[]step{resp2("H,0,B,0", "A")}, nil},
		"missing":       {[]step{resp2("0")}, engine.ErrRecreated},
		"made again":    {[]step{resp2("H,0,X,0", "A")}, engine.ErrRecreated},
		"too long":      {[]step{resp2("H,0,B,0", "AA"), encoded(`H,0,B,0,"QUE="`)}, upstash.ErrBadResponse},
		"too few words": {[]step{resp2("H,0", "A"), encoded(`H,0,"QQ=="`)}, upstash.ErrBadResponse},
		"too many":      {[]step{resp2("H,0,B,0,0", "A"), encoded(`H,0,B,0,0,"QQ=="`)}, upstash.ErrBadResponse},
		"no answer":     {[]step{lost, lost, lost}, nil},
		"no base64":     {[]step{refused, lost, lost, lost}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, c.steps...)
			got := ""
			err := r.Download(t.Context(), moves, birth, 24, 25, func(_ int, part []byte) { got = string(part) })
			if (err == nil) != (name == "whole") || (err == nil) != (got == "A") || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("Download: %q, %v; want %v", got, err, c.want)
			}
		})
	}
	r, _ := newRecord(t, refused, lost, lost, lost)
	err := r.Download(t.Context(), moves, birth, 24, 25, nil)
	if err == nil || !strings.Contains(err.Error(), "unknown format") {
		t.Errorf("%v, want the first error, which says more", err)
	}
}

// A short string is read by one script. One that is longer, or grew meanwhile, is
// copied, and the copy is read and removed.
func TestFetch(t *testing.T) {
	whole, unlink := strings.Repeat("A", 25), drop.to(`["UNLINK","key:save:`)
	copied := func(words string) step { return answers("H,0,B,0," + words).to("COPY") }
	for name, c := range map[string]struct {
		length int
		steps  []step
		want   error
	}{
		"short":            {24, []step{resp2("H,0,B,0", whole)}, nil},
		"grown":            {24, []step{resp2("H,0,B,0", whole+"AAAAA"), copied("B,25"), resp2("H,0,B,0", whole).to("key:save:"), unlink}, nil},
		"long":             {30, []step{copied("B,25"), resp2("H,0,B,0", whole), unlink}, nil},
		"made again":       {30, []step{copied("X,25"), unlink}, engine.ErrRecreated},
		"gone":             {30, []step{answers("0"), unlink}, engine.ErrRecreated},
		"a length below 0": {30, []step{copied("B,-1"), unlink}, engine.ErrNegative},
		"a length of none": {30, []step{copied("B,536870913"), unlink}, engine.ErrNegative},
		"refused":          {24, []step{{refused: noBitfield}}, upstash.ErrNoPermission},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, c.steps...)
			got, err := r.Fetch(t.Context(), engine.Moves{PartBytes: 30, Parallel: 1}, birth, c.length, func() {})
			if !errors.Is(err, c.want) || err == nil && !bytes.Equal(got, []byte(whole)) {
				t.Errorf("Fetch: %q, %v; want %v", got, err, c.want)
			}
		})
	}
}
