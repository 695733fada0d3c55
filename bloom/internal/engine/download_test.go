package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// resp2 is an answer in RESP2: integers, and last a string of bytes if there is
// one. F is ours, and W the header of a window of that size.
func resp2(numbers string, text ...string) step {
	window := format.Header{Kind: format.Window, Bits: 53, Hashes: 2}.Word()
	numbers = strings.NewReplacer("F", fmt.Sprint(ours), "W", fmt.Sprint(window)).Replace(numbers)
	list := strings.Split(numbers, ",")
	answer := fmt.Sprintf("*%d\r\n:%s\r\n", len(list)+len(text), strings.Join(list, "\r\n:"))
	for _, s := range text {
		answer += fmt.Sprintf("$%d\r\n%s\r\n", len(s), s)
	}
	return step{answer: answer}
}

// encoded is the answer of a server that sends bytes in base64, in a pipeline of
// one command.
func encoded(words string) step { return step{answer: `[{"result":[` + words + `]}]`} }

// A step of a part has the words, the bits that are 0, and the length up to which it was
// read. At another header it has neither length nor bytes.

// Each part of a download proves which filter it is of.
func TestDownload(t *testing.T) {
	for name, c := range map[string]struct {
		answer step
		want   error
	}{
		"whole":              {encoded(`H,0,B,0,0,0,0,25,"QQ=="`), nil},
		"made again":         {encoded(`H,0,X,0,0,0,0,25,"QQ=="`), engine.ErrRecreated},
		"gone":               {encoded("0,0,0,0,0,0,0"), engine.ErrRecreated},
		"another filter":     {encoded("X,0,B,0,0,0,0"), engine.ErrRecreated},
		"stray header bits":  {encoded("H,0,B,0,1,0,0"), engine.ErrRecreated},
		"and birth bits too": {encoded("H,0,B,0,0,1,0"), engine.ErrRecreated},
		"shorter":            {encoded(`H,0,B,0,0,0,0,24,""`), engine.ErrRecreated},
	} {
		t.Run(name, func(t *testing.T) {
			refused := step{refused: "ERR unknown format"}
			for _, steps := range [][]step{{c.answer}, {refused, c.answer}} {
				r, _ := newRecord(t, steps...)
				r.NoRESP2.Store(len(steps) == 1)
				var got []byte
				err := r.Download(t.Context(), moves, birth, nil, 24, 25, func(at int, part []byte) { got = part })
				if !errors.Is(err, c.want) || (err == nil) != (len(got) == 1) {
					t.Errorf("Download: %v, %d bytes, want %v", err, len(got), c.want)
				}
				if err != nil && !strings.Contains(err.Error(), "nearest region") {
					t.Errorf("Download: %v, want an error that names the region", err)
				}
			}
		})
	}
}

// A first part that has come is not read again, and the others are of the same filter.
func TestDownloadAfterAFirstPart(t *testing.T) {
	for name, c := range map[string]struct {
		first string
		rest  []step
		want  error
	}{
		"whole":       {"a", []step{resp2("H,0,B,0,0,0,0,26", "b").to(`"25","25","0"`), resp2("H,0,B,0,0,0,0,27", "c")}, nil},
		"a longer":    {"a+", []step{resp2("H,0,B,0,0,0,0,26", "b"), resp2("H,0,B,0,0,0,0,27", "c")}, nil},
		"made again":  {"a", []step{resp2("H,0,X,0,0,0,0,26", "b")}, engine.ErrRecreated},
		"none at all": {"", nil, engine.ErrRecreated},
	} {
		r, _ := newRecord(t, c.rest...)
		got := make([]byte, 3)
		err := r.Download(t.Context(), engine.Moves{PartBytes: 1, Parallel: 1}, birth, []byte(c.first), 24, 27,
			func(at int, part []byte) { copy(got[at-24:], part) })
		if !errors.Is(err, c.want) || err == nil && string(got) != "abc" {
			t.Errorf("%s: %q, %v; want %v", name, got, err, c.want)
		}
	}
}

// Number 0, of a filter by another program, is a number like others.
func TestDownloadOfBirthZero(t *testing.T) {
	for found, want := range map[string]error{"0": nil, "B": engine.ErrRecreated} {
		r, _ := newRecord(t, resp2("H,0,"+found+",0,0,0,0,25", "A"))
		err := r.Download(t.Context(), moves, 0, nil, 24, 25, func(int, []byte) {})
		if !errors.Is(err, want) {
			t.Errorf("a part of %s: %v, want %v", found, err, want)
		}
	}
}

// A part of any filter says of which it is.
func TestPartOfAnyFilter(t *testing.T) {
	r, _ := newRecord(t, resp2("H,0,B,7,0,0,0,25", "A").to(`["EVAL","#!lua`))
	part, err := engine.PartReader{Rec: r}.ReadAny(t.Context(), 24, 25)
	if err != nil || part.Birth != birth || part.Kind != 7 || string(part.Bytes) != "A" {
		t.Errorf("%+v, %v", part, err)
	}
}

// A server that sends RESP2 is asked for nothing else, whatever it says of the
// key. Only if it sends no RESP2 the question is asked again, for base64.
func TestDownloadInRESP2(t *testing.T) {
	refused := step{refused: "ERR unknown format"}
	for name, c := range map[string]struct {
		steps []step
		want  error
	}{
		"whole":         {[]step{resp2("H,0,B,0,0,0,0,25", "A")}, nil},
		"missing":       {[]step{resp2("0,0,0,0,0,0,0")}, engine.ErrRecreated},
		"made again":    {[]step{resp2("H,0,X,0,0,0,0,25", "A")}, engine.ErrRecreated},
		"too long":      {[]step{resp2("H,0,B,0,0,0,0,25", "AA"), encoded(`H,0,B,0,0,0,0,25,"QUE="`)}, upstash.ErrBadResponse},
		"too few words": {[]step{resp2("H,0", "A"), encoded(`H,0,"QQ=="`)}, upstash.ErrBadResponse},
		"no bits":       {[]step{resp2("H,0,B,0"), encoded(`H,0,B,0`)}, upstash.ErrBadResponse},
		"no bytes":      {[]step{resp2("H,0,B,0,0,0,0,25"), encoded(`H,0,B,0,0,0,0,25`)}, upstash.ErrBadResponse},
		"too many":      {[]step{resp2("H,0,B,0,0,0,0,25,0", "A"), encoded(`H,0,B,0,0,0,0,25,"QQ==",0`)}, upstash.ErrBadResponse},
		"no array":      {[]step{{answer: ":7\r\n"}, {answer: `[{"result":7}]`}}, upstash.ErrBadResponse},
		"no answer":     {[]step{lost, lost, lost}, nil},
		"no base64":     {[]step{refused, lost, lost, lost}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, c.steps...)
			got := ""
			err := r.Download(t.Context(), moves, birth, nil, 24, 25, func(_ int, part []byte) { got = string(part) })
			if (err == nil) != (name == "whole") || (err == nil) != (got == "A") || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("Download: %q, %v; want %v", got, err, c.want)
			}
		})
	}
	r, _ := newRecord(t, refused, lost, lost, lost)
	err := r.Download(t.Context(), moves, birth, nil, 24, 25, nil)
	if err == nil || !strings.Contains(err.Error(), "unknown format") {
		t.Errorf("%v, want the first error, which says more", err)
	}
}

// The first part comes with all that proves the string a filter's, and with its length.
// Of ours, which ends at 31, a byte more is asked for.
func TestStart(t *testing.T) {
	const cells = "1234567"
	for name, c := range map[string]struct {
		steps []step
		want  error
	}{
		"whole":                  {[]step{resp2("F,0,B,0,0,0,0,31", cells).to(`,"24","31","1"]`)}, nil},
		"ends earlier":           {[]step{resp2("F,0,B,0,0,0,0,26", "12")}, nil},
		"a larger one met it":    {[]step{resp2("F,0,B,0,0,0,0,99", cells+"8")}, nil},
		"of another program":     {[]step{resp2("F,0,0,0,0,0,0,31", cells)}, nil},
		"and it is longer":       {[]step{resp2("F,0,0,0,0,0,0,32", cells+"8")}, format.ErrNotFilter},
		"words alone":            {[]step{resp2("F,0,B,0,0,0,0,24", "")}, format.ErrNotFilter},
		"nothing":                {[]step{resp2("0,0,0,0,0,0,0,0")}, engine.ErrNotFound},
		"zeros":                  {[]step{resp2("0,0,0,0,0,0,0,5")}, engine.ErrNoHeader},
		"another filter":         {[]step{resp2("W,0,B,4503599627370497,0,0,0")}, errOther},
		"and stray bits":         {[]step{resp2("W,0,B,4503599627370497,0,1,0")}, format.ErrHeaderBits},
		"or no word":             {[]step{resp2("W,0,B,1,0,0,0")}, format.ErrHeaderBits},
		"bits behind the header": {[]step{resp2("F,0,B,0,1,0,0")}, format.ErrHeaderBits},
		"bits behind the birth":  {[]step{resp2("F,0,B,0,0,1,0")}, format.ErrHeaderBits},
		"a list":                 {[]step{{refused: "WRONGTYPE of a key"}}, format.ErrNotFilter},
		"no bytes":               {[]step{resp2("F,0,B,0,0,0,0,31"), encoded("H")}, upstash.ErrBadResponse},
		"no length":              {[]step{resp2("F,0,B,0,0,0,0"), encoded("H")}, upstash.ErrBadResponse},
		"no bits":                {[]step{resp2("F,0,B,0,0,0"), encoded("H")}, upstash.ErrBadResponse},
		"a negative word":        {[]step{resp2("F,0,-1,0,0,0,0,31", cells), encoded("H")}, upstash.ErrBadResponse},
		"no answer":              {[]step{lost, lost, lost}, errLost},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, c.steps...)
			r.Header = int64(ours)
			s, err := r.ReadStart(t.Context(), 24, 32, false)
			if !errors.Is(err, c.want) || err == nil && (s.Header.Word() != ours || s.Length < 26 || len(s.Bytes) < 2) {
				t.Errorf("ReadStart: %+v, %v; want %v", s, err, c.want)
			}
			if err == nil && name != "of another program" && s.Birth != birth {
				t.Errorf("the birth number is %d, want %d", s.Birth, birth)
			}
		})
	}
}

// The start of any kind of string: one that is copied has no bytes if it is longer.
func TestStartOfAnyHeader(t *testing.T) {
	for name, c := range map[string]struct {
		answers []step
		bytes   int
		want    error
	}{
		"a filter":        {[]step{resp2("F,0,B,0,0,0,0,25", strings.Repeat("A", 25)).to(`,"0","0","29","1"]`)}, 25, nil},
		"a short window":  {[]step{resp2("W,0,B,4503599627370497,0,0,0,25", strings.Repeat("A", 25))}, 25, nil},
		"a long window":   {[]step{resp2("W,0,B,4503599627370497,0,0,0,30")}, 0, nil},
		"without a word":  {[]step{resp2("W,0,B,1,0,0,0,30")}, 0, format.ErrHeaderBits},
		"a stray bit":     {[]step{resp2("W,0,B,4503599627370497,0,0,1,30")}, 0, format.ErrHeaderBits},
		"a short one has": {[]step{resp2("W,0,B,4503599627370497,0,0,0,29"), encoded("H")}, 0, upstash.ErrBadResponse},
		"other data":      {[]step{resp2("7,0,B,0,9,9,9")}, 0, format.ErrNotFilter},
	} {
		r, _ := newRecord(t, c.answers...)
		s, err := r.ReadStart(t.Context(), 0, 30, true)
		if !errors.Is(err, c.want) || err == nil && (len(s.Bytes) != c.bytes || s.Birth != birth) {
			t.Errorf("%s: %+v, %v; want %v", name, s, err, c.want)
		}
	}
}

const noEval = "NOPERM this user has no permissions to run the 'eval' command"

// If the server refuses EVAL, the primary tells the state, and the nearest region the
// same filter's first part.
func TestStartWithoutEVAL(t *testing.T) {
	seen, near := stateOf("F,0,B,0,0,0", 31).to(`["BITFIELD",`), func(numbers string, text ...string) step {
		return resp2(numbers, text...).to(`["EVAL_RO",`)
	}
	for name, c := range map[string]struct {
		steps []step
		want  error
	}{
		"the same":        {[]step{seen, near("F,0,B,0,0,0,0,31", "1234567")}, nil},
		"more of it":      {[]step{seen, near("F,0,B,0,0,0,0,32", "12345678")}, nil},
		"less of it":      {[]step{seen, near("F,0,B,0,0,0,0,30", "123456")}, engine.ErrRecreated},
		"made again":      {[]step{seen, near("F,0,X,0,0,0,0,31", "1234567")}, engine.ErrRecreated},
		"another header":  {[]step{seen, near("W,0,B,4503599627370497,0,0,0,32")}, engine.ErrRecreated},
		"missing there":   {[]step{seen, near("0,0,0,0,0,0,0,0")}, engine.ErrRecreated},
		"refused there":   {[]step{seen, {refused: noEval}}, upstash.ErrNoPermission},
		"missing":         {[]step{stateOf("0,0,0,0,0,0", 0)}, engine.ErrNotFound},
		"no answer to it": {[]step{lost, lost, lost}, errLost},
	} {
		for _, refusal := range []string{noEval, "OOM command not allowed when used memory > 'maxmemory'."} {
			for _, whatever := range []bool{false, true} {
				r, _ := newRecord(t, append([]step{step{refused: refusal}.to(`["EVAL",`)}, c.steps...)...)
				r.Header = int64(ours)
				s, err := r.ReadStart(t.Context(), 24, 32, whatever)
				if !errors.Is(err, c.want) || err == nil && len(s.Bytes) < 7 {
					t.Errorf("%s: %+v, %v; want %v", name, s, err, c.want)
				}
			}
		}
	}
	r, s := newRecord(t, step{refused: noEval}, seen)
	if _, err := r.ReadStart(t.Context(), 24, 32, false); !errors.Is(err, errOther) {
		t.Errorf("another filter: %v, want %v", err, errOther)
	}
	s.then(step{refused: noEval}, seen, near("F,0,B,0,0,0,0,31", "1234567"))
	if _, err := r.ReadStart(t.Context(), 24, 32, true); err != nil {
		t.Errorf("whatever it is: %v", err)
	}
}

// A client that may only read asks the nearest region, once.
func TestStartNear(t *testing.T) {
	for name, c := range map[string]struct {
		answer step
		want   error
	}{
		"there":   {resp2("F,0,B,0,0,0,0,31", "1234567"), nil},
		"missing": {resp2("0,0,0,0,0,0,0,0"), engine.ErrNotFound},
		"refused": {step{refused: noEval}, upstash.ErrNoPermission},
	} {
		r, s := newRecord(t, c.answer.to(`["EVAL_RO",`))
		r.Client, r.Header = client(t, s, upstash.WithReadOnly()), int64(ours)
		_, err := r.ReadStart(t.Context(), 24, 32, false)
		if !errors.Is(err, c.want) || name == "missing" && !strings.Contains(err.Error(), "nearest region") {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A string is copied, and the copy is read and removed.
func TestFetch(t *testing.T) {
	whole, unlink := strings.Repeat("A", 25), drop.to(`["UNLINK","key:save:`)
	copied := func(words string) step { return answers("H,0,B,0," + words).to("COPY") }
	for name, c := range map[string]struct {
		steps []step
		want  error
	}{
		"copied":           {[]step{copied("B,25"), resp2("H,0,B,0,0,0,0,25", whole).to("key:save:"), unlink}, nil},
		"made again":       {[]step{copied("X,25"), unlink}, engine.ErrRecreated},
		"gone":             {[]step{answers("0"), unlink}, engine.ErrRecreated},
		"a length below 0": {[]step{copied("B,-1"), unlink}, engine.ErrNegative},
		"a length of none": {[]step{copied("B,536870913"), unlink}, engine.ErrNegative},
		"refused":          {[]step{{refused: noEval}, unlink}, upstash.ErrNoPermission},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, c.steps...)
			got, err := r.Fetch(t.Context(), engine.Moves{PartBytes: 30, Parallel: 1}, birth, 30, func() {})
			if !errors.Is(err, c.want) || err == nil && !bytes.Equal(got, []byte(whole)) {
				t.Errorf("Fetch: %q, %v; want %v", got, err, c.want)
			}
		})
	}
}
