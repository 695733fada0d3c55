package engine_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// The header, the birth number and another header of these tests.
const (
	header = int64(1<<52 | 7)
	birth  = int64(1<<52 | 99)
	other  = int64(1<<52 | 8)
)

// A step is one attempt that a test expects, and what comes back.
type step struct {
	sent string // the body has this text
	// The body of the answer, with H for the header, X for another one, B for a
	// birth number, and OWN for that of the command, or of the last one that had
	// one.
	answer  string
	refused string        // the server's error, in place of an answer
	lost    bool          // the request may have arrived, and no answer comes
	unsent  bool          // the request did not arrive
	hangs   bool          // no answer comes before the call's context ends
	slow    time.Duration // it takes so long, in a synctest bubble
}

// A server answers with its steps, one after another. A test fails if it sends
// anything else, or less.
type server struct {
	t     *testing.T
	mu    sync.Mutex
	steps []step
	own   int64 // the last birth number that came
}

func (s *server) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	next, own, ok := s.next(req.Body)
	if !ok {
		s.t.Errorf("sent more than expected: %s", req.Body)
		return upstash.NotSent(errors.New("no step is left"))
	}
	if !strings.Contains(string(req.Body), next.sent) {
		s.t.Errorf("sent %s\nwant %s in it", req.Body, next.sent)
	}
	time.Sleep(next.slow)
	switch {
	case next.hangs:
		<-ctx.Done()
		return ctx.Err()
	case next.lost:
		return errLost
	case next.unsent:
		return upstash.NotSent(errors.New("nobody listens"))
	case next.refused != "":
		resp.StatusCode = 400
		resp.Body = fmt.Appendf(resp.Body, `{"error":%q}`, next.refused)
	default:
		words := strings.NewReplacer("H", fmt.Sprint(header), "B", fmt.Sprint(birth), "X", fmt.Sprint(other),
			"OWN", fmt.Sprint(own))
		resp.StatusCode = 200
		resp.Body = append(resp.Body, words.Replace(next.answer)...)
	}
	return nil
}

var longNumber = regexp.MustCompile(`"[0-9]{16}"`)

// birthsIn returns the birth numbers of a command: all numbers of 16 digits but
// the headers and the words of these tests.
func birthsIn(body []byte) (births []int64) {
	for _, text := range longNumber.FindAllString(string(body), -1) {
		n, _ := strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
		if n != header && n != other && n != word {
			births = append(births, n)
		}
	}
	return births
}

func (s *server) next(body []byte) (next step, own int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) == 0 {
		return step{}, 0, false
	}
	for _, b := range birthsIn(body) {
		s.own = b
	}
	next, s.steps = s.steps[0], s.steps[1:]
	return next, s.own, true
}

// then has the server expect more.
func (s *server) then(steps ...step) { s.steps = append(s.steps, steps...) }

// answers is a step that answers one command, and replies one that answers a
// pipeline.
func answers(words string) step { return step{answer: `{"result":[` + words + `]}`} }

func (s step) to(sent string) step {
	s.sent = sent
	return s
}

var lost = step{lost: true}

var errLost = errors.New("the connection broke")

// newRecord makes a record at a server that expects the steps.
func newRecord(t *testing.T, steps ...step) (*engine.Record, *server) {
	t.Helper()
	s := &server{t: t, steps: steps}
	t.Cleanup(func() {
		if len(s.steps) > 0 {
			t.Errorf("%d steps were not reached, the next of them %+v", len(s.steps), s.steps[0])
		}
	})
	return &engine.Record{
		Client: client(t, s), Key: "key", Header: header, Items: letters{}, Meaning: meaning{},
	}, s
}

func client(t *testing.T, s upstash.Transport, opts ...upstash.Option) *upstash.Client {
	t.Helper()
	opts = append([]upstash.Option{
		upstash.WithTransport(s), upstash.WithRetry(2), upstash.WithBackoff(time.Microsecond, time.Microsecond),
	}, opts...)
	c, err := upstash.New("https://db.example.com", "token", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// letters is the items of these tests: an item is a letter and has one bit, "a"
// the first.
type letters struct{}

func (letters) bit(item string) []uint64 { return []uint64{uint64(item[0] - 'a')} }

func (l letters) AppendWrite(q *engine.Request, item string) { q.SetBits(192, l.bit(item)) }
func (l letters) AppendRead(q *engine.Request, item string)  { q.GetBits(192, l.bit(item)) }
func (letters) ItemBytes(bool) int                           { return 32 }

func (letters) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) error {
	return q.JudgeSetBits(answers)
}

func (letters) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	return q.JudgeReadBits(answers)
}

// meaning explains every word that is not the record's in the same way.
type meaning struct{}

var errOther = errors.New("another filter")

func (meaning) OtherHeader(int64) error  { return engine.AsOtherFilter(errOther) }
func (meaning) OtherWord(int64) error    { return engine.AsOtherFilter(errOther) }
func (meaning) TooLarge(err error) error { return err }

// add writes one item, and fails the test unless the outcome is the wanted one.
// A nil error stands for none.
func add(t *testing.T, r *engine.Record, item string, wantNew bool, wantErr error) engine.Written {
	t.Helper()
	added, w, err := write(t, r, item)
	if added != wantNew || !errors.Is(err, wantErr) {
		t.Errorf("Write(%q) = %v, %v; want %v, %v", item, added, err, wantNew, wantErr)
	}
	return w
}

// write is Write, and returns what is known of the write too.
func write(t *testing.T, r *engine.Record, item string) (added bool, w engine.Written, err error) {
	t.Helper()
	if err := r.MayWrite(); err != nil {
		return false, w, err
	}
	q := r.BeginWrite(t.Context(), engine.Options{})
	q.Items = []string{item}
	r.Items.AppendWrite(q, item)
	engine.WriteAll(t.Context(), []*engine.Request{q})
	return q.Wrote.Applied && !q.Wrote.Uncertain && q.Added[0], q.Wrote, engine.Both(q.Err, q.NoTTL)
}

// find looks one item up, and fails the test unless the outcome is the wanted
// one.
func find(t *testing.T, r *engine.Record, item string, want bool, wantErr error) error {
	t.Helper()
	found, err := r.Read(t.Context(), item, engine.Options{})
	if found != want || !errors.Is(err, wantErr) {
		t.Errorf("Read(%q) = %v, %v; want %v, %v", item, found, err, want, wantErr)
	}
	return err
}

// addAll writes items in one command.
func addAll(t *testing.T, r *engine.Record, items ...string) (added, uncertain []bool, err error) {
	t.Helper()
	q := r.BeginWrite(t.Context(), engine.Options{})
	defer q.Free()
	for _, item := range items {
		q.AppendWrite(item)
	}
	engine.WriteAll(t.Context(), []*engine.Request{q})
	return append(added, q.Added...), append(uncertain, q.Uncertain...), q.Err
}

func wantSafe(t *testing.T, err error, want bool) {
	t.Helper()
	if got := upstash.SafeToRetry(err); got != want {
		t.Errorf("SafeToRetry is %v, want %v: %v", got, want, err)
	}
}
