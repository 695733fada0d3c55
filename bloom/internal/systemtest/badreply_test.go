package systemtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestNoAnswerOutOfABadReply gives every call every kind of bad reply. None may
// become an answer, and every error must be a documented one.
func TestNoAnswerOutOfABadReply(t *testing.T) {
	faults := []upstashtest.Fault{
		upstashtest.ShortResult(), upstashtest.LongResult(), upstashtest.ShortBatch(), upstashtest.LongBatch(),
		upstashtest.WrongType(), upstashtest.ErrorObject("ERR no"), upstashtest.ErrorObject(""),
		upstashtest.NotJSON(upstashtest.BeforeExec), upstashtest.NotJSON(upstashtest.AfterExec),
		upstashtest.HugeBody(64 << 10), upstashtest.Redirect("http://elsewhere.invalid/"),
		upstashtest.BadGateway(upstashtest.AfterExec), upstashtest.InternalError(upstashtest.BeforeExec),
		upstashtest.Drop(upstashtest.AfterExec), upstashtest.CutBody(0), upstashtest.CutBody(15),
		upstashtest.RateLimit(0),
	}
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client(upstash.WithRetry(0), upstash.WithMaxResponse(32<<10))
		for _, fault := range faults {
			for _, cfg := range []bloom.Config{bloomtest.Small(), bloomtest.Expiring(time.Hour)} {
				cfg.MissingIsEmpty = true // a "no" is then most likely
				for name := range bloomtest.OperationsOf(t, nil) {
					s.FlushAll()
					bloomtest.Add(t, bloomtest.Handle(t, c, cfg), "a", true)
					s.Inject(fault)
					err := bloomtest.OperationsOf(t, bloomtest.Handle(t, c, cfg))[name]()
					if !isDocumented(err) {
						t.Errorf("%s, %v: %v, want a documented error", name, fault, err)
					}
				}
				f := bloomtest.Handle(t, c, cfg)
				s.Inject(fault)
				if found, err := f.Exists(t.Context(), "a"); found || err == nil {
					t.Errorf("%v: Exists = %v, %v, want an error", fault, found, err)
				}
				s.Inject(fault)
				if added, err := f.Add(t.Context(), "a"); added || err == nil {
					t.Errorf("%v: Add = %v, %v, want an error", fault, added, err)
				}
				bloomtest.Exists(t, f, "a", true)
			}
		}
	})
}

func isDocumented(err error) bool {
	var server *upstash.Error
	var call *upstash.CallError
	return errors.As(err, &server) || errors.As(err, &call) || errors.Is(err, upstash.ErrBadResponse)
}

// TestImpossibleAnswers has JSON of the right shape, with values Redis never
// returns.
func TestImpossibleAnswers(t *testing.T) {
	cfg := bloom.Config{Bits: 1000, Hashes: 2, Scheme: bloom.SchemeXXH3, MissingIsEmpty: true}
	h := bloomtest.HeaderWordOf(cfg)
	for name, answer := range map[string]string{
		"null for the header":        `[null,1,1]`,
		"negative header":            `[-1,1,1]`,
		"header of 54 bits":          `[9007199254740992,1,1]`,
		"null for a bit":             `[` + h + `,null,1]`,
		"2 for a bit":                `[` + h + `,2,1]`,
		"-1 for a bit":               `[` + h + `,-1,0]`,
		"float for a bit":            `[` + h + `,1.0,1]`,
		"true for a bit":             `[` + h + `,true,1]`,
		"string for a bit":           `[` + h + `,"1",1]`,
		"header as a float":          `[` + h + `.0,1,1]`,
		"number out of int64":        `[99999999999999999999,1,1]`,
		"array in an array":          `[[` + h + `,1,1]]`,
		"object":                     `{"0":` + h + `}`,
		"empty array":                `[]`,
		"null":                       `null`,
		"array, then something else": `[` + h + `,1,1]]`,
	} {
		t.Run(name, func(t *testing.T) {
			f := bloomtest.Handle(t, bloomtest.Canned(t, `{"result":`+answer+`}`), cfg)
			found, err := f.Exists(t.Context(), "a")
			if found || err == nil || errors.Is(err, bloom.ErrNotFound) || bloomtest.IsRefusal(err) {
				t.Errorf("Exists = %v, %v, want an error", found, err)
			}
			got, err := f.ExistsAll(t.Context(), []string{"a"})
			if bloomtest.Count(got) != 0 || err == nil || errors.Is(err, bloom.ErrNotFound) {
				t.Errorf("ExistsAll = %v, %v, want an error", got, err)
			}
			// The answer to a write has a set-if-zero before and after the
			// header.
			first, rest, _ := strings.Cut(answer, ",")
			write := strings.Replace(first, "[", "[null,", 1) + ",null," + rest
			f = bloomtest.Handle(t, bloomtest.Canned(t, `{"result":`+write+`}`), cfg)
			if added, err := f.Add(t.Context(), "a"); added || err == nil || bloomtest.IsRefusal(err) {
				t.Errorf("Add = %v, %v, want an error that is no refusal", added, err)
			}
			// Open asks for four more fields and the length of the string.
			opened := `[{"result":` + strings.Replace(answer, ",1,1", ",0,1,0,0", 1) + `},{"result":20}]`
			if strings.HasPrefix(answer, "["+h+",") {
				return // the right answer to what Open asks
			}
			if _, err := bloom.Open(t.Context(), bloomtest.Canned(t, opened), bloomtest.Key); err == nil ||
				errors.Is(err, bloom.ErrNotFound) || bloomtest.IsRefusal(err) {
				t.Errorf("Open: %v, want an error that is no refusal", err)
			}
		})
	}
}

func TestImpossibleCounts(t *testing.T) {
	h := bloomtest.HeaderWordOf(bloomtest.Small())
	for _, body := range []string{
		`[{"result":[%s]},{"result":-1},{"result":10},{"result":-1}]`,
		`[{"result":[%s]},{"result":1},{"result":-1},{"result":-1}]`,
		`[{"result":[%s]},{"result":"1"},{"result":10},{"result":-1}]`,
		`[{"result":[%s]},{"result":1},{"result":null},{"result":-1}]`,
		`[{"result":[%s,0]},{"result":1},{"result":10},{"result":-1}]`,
		`[{"result":[null]},{"result":1},{"result":10},{"result":%s}]`,
		`[{"result":[%s]},{"error":"ERR no"},{"result":10},{"result":-1}]`,
		`[{"error":"ERR no"},{"result":%s},{"result":10},{"result":-1}]`,
	} {
		f := bloomtest.Handle(t, bloomtest.Canned(t, fmt.Sprintf(body, h)), bloomtest.Small())
		st, err := f.Stats(t.Context())
		if err == nil || errors.Is(err, bloom.ErrNotFound) || st != (bloom.Stats{}) {
			t.Errorf("%s: %v, %v, want no Stats and an error other than ErrNotFound", body, st, err)
		}
	}
	count := fmt.Sprintf(`[{"result":[%s]},{"result":-1}]`, h)
	n, err := bloomtest.Handle(t, bloomtest.Canned(t, count), bloomtest.Small()).Cardinality(t.Context())
	if !errors.Is(err, upstash.ErrBadResponse) {
		t.Errorf("Cardinality of -1 bits = %d, %v, want ErrBadResponse", n, err)
	}
}
