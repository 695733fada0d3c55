package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// ours is the header of the smallest filter there is, whose string has 31 bytes.
var ours = format.Header{Bits: 53, Hashes: 2}.Word()

// stateOf is an answer to the commands of ReadState, whose BITFIELD has these
// fields, with F for ours. The other commands have numbers.
func stateOf(fields string, numbers ...int64) step {
	answer := `[{"result":[` + strings.ReplaceAll(fields, "F", fmt.Sprint(ours)) + `]}`
	for _, n := range numbers {
		answer += fmt.Sprintf(`,{"result":%d}`, n)
	}
	return step{answer: answer + "]"}
}

// A state is a filter's if all words, the bits beside them and the length are.
func TestState(t *testing.T) {
	for name, c := range map[string]struct {
		answer step
		want   error
	}{
		"a filter":               {stateOf("F,0,B,0,0,0", 31), nil},
		"and its cells":          {stateOf("F,0,B,0,0,0", 31, 7, -1), nil},
		"of another program":     {stateOf("F,0,0,0,0,0", 31), nil},
		"bits behind the kind's": {stateOf("F,0,B,0,0,1", 31), nil}, // a plain filter has none
		"a larger one's too":     {stateOf("F,0,B,0,0,0", 32), nil}, // an Add lengthened it
		"longer than it may be":  {stateOf("F,0,0,0,0,0", 32), format.ErrNotFilter},
		"words alone":            {stateOf("F,0,B,0,0,0", 24), format.ErrNotFilter},
		"nothing":                {stateOf("0,0,0,0,0,0", 0), engine.ErrNotFound},
		"nothing to count":       {stateOf("0,0,0,0,0,0", 0, 0, -2), engine.ErrNotFound},
		"zeros":                  {stateOf("0,0,0,0,0,0", 5), engine.ErrNoHeader},
		"an empty string":        {stateOf("0,0,0,0,0,0", 0, 0, -1), engine.ErrNoHeader},
		"bits behind the header": {stateOf("F,1,B,0,0,0", 31), format.ErrHeaderBits},
		"bits behind the birth":  {stateOf("F,0,B,1,0,0", 31), format.ErrHeaderBits},
		"a field too few":        {stateOf("F,0,B,0,0", 31), upstash.ErrBadResponse},
		"a negative count":       {stateOf("F,0,B,0,0,0", 31, -1, -1), engine.ErrNegative},
		"a list":                 {step{answer: `[{"error":"WRONGTYPE of a key"},{"result":1}]`}, format.ErrNotFilter},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, c.answer.to(`"BITFIELD"`))
			s, err := r.ReadState(t.Context(), strings.Count(c.answer.answer, "}") > 2)
			if !errors.Is(err, c.want) || (err == nil) != (s.Header.Word() == ours) {
				t.Errorf("ReadState = %+v, %v; want %v", s, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "region") {
				t.Errorf("%v: speaks of a region", err)
			}
		})
	}
}

// The lengths of a state with its cells, and of its TTL.
func TestStateIsCounted(t *testing.T) {
	r, _ := newRecord(t, stateOf("F,0,B,0,0,0", 31, 7, 60000).to(`"BITCOUNT","key","24","-1"`))
	s, err := r.ReadState(t.Context(), true)
	if err != nil || s.SetBits != 7 || s.TTL != time.Minute || s.Length != 31 || s.Birth != birth {
		t.Errorf("ReadState = %+v, %v", s, err)
	}
}

var aborted = step{refused: "EXECABORT Transaction discarded because of previous errors."}

// If the primary does not take a BITFIELD, the nearest region says what it knows,
// and a "no filter" speaks of it.
func TestStateOfTheNearestRegion(t *testing.T) {
	for name, first := range map[string]step{
		"no permission":          {refused: noBitfield},
		"none in a transaction":  aborted,
		"none beside the others": {answer: `[{"error":"` + noBitfield + `"},{"result":31}]`},
	} {
		r, s := newRecord(t, first, stateOf("F,0,B,0,0,0", 31).to(`"BITFIELD_RO"`))
		if _, err := r.ReadState(t.Context(), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.then(first, stateOf("0,0,0,0,0,0", 0))
		_, err := r.ReadState(t.Context(), false)
		if !errors.Is(err, engine.ErrNotFound) || !strings.Contains(err.Error(), "nearest region") {
			t.Errorf("%s: %v, want that the nearest region does not have it", name, err)
		}
	}
	r, _ := newRecord(t, lost, lost, lost)
	if _, err := r.ReadState(t.Context(), false); err == nil {
		t.Error("no error without an answer")
	}
}

// Without a transaction the filter must be the same before and after.
func TestStateOutsideATransaction(t *testing.T) {
	state := `{"result":[%d,0,B,0,0,0]},{"result":31}`
	for ends, want := range map[string]error{
		"H,B": nil, "H,X": engine.ErrRecreated, "X,B": engine.ErrRecreated, "H": upstash.ErrBadResponse, "H,null": upstash.ErrBadResponse,
	} {
		around := fmt.Sprintf(`[{"result":[H,B]},`+state+`,{"result":[%s]}]`, ours, ends)
		r, _ := newRecord(t, aborted, aborted, step{answer: around, sent: `[["BITFIELD_RO","key","GET","u53","0"`})
		if _, err := r.ReadState(t.Context(), false); !errors.Is(err, want) {
			t.Errorf("%s after H,B: %v, want %v", ends, err, want)
		}
	}
	r, _ := newRecord(t, aborted, aborted, step{answer: fmt.Sprintf("["+state+"]", ours)})
	r.Header = 0
	if _, err := r.ReadState(t.Context(), false); err != nil {
		t.Errorf("without a header: %v", err)
	}
}

// Numbers come with the words of the same moment, which are compared.
func TestReadCounts(t *testing.T) {
	length := upstash.Cmd("STRLEN", "key")
	for words, want := range map[string]error{
		"H,B,4503599627370515": nil, "X,B,4503599627370515": errOther, "H,B,4503599627370528": errOther,
		"0,0,0": engine.ErrNotFound, "H,B": upstash.ErrBadResponse,
	} {
		r, _ := newRecord(t, step{answer: `[{"result":[` + words + `]},{"result":31}]`, sent: `"BITFIELD_RO"`})
		r.Shape = &shape{word: word, mutable: 4}
		c, err := r.ReadCounts(t.Context(), false, length)
		if !errors.Is(err, want) || err == nil && (c.Birth != birth || c.Kind != word|3 || c.N[0] != 31) {
			t.Errorf("%s: %+v, %v; want %v", words, c, err, want)
		}
		if r.Verified.Load() || r.MayWrite() != nil {
			t.Errorf("%s is remembered", words)
		}
	}
	r, _ := newRecord(t, step{answer: `[{"result":31}]`, sent: `[["STRLEN"`})
	r.Header = 0
	if c, err := r.ReadCounts(t.Context(), false, length); err != nil || c.N[0] != 31 {
		t.Errorf("without a header: %+v, %v", c, err)
	}
	r, _ = newRecord(t, lost, lost, lost)
	if c, err := r.ReadCounts(t.Context(), false, length); err == nil {
		t.Errorf("without an answer: %+v", c)
	}
	for words, missing := range map[string]error{"": engine.ErrBareMissing, `{"result":[H,B,0]},`: engine.ErrNotFound} {
		for answer, want := range map[string]error{`31},{"result":-2`: missing, `-1},{"result":-1`: engine.ErrNegative, `31},{"result":-1`: nil} {
			r, _ = newRecord(t, step{answer: "[" + words + `{"result":` + answer + "}]"}.to(`["PTTL","key"]`))
			if words == "" {
				r.Header = 0
			}
			if c, err := r.ReadCounts(t.Context(), true, length); !errors.Is(err, want) || c.TTL != 0 {
				t.Errorf("%s%s: %+v, %v; want %v", words, answer, c, err, want)
			}
		}
	}
}

// The length of a Bare string is the primary's, if it takes a BITFIELD.
func TestMeasureBare(t *testing.T) {
	for name, c := range map[string]struct {
		steps []step
		want  error
	}{
		"there":         {[]step{step{answer: `[{"result":9},{"result":[0]}]`}.to(`"BITFIELD"`)}, nil},
		"no permission": {[]step{{refused: noBitfield}, step{answer: `[{"result":9}]`}.to(`[["STRLEN","key"]]`)}, nil},
		"missing":       {[]step{{answer: `[{"result":0},{"result":[0]}]`}}, engine.ErrNotFound},
		"below 0":       {[]step{{answer: `[{"result":-1},{"result":[0]}]`}}, engine.ErrNegative},
		"a list":        {[]step{{answer: `[{"error":"WRONGTYPE of a key"},{"result":[0]}]`}}, format.ErrNotFilter},
	} {
		r, _ := newRecord(t, c.steps...)
		if n, err := r.MeasureBare(t.Context()); !errors.Is(err, c.want) || (n == 9) != (err == nil) {
			t.Errorf("%s: %d, %v; want %v", name, n, err, c.want)
		}
	}
}
