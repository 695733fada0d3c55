package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
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
				for name, call := range bloomtest.Calls(bloomtest.Reads, bloomtest.Adds, bloomtest.Orders) {
					s.FlushAll()
					bloomtest.Add(t, bloomtest.Handle(t, c, cfg), "a", true)
					s.Inject(fault)
					if err := call(t.Context(), bloomtest.Handle(t, c, cfg)); !isDocumented(err) {
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
	_, server := errors.AsType[*upstash.Error](err)
	_, call := errors.AsType[*upstash.CallError](err)
	return server || call || errors.Is(err, upstash.ErrBadResponse)
}

// Numbers and words that Redis never returns are no state of a filter.
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
		if err == nil || errors.Is(err, bloom.ErrNotFound) || !reflect.DeepEqual(st, bloom.Stats{}) {
			t.Errorf("%s: %v, %v, want no Stats and an error other than ErrNotFound", body, st, err)
		}
	}
	count := fmt.Sprintf(`[{"result":[%s]},{"result":-1}]`, h)
	n, err := bloomtest.Handle(t, bloomtest.Canned(t, count), bloomtest.Small()).Cardinality(t.Context())
	if !errors.Is(err, upstash.ErrBadResponse) {
		t.Errorf("Cardinality of -1 bits = %d, %v, want ErrBadResponse", n, err)
	}
	for _, header := range []string{"null", "-1", "9007199254740992"} {
		c := bloomtest.Canned(t, `[{"result":[`+header+`,0,1,0,0]},{"result":1000}]`)
		if _, err := bloom.Open(t.Context(), c, bloomtest.Key); !errors.Is(err, upstash.ErrBadResponse) {
			t.Errorf("Open of the header %s: %v, want ErrBadResponse", header, err)
		}
	}
}

// saysOne answers every request in the same way.
type saysOne struct {
	status int
	body   string
}

func (a saysOne) RoundTrip(_ context.Context, _ *upstash.Request, resp *upstash.Response) error {
	resp.StatusCode, resp.Body = a.status, append(resp.Body[:0], a.body...)
	return nil
}

// A call is a call of any type, without its answer.
type call = func(context.Context) error

// bare is a method without arguments as a call, and about one with an argument.
func bare[T any](method func(context.Context) (T, error)) call {
	return func(ctx context.Context) error { return bloomtest.ErrorOf(method(ctx)) }
}

func about[A, T any](method func(context.Context, A) (T, error), arg A) call {
	return func(ctx context.Context) error { return bloomtest.ErrorOf(method(ctx, arg)) }
}

// callsOf returns calls of every type, on two databases: those that only read,
// and some of those that write.
func callsOf(t *testing.T, c, second *upstash.Client) (reads, writes map[string]call) {
	const n, p, key = 100, 0.01, bloomtest.Key
	f := bloomtest.Handle(t, c, bloomtest.Small())
	m, err1 := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: time.Second})
	w, err2 := bloom.NewWindow(c, key, bloom.WindowConfig{Capacity: n, FPRate: p, Span: time.Hour})
	s, err3 := bloom.NewScalable(c, key, bloom.ScalableConfig{Capacity: n, FPRate: p})
	k, err4 := bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: n, FPRate: p})
	shards, items := []*upstash.Client{c, second}, []string{"a", "b"}
	d, err5 := bloom.NewSharded(shards, key, bloom.ShardedConfig{Capacity: n, FPRate: p, Shards: 2})
	local := bloom.NewLocal(f.Geometry())
	var stream bytes.Buffer
	_, err6 := local.WriteTo(&stream)
	saved, err7 := bloom.ReadBackup(&stream)
	bloomtest.NoError(t, errors.Join(err1, err2, err3, err4, err5, err6, err7))

	reads = map[string]call{
		"Mirror.Refresh":       m.Refresh,
		"Scalable.Cardinality": bare(s.Cardinality),
		"Scalable.Stats":       bare(s.Stats),
		"Cuckoo.Count":         bare(k.Count),
		"Cuckoo.Stats":         bare(k.Stats),
		"Window.Stats":         bare(w.Stats),
		"Sharded.Cardinality":  bare(d.Cardinality),
		"Sharded.Stats":        bare(d.Stats),
		"Snapshot":             func(ctx context.Context) error { return bloomtest.ErrorOf(f.Snapshot(ctx)) },
		"Open":                 func(ctx context.Context) error { return bloomtest.ErrorOf(bloom.Open(ctx, c, key)) },
		"OpenWindow":           func(ctx context.Context) error { return bloomtest.ErrorOf(bloom.OpenWindow(ctx, c, key)) },
		"OpenScalable":         func(ctx context.Context) error { return bloomtest.ErrorOf(bloom.OpenScalable(ctx, c, key)) },
		"OpenCuckoo":           func(ctx context.Context) error { return bloomtest.ErrorOf(bloom.OpenCuckoo(ctx, c, key)) },
		"OpenSharded":          func(ctx context.Context) error { return bloomtest.ErrorOf(bloom.OpenSharded(ctx, shards, key)) },
		"Inspect":              func(ctx context.Context) error { return bloomtest.ErrorOf(bloom.Inspect(ctx, c, key)) },
		"InspectAll": func(ctx context.Context) error {
			all, err := bloom.InspectAll(ctx, c, []string{key})
			if err == nil {
				err = all[0].Err
			}
			return err
		},
	}
	writes = map[string]call{
		"Load":          func(ctx context.Context) error { return bloomtest.ErrorOf(f.Load(ctx, slices.Values(items))) },
		"Merge":         func(ctx context.Context) error { return bloomtest.ErrorOf(f.Merge(ctx, local)) },
		"Restore":       func(ctx context.Context) error { return bloomtest.ErrorOf(saved.Restore(ctx, c, "copy", 0)) },
		"Replace":       func(ctx context.Context) error { return f.Replace(ctx, local) },
		"Cuckoo.Remove": about(k.Remove, "a"),
	}
	for name, set := range map[string]bloomtest.Set{"Mirror": m, "Window": w, "Scalable": s, "Cuckoo": k, "Sharded": d} {
		reads[name+".Exists"], reads[name+".ExistsAll"] = about(set.Exists, "a"), about(set.ExistsAll, items)
		writes[name+".Add"], writes[name+".AddAll"] = about(set.Add, "a"), about(set.AddAll, items)
	}
	for name, read := range bloomtest.Reads {
		reads["Filter."+name] = func(ctx context.Context) error { return read(ctx, f) }
	}
	for name, write := range bloomtest.Calls(bloomtest.Adds, bloomtest.Orders) {
		writes["Filter."+name] = func(ctx context.Context) error { return write(ctx, f) }
	}
	return reads, writes
}

// A call that only reads has changed nothing, whatever its error.
func TestReadsAreSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := bloomtest.Impatient(s)
	put := func(command ...string) func() {
		return func() {
			for _, key := range []string{bloomtest.Key, bloomtest.Key + ":0", bloomtest.Key + ":1", "other"} {
				bloomtest.Do(t, s, slices.Insert(slices.Clone(command), 1, key)...)
			}
		}
	}
	always := func(f upstashtest.Fault) func() { return func() { bloomtest.StrikeAll(s, f) } }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx context.Context
		set func()
	}{
		"no filter":       {t.Context(), func() {}},
		"another type":    {t.Context(), put("RPUSH", "an element")},
		"other data":      {t.Context(), put("SET", "a text that is long enough for a header and some cells")},
		"a short answer":  {t.Context(), always(upstashtest.ShortResult())},
		"a lost answer":   {t.Context(), always(upstashtest.Drop(upstashtest.AfterExec))},
		"an ended call":   {ended, func() {}},
		"a cut answer":    {t.Context(), always(upstashtest.CutBody(5))},
		"other words":     {t.Context(), always(upstashtest.ErrorObject("ERR injected"))},
		"no JSON, and ok": {t.Context(), always(upstashtest.NotJSON(upstashtest.AfterExec))},
	} {
		s.FlushAll()
		tt.set()
		reads, _ := callsOf(t, c, c)
		for call, read := range reads {
			err := read(tt.ctx)
			batch, is := errors.AsType[*bloom.BatchError](err)
			if err == nil || !upstash.SafeToRetry(err) || is && !batch.SafeToRetry() {
				t.Errorf("%s, %s: %v, want an error that is safe to retry", name, call, err)
			}
		}
		s.InjectFunc(nil)
	}
	answers, err := bloom.ExistsIn(t.Context(), "a", bloomtest.Handle(t, c, bloomtest.Small()))
	if err == nil || !upstash.SafeToRetry(answers[0].Err) {
		t.Errorf("ExistsIn: the answer's error %v is not safe to retry", answers[0].Err)
	}
}

// A server's words, in an error or instead of an answer, cannot forge a line of
// a log or control a terminal. They are escaped exactly once.
func TestServerWordsInErrors(t *testing.T) {
	const hostile = "ERR x\x1b]0;owned\a\r\nlevel=INFO \u009b31m\u202etxt\x7f"
	const escaped = `x\x1b]0;owned\a\r\nlevel=INFO \u009b31m\u202etxt\x7f`
	text, err := json.Marshal(hostile)
	bloomtest.NoError(t, err)
	words, said := string(text), 0
	for _, a := range []saysOne{
		{400, `{"error":` + words + `}`},
		{200, `{"error":` + words + `}`},
		{429, `{"error":` + words + `}`},
		{500, `{"error":` + words + `}`},
		{200, `{"result":` + words + `}`},
		{200, `{"result":[` + words + `]}`},
		{200, `{"result":[1,` + words + `,0,0,0,0,0]}`},
		{200, `[{"error":` + words + `},{"result":1},{"result":1},{"result":1}]`},
		{200, `[{"result":` + words + `},{"result":` + words + `},{"result":1},{"result":1}]`},
		{200, hostile},
		{502, hostile},
		{200, `{"result":` + words},
	} {
		var clients []*upstash.Client
		for _, url := range []string{"http://127.0.0.1:1", "http://127.0.0.1:2"} {
			c, err := upstash.New(url, "token", upstash.WithTransport(a), upstash.WithRetry(0))
			bloomtest.NoError(t, err)
			clients = append(clients, c)
		}
		reads, writes := callsOf(t, clients[0], clients[1])
		maps.Copy(writes, reads)
		for name, call := range writes {
			err := call(t.Context())
			if err == nil {
				t.Errorf("%s: no error after %q", name, a.body)
				continue
			}
			for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#q", err, err)} {
				if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) ||
					strings.Contains(text, "\nlevel") {
					t.Errorf("%s after %q: raw words: %q", name, a.body, text)
				}
			}
			if strings.Contains(err.Error(), `\\`) {
				t.Errorf("%s after %q: escaped twice: %s", name, a.body, err)
			}
			if strings.Contains(err.Error(), escaped) {
				said++
			}
		}
	}
	if said == 0 {
		t.Error("no error has the server's words: nothing was tested")
	}
}

// losing carries requests to the database, and then cancels the call's context
// instead of returning an answer. The cause is the error of another call.
type losing struct {
	next   upstash.Transport
	cancel context.CancelCauseFunc // if nil, nothing is lost
	cause  error
}

func (l *losing) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	err := l.next.RoundTrip(ctx, req, resp)
	if l.cancel == nil {
		return err
	}
	l.cancel(l.cause)
	return context.Cause(ctx)
}

// TestAnotherCallsErrorDecidesNoItem: the error of another call that ends this one must
// not make items in the database look missing, nor unknown ones look added. It is not
// known whether a write ran, so one that stores copies is not repeated.
func TestAnotherCallsErrorDecidesNoItem(t *testing.T) {
	server := upstashtest.NewServer(t)
	transport := httptransport.New(nil)
	defer transport.Close()
	for _, other := range []error{
		bloom.ErrNotFound, bloom.ErrUncertain, bloom.ErrNoTTL, bloom.ErrNotFilter, bloom.ErrRecreated,
		&bloom.MismatchError{}, &upstash.Error{StatusCode: 400, Message: "NOPERM no"},
		&upstash.Error{StatusCode: 400, Message: "WRONGTYPE no"},
		&bloom.BatchError{Items: make([]bloom.ItemState, 3), Err: upstash.ErrClosed},
		&bloom.BatchError{Items: []bloom.ItemState{bloom.ItemDone}, Err: bloom.ErrNoTTL},
		upstash.ErrClosed, fmt.Errorf("app: %w", bloom.ErrNotFound),
	} {
		server.FlushAll()
		l := &losing{next: transport, cause: other}
		c := server.Client(upstash.WithTransport(l))
		f := bloomtest.Handle(t, c, bloom.Config{Capacity: 100, FPRate: 0.01, MissingIsEmpty: true})
		copies, err1 := bloom.NewCuckoo(c, "copies", bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
		layers, err2 := bloom.NewScalable(c, "layers", bloom.ScalableConfig{Capacity: 100, FPRate: 0.01})
		bloomtest.NoError(t, errors.Join(err1, err2))
		for _, lost := range []struct {
			name string
			call call
			also func(err error) bool
		}{
			{"Add", about(f.Add, "a"), mayHaveRun},
			{"AddAll", about(f.AddAll, []string{"x", "y", "z"}), func(err error) bool {
				batch, is := errors.AsType[*bloom.BatchError](err)
				return is && batch.Count(bloom.ItemUnknown) == 3 && mayHaveRun(err)
			}},
			{"Exists", about(f.Exists, "a"), upstash.SafeToRetry},
			{"Cuckoo.Add", about(copies.Add, "a"), isUncertain},
			{"Cuckoo.Remove", about(copies.Remove, "a"), isUncertain},
			{"Scalable.Add", about(layers.Add, "a"), mayHaveRun},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			l.cancel = cancel
			err := lost.call(ctx)
			l.cancel = nil
			cancel(nil)
			if err == nil || bloom.InFilter(err) || !errors.Is(err, other) || !lost.also(err) {
				t.Errorf("%s, %v: got %v, InFilter %v", lost.name, other, err, bloom.InFilter(err))
			}
		}
		bloomtest.Exists(t, f, "x", true)
	}
}

func mayHaveRun(err error) bool  { return !upstash.SafeToRetry(err) }
func isUncertain(err error) bool { return errors.Is(err, bloom.ErrUncertain) && mayHaveRun(err) }

// An observer learns the operation of each request, after the caller's own
// label.
func TestObserverLearnsTheOperation(t *testing.T) {
	s := upstashtest.NewServer(t)
	var label string // of the last attempt
	c := s.Client(upstash.WithObserver(func(_ context.Context, e upstash.Event) { label = e.Label }))
	want := func(want string) {
		t.Helper()
		if label != want {
			t.Errorf("the label is %q, want %q", label, want)
		}
	}
	f := bloomtest.Handle(t, c, bloomtest.Small())
	bloomtest.Add(t, f, "a", true)
	want("bloom.Add")
	ctx := upstash.WithLabel(t.Context(), "crawler")
	for name, call := range bloomtest.Calls(bloomtest.Reads, bloomtest.Adds, bloomtest.Orders) {
		_ = call(ctx, f) // the filter may be gone
		want("crawler bloom." + name)
	}
	bloomtest.NoError(t, bloomtest.ErrorOf(f.AddSeq(ctx, slices.Values([]string{"a"}))))
	want("crawler bloom.AddSeq")
	scalable, err := bloom.NewScalable(c, "grows", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
	bloomtest.NoError(t, err)
	bloomtest.NoError(t, bloomtest.ErrorOf(scalable.Create(ctx)))
	bloomtest.NoError(t, bloomtest.ErrorOf(scalable.Stats(ctx)))
	want("crawler bloom.Scalable.Stats")
	bloomtest.NoError(t, bloomtest.ErrorOf(scalable.Cardinality(ctx)))
	want("crawler bloom.Scalable.Cardinality")
}
