package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

const (
	windowKey      = "seen"
	windowCapacity = 100
	windowRate     = 0.01
	windowSpan     = 24 * time.Hour
	copyMaxStale   = 12 * time.Hour
)

// A Window is a bloom.Window in a database in this process. It also works in a
// browser, where Go's network stays within the program. Only the clock is its
// own: a day passes in an instant.
type Window struct {
	server *upstashtest.Server
	clock  *clock
	cfg    bloom.WindowConfig
	epoch  time.Duration // how long a pane lasts

	client *upstash.Client // of the window and the copy: its requests are counted
	window *bloom.Window
	copied *bloom.Mirror   // as another process has it: it learns nothing of the Adds here
	eye    *upstash.Client // makes the window, and looks at its string; uncounted
	look   *bloom.Window   // uncounted, and reads alone: it never turns the window

	requests, billed int64 // of the reader's calls
	start            time.Time
	added            map[string]time.Time
	typed            []string // by the reader, the newest last
	made             []string // by the page: the first and the last of each batch
	count            int      // of the items made
}

// NewWindow starts the database and makes the window, at the beginning of an
// epoch. Close ends both.
func NewWindow(ctx context.Context, panes int) (*Window, error) {
	server, err := upstashtest.Start()
	if err != nil {
		return nil, err
	}
	w := &Window{
		server: server, clock: &clock{time.Now()}, added: map[string]time.Time{},
		cfg: bloom.WindowConfig{
			Capacity: windowCapacity, FPRate: windowRate, Span: windowSpan, Panes: panes,
		},
	}
	if err := w.begin(ctx); err != nil {
		server.Close()
		return nil, err
	}
	return w, nil
}

func (w *Window) begin(ctx context.Context) error {
	if err := w.connect(); err != nil {
		return err
	}
	window, err := w.make(ctx)
	if err != nil {
		return err
	}
	stats, err := w.look.Stats(ctx)
	if err != nil {
		return err
	}
	w.epoch = stats.PaneSpan
	if _, err := window.Delete(ctx); err != nil {
		return err
	}
	seconds := int64(w.epoch / time.Second)
	// An epoch is a few seconds longer than the span. So begin some minutes later,
	// or a day later it would still be the same.
	w.clock.now = time.Unix((w.clock.now.Unix()/seconds+1)*seconds+300, 0)
	w.start = w.clock.now
	_, err = w.make(ctx)
	return err
}

// make makes an empty window.
func (w *Window) make(ctx context.Context) (*bloom.Window, error) {
	window, err := bloom.NewWindow(w.eye, windowKey, w.cfg)
	if err != nil {
		return nil, err
	}
	_, err = window.Create(ctx)
	return window, err
}

// Close ends the database.
func (w *Window) Close() { w.server.Close() }

// connect makes the clients, whose clock is the reader's. They ask the server for its
// time every ten minutes.
func (w *Window) connect() (err error) {
	transport := &timed{
		clock: w.clock,
		next: httptransport.New(&http.Client{Transport: &http.Transport{
			// With a DialContext, Go does not use the browser's fetch.
			DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true,
		}}),
	}
	began := w.clock.now
	since := func() time.Duration { return w.clock.now.Sub(began) }
	client := func(opts ...upstash.Option) *upstash.Client {
		byClock := door.WithClock(w.clock.time, since).(upstash.Option)
		return w.server.Client(append(opts, upstash.WithTransport(transport), byClock)...)
	}
	w.client, w.eye = client(upstash.WithObserver(w.observe)), client()
	if w.window, err = bloom.NewWindow(w.client, windowKey, w.cfg); err != nil {
		return err
	}
	if w.copied, err = bloom.NewMirror(w.window, bloom.MirrorConfig{MaxStale: copyMaxStale}); err != nil {
		return err
	}
	door.MirrorClock(w.copied, w.clock.time)
	w.look, err = bloom.NewWindow(client(upstash.WithReadOnly()), windowKey, w.cfg)
	return err
}

func (w *Window) observe(_ context.Context, e upstash.Event) {
	w.requests++
	if e.Command == "TIME" { // which does not reach the server
		w.billed++
	}
}

// bill returns a function that adds what was billed meanwhile.
func (w *Window) bill() func() {
	before := w.server.Stats().Billed
	return func() { w.billed += w.server.Stats().Billed - before }
}

// A clock stands still until the reader moves it.
type clock struct{ now time.Time }

func (c *clock) time() time.Time { return c.now }

// timed answers TIME by the clock.
type timed struct {
	clock *clock
	next  upstash.Transport
}

func (t *timed) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	if string(req.Body) != `["TIME"]` {
		return t.next.RoundTrip(ctx, req, resp)
	}
	resp.StatusCode = http.StatusOK
	resp.Body = fmt.Appendf(nil, `{"result":["%d","0"]}`, t.clock.now.Unix())
	return nil
}

// Add adds an item, or renews it.
func (w *Window) Add(ctx context.Context, item string) (WindowView, error) {
	from, before := w.requests, w.turns(ctx)
	bill := w.bill()
	isNew, err := w.window.Add(ctx, item)
	bill()
	if err != nil {
		return WindowView{}, err
	}
	w.remember(item)
	text := quoted(item) + " was seen in the last 24 hours, and is renewed."
	if isNew {
		text = quoted(item) + " is new: it was not added in the last 24 hours."
	}
	if w.turns(ctx) != before {
		text += " This was the first Add of its epoch, so it turned the window: what no longer counts is clear again."
	}
	return w.view(ctx, text+w.sent(from))
}

// AddMade adds n items made up by the page, at least one.
func (w *Window) AddMade(ctx context.Context, n int) (WindowView, error) {
	from, before := w.requests, w.turns(ctx)
	items := make([]string, n)
	for i := range items {
		w.count++
		items[i] = fmt.Sprintf("event-%d", w.count)
	}
	bill := w.bill()
	_, err := w.window.AddAll(ctx, items)
	bill()
	if err != nil {
		return WindowView{}, err
	}
	for _, item := range items {
		w.added[item] = w.clock.now
	}
	first, last := items[0], items[n-1]
	const most = 4
	w.made = newest(newest(w.made, first, most), last, most)
	w.typed = without(without(w.typed, first), last)
	text := counted(n, "item") + " were added to the pane of this epoch: " + quoted(first) + " to " +
		quoted(last) + "."
	if w.turns(ctx) != before {
		text += " They were the first of their epoch, so they turned the window."
	}
	return w.view(ctx, text+w.sent(from))
}

// Ask looks an item up.
func (w *Window) Ask(ctx context.Context, item string) (WindowView, error) {
	from, before := w.requests, w.turns(ctx)
	bill := w.bill()
	found, err := w.window.Exists(ctx, item)
	bill()
	if err != nil {
		return WindowView{}, err
	}
	at, was := w.added[item]
	age := w.clock.now.Sub(at)
	text := "No: " + quoted(item) + " was not added in the last 24 hours."
	switch {
	case found && was && age <= windowSpan:
		text = "Yes: " + quoted(item) + " was added " + ago(age) + "."
	case found && was:
		text = "Yes: " + quoted(item) + " was added " + ago(age) +
			". It is forgotten once its pane no longer counts."
	case found:
		text = "Yes, and that is wrong: " + quoted(item) + " was never added."
	case was:
		text += " It was added " + ago(age) + ", and is forgotten."
	}
	if w.turns(ctx) != before {
		text += " The last turn was two epochs ago or more, so the look-up turned the window."
	}
	return w.view(ctx, text+w.sent(from))
}

// AskCopy looks an item up in a copy, a Mirror with a MaxStale of 12 hours.
func (w *Window) AskCopy(ctx context.Context, item string) (WindowView, error) {
	from := w.requests
	bill := w.bill()
	found, err := w.copied.Exists(ctx, item)
	bill()
	if err != nil {
		return WindowView{}, err
	}
	text := "No, says the copy, of " + quoted(item) + "."
	if found {
		text = "Yes, says the copy, of " + quoted(item) + "."
	}
	if w.requests == from {
		text += " It answers from the memory of its process."
	} else {
		text += " It was missing or older than 12 hours, and brought itself up to date."
	}
	truth, err := w.look.Exists(ctx, item)
	if err != nil {
		return WindowView{}, err
	}
	if truth && !found {
		text += " The item was added after the copy was made, which is " + ago(w.copied.Stats().Age) + "."
	}
	return w.view(ctx, text+w.sent(from))
}

// Later lets time pass. Nothing runs meanwhile.
func (w *Window) Later(ctx context.Context, d time.Duration) (WindowView, error) {
	w.clock.now = w.clock.now.Add(d)
	return w.view(ctx, fmt.Sprintf("%s have passed. Nothing was sent.", hours(d)))
}

func (w *Window) sent(from int64) string {
	return fmt.Sprintf(" Sent: %s.", counted(int(w.requests-from), "request"))
}

// remember keeps the names typed by the reader, each once.
func (w *Window) remember(item string) {
	w.typed = newest(w.typed, item, 6)
	w.made = without(w.made, item)
	w.added[item] = w.clock.now
}

// newest puts a name at the end, and keeps the last most names.
func newest(names []string, name string, most int) []string {
	names = append(without(names, name), name)
	return names[max(len(names)-most, 0):]
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

func ago(d time.Duration) string {
	if d < time.Hour {
		return "just now"
	}
	return hours(d) + " ago"
}

func hours(d time.Duration) string {
	h := int(d / time.Hour)
	if h >= 48 && h%24 == 0 {
		return human.Count(uint64(h/24)) + " days"
	}
	return counted(h, "hour")
}
