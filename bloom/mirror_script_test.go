package bloom

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// scripted answers the requests of a Mirror in turn, and then none. What is in others
// was shown to the Mirror while the first was under way.
type scripted struct {
	m       *Mirror
	now     time.Time
	others  []news
	answers []string
	asked   int
}

func (s *scripted) tick() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

func (s *scripted) RoundTrip(_ context.Context, req *upstash.Request, resp *upstash.Response) error {
	c := &s.m.copy
	for _, n := range s.others {
		n.sent, n.after = s.tick(), c.answers
		c.mu.Lock()
		c.saw(n, s.tick())
		c.mu.Unlock()
	}
	s.others = nil
	if string(req.Body) == `["TIME"]` { // of a Window, after a refresh
		return errors.New("no time")
	}
	if s.asked++; s.asked > len(s.answers) {
		return errors.New("no more answers")
	}
	resp.StatusCode = 200
	resp.Body = append(resp.Body, s.answers[s.asked-1]...)
	return nil
}

// Rules 3, 6 and 13: what comes while a refresh is under way decides whether it has to
// ask again. A whole copy is of filter 7, which is empty.
func TestRefreshMeetsOtherAnswers(t *testing.T) {
	const cold, whole, old, ofWindow = 0, 1, 2, 4
	const epoch, E0, E1 = 30, -1, -2 // that, and the one after it
	for _, tt := range []struct {
		name    string
		begins  int
		others  []news
		answers []string // H, E0 and E1 are words, G gaps between panes, and P what else a part says
		want    error
	}{
		{"a count of no filter crosses an answer of one", whole, []news{{birth: 7}}, []string{"[0]", "[0]"}, nil},
		{"made again and back", whole, []news{{birth: 8}, {birth: 7}}, []string{"[H,0,7,0,0]", `[H,0,7,0,P""]`}, nil},
		{
			"made again and back, of which nothing was known", cold,
			[]news{{birth: 8}, {birth: 7}},
			[]string{`[H,0,7,0,P""]`, `[H,0,7,0,P""]`},
			nil,
		},
		{
			"a turn before a count", whole | ofWindow,
			[]news{{birth: 7, word: E1}},
			[]string{"[H,0,7,E0,G0]", "[H,0,7,E1,G0]"},
			nil,
		},
		{
			"a turn before a first part", cold | ofWindow,
			[]news{{birth: 7, word: E1}},
			[]string{`[H,0,7,E0,P""]`, `[H,0,7,E1,P""]`},
			nil,
		},
		{"never whole, and an answer is too old", old, nil, []string{"[H,0,7,0,0]", `[H,0,7,0,P""]`}, nil},
		{"deleted before a part", whole | ofWindow, nil, []string{"[H,0,7,E0,G9,0,0]", "[0]"}, ErrNotFound},
		{"null, in base64 too", cold, nil, []string{"null", `[{"result":null}]`}, upstash.ErrNil},
	} {
		s := &scripted{now: time.Now(), others: tt.others}
		c, err1 := upstash.New("https://db.example.com", "token", upstash.WithTransport(s), upstash.WithRetry(0))
		var of Mirrorable
		f, err2 := New(c, "key", Config{Bits: 530, Hashes: 2, MissingIsEmpty: true})
		w, err3 := NewWindow(c, "key", WindowConfig{Capacity: 10, FPRate: 0.1, Span: time.Minute})
		if of = f; tt.begins&ofWindow != 0 {
			of = w
		}
		m, err4 := NewMirror(of, MirrorConfig{MaxStale: 50 * time.Second, StaleIfError: time.Second})
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		s.m, m.now, m.sent = m, s.tick, func(upstash.Reply) time.Time { return time.Time{} }
		words := map[int64]int64{E0: w.shape.wordAt(epoch), E1: w.shape.wordAt(epoch + 1)}
		for i, n := range s.others {
			s.others[i].word = words[n.word]
		}
		text := func(n int64) string { return strconv.FormatInt(n, 10) }
		gaps := strings.Repeat("0,", (len(w.shape.areas)-1)*int(min(w.shape.geo.Bits%8, 1)))
		written := strings.NewReplacer("H", text(m.h.rec.Header), "E0", text(words[E0]), "E1", text(words[E1]), "G", gaps, "P", "0,0,0,24,")
		for _, a := range tt.answers {
			if a = written.Replace(a); !strings.HasPrefix(a, "[{") {
				a = `{"result":` + a + "}"
			}
			s.answers = append(s.answers, a)
		}
		switch k := &m.copy; tt.begins &^ ofWindow {
		case whole:
			k.birth, k.verifiedAt, k.refreshedAt = 7, s.now, s.now
			if tt.begins&ofWindow != 0 {
				k.word = words[E0]
			}
		case old:
			k.birth, k.verifiedAt, k.bits.areas[0].oldest = 7, s.now, s.now.Add(-time.Hour)
			k.bits.areas[0].Add("lost")
		}
		err := m.Refresh(t.Context())
		if !errors.Is(err, tt.want) || s.asked != len(s.answers) {
			t.Errorf("%s: %v after %d requests, want %v after %d", tt.name, err, s.asked, tt.want, len(s.answers))
		}
		if m.copy.bits.in("lost") != 0 {
			t.Errorf("%s: the copy has an item that is not there", tt.name)
		}
		if got, want := m.out.isOn(), tt.want == upstash.ErrNil; got != want { // an answer of no use is none
			t.Errorf("%s: an outage: %t, want %t", tt.name, got, want)
		}
	}
}

// Rule 6: a copy that was never whole starts over after an hour and MaxStale.
func TestMirrorStartsOver(t *testing.T) {
	c, err1 := upstash.New("https://db.example.com", "token", upstash.WithTransport(new(scripted)))
	f, err2 := New(c, "key", Config{Bits: 530, Hashes: 2})
	m, err3 := NewMirror(f, MirrorConfig{MaxStale: time.Minute})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	m.copy.birth = 7
	m.copy.bits.areas[0].Add("lost")
	m.copy.bits.areas[0].oldest = time.Now().Add(-2 * time.Hour)
	m.question().ended(t.Context(), news{birth: 7, sent: time.Now()}, func(*copied) {})
	if m.copy.bits.in("lost") != 0 {
		t.Error("the copy has an item of two hours ago")
	}
}
