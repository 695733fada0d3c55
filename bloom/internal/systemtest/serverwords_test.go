package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
)

// saysOne answers every request in the same way.
type saysOne struct {
	status int
	body   string
}

func (a saysOne) RoundTrip(_ context.Context, _ *upstash.Request, resp *upstash.Response) error {
	resp.StatusCode, resp.Body = a.status, append(resp.Body[:0], a.body...)
	return nil
}

// callsOf returns calls of every kind, on two databases.
func callsOf(t *testing.T, c, second *upstash.Client) map[string]func() error {
	ctx, f := t.Context(), bloomtest.Handle(t, c, bloomtest.Small())
	other := bloomtest.HandleAt(t, c, "other", bloomtest.Small())
	m, err1 := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: time.Minute})
	w, err2 := bloom.NewWindow(c, bloomtest.Key,
		bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	s, err3 := bloom.NewScalable(c, bloomtest.Key, bloom.ScalableConfig{Capacity: 100, FPRate: 0.01})
	k, err4 := bloom.NewCuckoo(c, bloomtest.Key, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
	sh, err5 := bloom.NewSharded([]*upstash.Client{c, second}, bloomtest.Key,
		bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 4})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	of := func(_ any, err error) error { return err }
	items, local := []string{"a", "b"}, bloom.NewLocal(f.Geometry())
	stream, err := local.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func() error{
		"Add":          func() error { return of(f.Add(ctx, "a")) },
		"AddAll":       func() error { return of(f.AddAll(ctx, items)) },
		"AddIn":        func() error { return of(bloom.AddIn(ctx, "a", f, other)) },
		"Exists":       func() error { return of(f.Exists(ctx, "a")) },
		"ExistsAll":    func() error { return of(f.ExistsAll(ctx, items)) },
		"Create":       func() error { return of(f.Create(ctx)) },
		"Open":         func() error { return of(bloom.Open(ctx, c, bloomtest.Key)) },
		"OpenWindow":   func() error { return of(bloom.OpenWindow(ctx, c, bloomtest.Key)) },
		"OpenScalable": func() error { return of(bloom.OpenScalable(ctx, c, bloomtest.Key)) },
		"OpenCuckoo":   func() error { return of(bloom.OpenCuckoo(ctx, c, bloomtest.Key)) },
		"Cardinality":  func() error { return of(f.Cardinality(ctx)) },
		"Stats":        func() error { return of(f.Stats(ctx)) },
		"Inspect":      func() error { return of(bloom.Inspect(ctx, c, bloomtest.Key)) },
		"InspectAll": func() error {
			all, err := bloom.InspectAll(ctx, c, []string{bloomtest.Key})
			if err == nil {
				err = all[0].Err
			}
			return err
		},
		"Expire":    func() error { return of(f.Expire(ctx, time.Hour)) },
		"Persist":   func() error { return of(f.Persist(ctx)) },
		"Rename":    func() error { return f.Rename(ctx, "elsewhere") },
		"Delete":    func() error { return of(f.Delete(ctx)) },
		"Load":      func() error { return of(f.Load(ctx, slices.Values(items))) },
		"Merge":     func() error { return of(f.Merge(ctx, local)) },
		"Restore":   func() error { return of(f.Restore(ctx, bytes.NewReader(stream))) },
		"Replace":   func() error { return f.Replace(ctx, local) },
		"Snapshot":  func() error { return of(f.Snapshot(ctx)) },
		"Union":     func() error { return bloom.Union(ctx, f, other) },
		"Intersect": func() error { return of(bloom.EstimateIntersection(ctx, f, other)) },

		"Mirror.Refresh": func() error { return m.Refresh(ctx) },
		"Mirror.Exists":  func() error { return of(m.Exists(ctx, "a")) },
		"Window.Add":     func() error { return of(w.Add(ctx, "a")) },
		"Window.Exists":  func() error { return of(w.Exists(ctx, "a")) },
		"Window.Stats":   func() error { return of(w.Stats(ctx)) },
		"Scalable.Add":   func() error { return of(s.Add(ctx, "a")) },
		"Scalable.Stats": func() error { return of(s.Stats(ctx)) },
		"Cuckoo.Add":     func() error { return of(k.Add(ctx, "a")) },
		"Cuckoo.Remove":  func() error { return of(k.Remove(ctx, "a")) },
		"Cuckoo.Exists":  func() error { return of(k.Exists(ctx, "a")) },
		"Sharded.Add":    func() error { return of(sh.Add(ctx, "a")) },
		"Sharded.Stats":  func() error { return of(sh.Stats(ctx)) },
	}
}

// A server's words, in an error or instead of an answer, cannot forge a line of
// a log or control a terminal. They are escaped exactly once.
func TestServerWordsInErrors(t *testing.T) {
	const hostile = "ERR x\x1b]0;owned\a\r\nlevel=INFO \u009b31m\u202etxt\x7f"
	const escaped = `x\x1b]0;owned\a\r\nlevel=INFO \u009b31m\u202etxt\x7f`
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
		}
		for name, call := range callsOf(t, clients[0], clients[1]) {
			err := call()
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
