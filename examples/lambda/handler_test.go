package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/goccy/go-json"
	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// bench is a handler with a database of its own. It records the work.
type bench struct {
	*handler
	server *upstashtest.Server
	sent   []call     // to the database
	mu     sync.Mutex // of sent and worked
	worked []string   // message ids, in order
}

func capacityOf(n uint64) bloom.WindowConfig {
	cfg := windowConfig
	cfg.Capacity = n
	return cfg
}

// call is a command as it was sent, and when the time for it ended.
type call struct {
	command string
	ends    time.Time
}

// observe takes note of a call.
func (b *bench) observe(ctx context.Context, ev upstash.Event) {
	ends, _ := ctx.Deadline()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, call{ev.Command, ends})
}

func newBench(tb testing.TB, opts ...upstash.Option) *bench {
	tb.Helper()
	b := &bench{server: upstashtest.NewServer(tb)}
	b.start(tb, "done", capacityOf(1000), opts...)
	if err := b.checkFill(tb.Context()); err != nil { // as main does
		tb.Fatal(err)
	}
	b.sent = nil
	return b
}

// start makes another handler and client, as a new sandbox does.
func (b *bench) start(tb testing.TB, key string, cfg bloom.WindowConfig, opts ...upstash.Option) {
	tb.Helper()
	opts = append([]upstash.Option{
		upstash.WithRetry(1), upstash.WithBackoff(0, 0), upstash.WithCallObserver(b.observe),
	}, opts...)
	var err error
	if b.handler, err = newHandler(b.server.Client(opts...), key, cfg, b.work); err != nil {
		tb.Fatal(err)
	}
}

// work fails or panics if the message's body says so.
func (b *bench) work(_ context.Context, m events.SQSMessage) error {
	switch m.Body {
	case "fails":
		return errors.New("no address")
	case "panics":
		panic("a case nobody thought of")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.worked = append(b.worked, m.MessageId)
	return nil
}

// deliver returns the ids of the messages that SQS would deliver again.
func (b *bench) deliver(batch []events.SQSMessage) (again []string, err error) {
	resp, err := b.handle(context.Background(), events.SQSEvent{Records: batch})
	if err != nil {
		for _, m := range batch {
			again = append(again, m.MessageId)
		}
		return again, err
	}
	return failedIDs(resp), nil
}

// deliverNew delivers n new messages, ten at a time. None of them may be lost.
func (b *bench) deliverNew(t *testing.T, name string, n int) {
	t.Helper()
	b.worked = nil
	for from := 0; from < n; from += 10 {
		batch := make([]string, 10)
		for i := range batch {
			batch[i] = fmt.Sprint(name, "-", from+i)
		}
		if again, err := b.deliver(messages(batch...)); err != nil || len(again) != 0 {
			t.Fatalf("redelivered %q, %v, want none", again, err)
		}
	}
	if len(b.worked) != n {
		t.Errorf("%d of %d new messages were processed, want all", len(b.worked), n)
	}
}

func failedIDs(resp events.SQSEventResponse) (ids []string) {
	for _, f := range resp.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

// messages makes a message of each text: its id, and perhaps what the work does.
func messages(texts ...string) []events.SQSMessage {
	batch := make([]events.SQSMessage, len(texts))
	for i, text := range texts {
		batch[i].MessageId, batch[i].Body, _ = strings.Cut(text, " ")
	}
	return batch
}

// tagged has the sender's own id, too.
func tagged(text, dedupID, queue string) events.SQSMessage {
	m := messages(text)[0]
	m.EventSourceARN = "arn:aws:sqs:eu:1:" + queue
	m.MessageAttributes = map[string]events.SQSMessageAttribute{
		"dedup-id": {StringValue: &dedupID, DataType: "String"},
	}
	return m
}

func wantIDs(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// captureLog returns what the handler logs until the end of the test.
func captureLog(tb testing.TB) *bytes.Buffer {
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	tb.Cleanup(func() { slog.SetDefault(old) })
	return &log
}

// TestDeliveries has batches, what SQS delivers again of them, and which messages
// were worked on.
func TestDeliveries(t *testing.T) {
	type delivery struct {
		wait          time.Duration // before it
		batch         []events.SQSMessage
		again, worked string
	}
	for name, deliveries := range map[string][]delivery{
		"what is done is skipped": {
			{0, messages("a", "b", "a"), "", "a b"},
			{0, messages("b", "c"), "", "c"},
			{0, messages("a", "b", "c"), "", ""},
		},
		"work that fails is not lost": {
			{0, messages("a", "b fails", "c"), "b", "a c"},
			{0, messages("b"), "", "b"},
		},
		"a panic is the failure of one message": {
			{0, messages("a", "b", "poison panics", "c"), "poison", "a b c"},
			{0, messages("a", "b", "poison panics", "c"), "poison", ""},
		},
		"a sender sends twice": { // m1 fails, and m2 is tried all the same; m3 is not needed
			{0, []events.SQSMessage{
				tagged("m1 fails", "7", ""), tagged("m2", "7", ""), tagged("m3", "7", ""),
			}, "m1", "m2"},
			{0, []events.SQSMessage{tagged("m1", "7", "")}, "", ""},
		},
		"two queues number alike": {
			{0, []events.SQSMessage{tagged("m1", "1", "orders"), tagged("m2", "1", "refunds")}, "", "m1 m2"},
		},
		"a sender leaves its id empty": {
			{0, []events.SQSMessage{tagged("m1", "", ""), tagged("m2", "", "")}, "", "m1 m2"},
		},
		// A window has no end at which it forgets everything. An id is found for a day
		// after its own Add, however old the window is, and forgotten after three.
		"each id is forgotten by itself": {
			{0, messages("a"), "", "a"},
			{23 * time.Hour, messages("b"), "", "b"},
			{30 * time.Minute, messages("a"), "", ""},
			{23 * time.Hour, messages("b"), "", ""},
			{20 * time.Hour, messages("c"), "", "c"},
			{3 * time.Hour, messages("d"), "", "d"},
			{4 * time.Hour, messages("a"), "", "a"}, // 73 h 30 min
			{16 * time.Hour, messages("c"), "", ""},
			{100 * time.Hour, messages("d"), "", "d"}, // the window itself has expired
			{0, messages("d"), "", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for i, d := range deliveries {
				b.server.FastForward(d.wait)
				b.worked = nil
				again, err := b.deliver(d.batch)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(again, " "); got != d.again {
					t.Errorf("delivery %d: redelivered %q, want %q", i, got, d.again)
				}
				if got := strings.Join(b.worked, " "); got != d.worked {
					t.Errorf("delivery %d: worked on %q, want %q", i, got, d.worked)
				}
			}
		})
	}
}

// Records without a messageId would all be one, and an event of SNS has none.
func TestRecordsWithoutAMessageID(t *testing.T) {
	b := newBench(t)
	before := b.server.Stats().Requests
	for _, event := range []string{
		`{"Records": [{"messageId": "a", "body": "1", "eventSource": "aws:sqs"}, {"body": "2", "eventSource": "aws:sqs"}]}`,
		`{"Records": [{"body": "1"}, {"body": "2"}]}`,
		`{"Records": [{"EventSource": "aws:sns", "EventVersion": "1.0", "Sns": {"MessageId": "a", "Message": "1"}}]}`,
	} {
		var batch events.SQSEvent
		if err := json.Unmarshal([]byte(event), &batch); err != nil {
			t.Fatal(err)
		}
		if resp, err := b.handle(t.Context(), batch); err == nil {
			t.Errorf("%s: %+v, want an error", event, resp)
		}
	}
	wantIDs(t, "worked", b.worked)
	if n := b.server.Stats().Requests - before; n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestRequests has the commands of batches, and what is billed with those in scripts.
func TestRequests(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		name     string
		wait     time.Duration
		sandbox  bool // a new one
		ids      string
		commands string
		billed   int64
	}{
		{
			"the first batch of all: a script of four commands sets when the window expires",
			0, true, "a", "TIME MULTI-EXEC BITFIELD BITFIELD EVAL", 7 + 2 + 4,
		},
		{"new messages", 0, false, "b", "BITFIELD BITFIELD", 2},
		{"a look at the fill after 20 ids; nothing new: no Add", 0, false, "b", "MULTI-EXEC BITFIELD", 6 + 1},
		{"nothing new, no look", 0, false, "b", "BITFIELD", 1},
		{"a new sandbox looks at the fill, by six commands", 0, true, "b", "TIME MULTI-EXEC BITFIELD", 1 + 6 + 1},
		{"and does not look again", 0, false, "b", "BITFIELD", 1},
		{
			"the first Add of a day: a script of 11 commands clears a pane",
			windowConfig.Span + time.Minute, false, "c", "BITFIELD TIME BITFIELD EVAL", 3 + 11,
		},
	} {
		b.server.FastForward(tt.wait)
		if tt.sandbox {
			b.start(t, "orders", windowConfig)
			b.lookEvery = 20
		}
		b.server.ResetStats()
		b.sent = nil
		batch := messages(strings.Split("0123456789", "")...)
		for i := range batch {
			batch[i].MessageId += tt.ids
		}
		if _, err := b.deliver(batch); err != nil {
			t.Fatal(err)
		}
		var commands []string
		for _, c := range b.sent {
			commands = append(commands, c.command)
		}
		got := strings.Join(commands, " ")
		if n := b.server.Stats(); got != tt.commands || n.Billed != tt.billed || n.Requests != int64(len(commands)) {
			t.Errorf("%s: %d requests %s, %d billed, want %s and %d", tt.name, n.Requests, got, n.Billed, tt.commands, tt.billed)
		}
	}
}

// TestIDsOfARequest: so many ids as README says fit into one request, and not many
// more.
func TestIDsOfARequest(t *testing.T) {
	b := newBench(t)
	window, err := bloom.NewWindow(b.server.Client(), "sized", windowConfig)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 1800)
	for i := range ids {
		ids[i] = fmt.Sprintf("059f36b4-87a3-44ab-83d2-%012x", i)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := window.AddAll(t.Context(), ids[:1]); err != nil { // so that the window is there
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		fit  int
		call func(context.Context, []string) ([]bool, error)
	}{
		{"1,600 ids of a look-up", 1600, window.ExistsAll}, {"1,200 of an Add", 1200, window.AddAll},
	} {
		requests := func(n int) int64 {
			b.server.ResetStats()
			if _, err := c.call(t.Context(), ids[:n]); err != nil {
				t.Fatal(err)
			}
			return b.server.Stats().Requests
		}
		if one, two := requests(c.fit), requests(c.fit+150); one != 1 || two != 2 {
			t.Errorf("%d ids are %d requests, and %d are %d", c.fit, one, c.fit+150, two)
		}
		if !strings.Contains(string(readme), c.says) {
			t.Errorf("README does not say %q", c.says)
		}
	}
}

// TestFaults checks what happens to a message in the cases of the README's
// table.
func TestFaults(t *testing.T) {
	type faults []upstashtest.Fault
	down := upstashtest.InternalError(upstashtest.BeforeExec)
	lost := upstashtest.Drop(upstashtest.AfterExec)
	for _, tt := range []struct {
		name        string
		lookUp, add faults   // each has one retry
		again       []string // what SQS delivers again
		worked      []string // after later duplicates
	}{
		{"look-up fails", faults{down, down}, nil, []string{"a", "b"}, []string{"a", "b"}},
		{"look-up retried", faults{lost}, nil, nil, []string{"a", "b"}},
		{"Add fails", nil, faults{down, down}, nil, []string{"a", "b", "a", "b"}},
		{"Add retried, not executed before", nil, faults{down}, nil, []string{"a", "b"}},
		{"Add uncertain", nil, faults{lost}, nil, []string{"a", "b"}},
		{"Add executed, never answered", nil, faults{lost, lost}, nil, []string{"a", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.server.Inject(tt.lookUp...)
			b.server.InjectWrites(tt.add...) // passes a TIME by
			again, err := b.deliver(messages("a", "b"))
			wantIDs(t, "redelivered", again, tt.again...)
			if (err != nil) != (tt.again != nil) {
				t.Errorf("the handler's error: %v, want one: %v", err, tt.again != nil)
			}
			if _, err := b.deliver(messages("a", "b")); err != nil {
				t.Fatal(err)
			}
			wantIDs(t, "worked", b.worked, tt.worked...)
		})
	}
}

// TestConcurrent delivers overlapping batches at once. The work on a message
// may be done twice, because a window is no lock. No message is left out, and
// all are recorded.
func TestConcurrent(t *testing.T) {
	b := newBench(t)
	const callers, each = 8, 10
	var all []string
	var wg sync.WaitGroup
	for c := range callers {
		var batch []string
		for i := range each {
			batch = append(batch, fmt.Sprint(c*each/2+i)) // half of it is the next caller's too
		}
		all = append(all, batch...)
		wg.Go(func() {
			if again, err := b.deliver(messages(batch...)); err != nil || again != nil {
				t.Errorf("redelivered %q, %v, want none", again, err)
			}
		})
	}
	wg.Wait()
	distinct := func(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }
	wantIDs(t, "worked", distinct(b.worked), distinct(all)...)
	b.worked = nil
	if _, err := b.deliver(messages(all...)); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "worked again", b.worked)
}

// The window gets ten times as many ids as it is sized for. Still no new
// message is lost: once the window is over its capacity nothing is skipped,
// neither in this sandbox nor in a new one.
func TestOverCapacityNothingIsDropped(t *testing.T) {
	b := newBench(t)
	log := captureLog(t)
	b.deliverNew(t, "id", 10_000)
	if !b.full.Load() || !strings.Contains(log.String(), "over its capacity") {
		t.Error("neither the handler nor its log says that the window is over its capacity, want both")
	}
	b.start(t, "done", capacityOf(1000))
	if err := b.checkFill(t.Context()); err != nil || !b.full.Load() {
		t.Errorf("checkFill with an overfull window: %v, full %v, want true", err, b.full.Load())
	}
}

// TestFillIsLookedAtUntilItIsKnown starts a sandbox with a window at five times
// its capacity. It finds most of all new ids. The first looks at
// its fill fail. Even so, no message is lost.
func TestFillIsLookedAtUntilItIsKnown(t *testing.T) {
	captureLog(t)
	b := newBench(t)
	cfg := capacityOf(1000)
	cfg.FPRate = 0.001
	b.start(t, "other", cfg)
	ids := make([]string, 5_000)
	for i := range ids {
		ids[i] = fmt.Sprint("message:old-", i)
	}
	if _, err := b.done.AddAll(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	down := upstashtest.InternalError(upstashtest.BeforeExec)
	b.start(t, "other", cfg, upstash.WithRetry(0))
	b.server.Inject(down, down) // the look when the sandbox starts, and the first invocation's
	if err := b.checkFill(t.Context()); err == nil {
		t.Error("checkFill without a database: no error, want one")
	}
	b.deliverNew(t, "new", 300)
	if !b.looked.Load() || !b.full.Load() {
		t.Error("no later invocation looked at the fill, want one to")
	}
}

// TestNothingIsLost delivers random batches to a handler whose work and
// database fail at random. What SQS would deliver again is delivered again
// until nothing is left. Then the work on every message must have been done.
func TestNothingIsLost(t *testing.T) {
	captureLog(t)
	faults := slices.DeleteFunc(upstashtest.EveryFault(), func(f upstashtest.Fault) bool {
		// A stall ends only by a deadline, which takes real time. A late
		// command may run after the next round has emptied the database.
		return strings.HasPrefix(f.String(), "stall") || strings.HasPrefix(f.String(), "rate-limit") ||
			f.String() == "late-exec"
	})
	b := newBench(t)
	rapid.Check(t, func(rt *rapid.T) {
		b.server.FlushAll()
		b.server.InjectFunc(nil)
		b.worked = nil

		queue := rapid.SliceOfN(rapid.SampledFrom(strings.Split("abcdefgh", "")), 1, 20).Draw(rt, "queue")
		sent := slices.Compact(slices.Sorted(slices.Values(queue)))
		plan := rapid.SliceOfN(rapid.IntRange(-len(faults), len(faults)-1), 0, 12).Draw(rt, "faults")
		b.server.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
			if n > int64(len(plan)) || plan[n-1] < 0 {
				return upstashtest.Fault{}
			}
			return faults[plan[n-1]]
		})
		for len(queue) > 0 {
			n := min(len(queue), rapid.IntRange(1, 10).Draw(rt, "batch"))
			batch := messages(queue[:n]...)
			if rapid.IntRange(0, 3).Draw(rt, "work fails") == 0 {
				batch[0].Body = "fails"
			}
			again, _ := b.deliver(batch)
			queue = append(slices.Clone(queue[n:]), again...)
		}
		worked := slices.Compact(slices.Sorted(slices.Values(b.worked)))
		if !slices.Equal(worked, sent) {
			rt.Fatalf("sent %q, the work was done for %q", sent, worked)
		}
	})
}

// TestSizes: README's table of rates is what bloom computes.
func TestSizes(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []string{"1e-3", "1e-6", "1e-8"} {
		cfg := windowConfig
		if cfg.FPRate, err = strconv.ParseFloat(rate, 64); err != nil {
			t.Fatal(err)
		}
		pane, err := cfg.Geometry()
		if err != nil {
			t.Fatal(err)
		}
		bits := 3 * float64(pane.Bits)
		row := fmt.Sprintf("| %s | %.0f | %.1f MB |", rate, bits/float64(cfg.Capacity), bits/8e6)
		if !strings.Contains(string(readme), row) {
			t.Errorf("README has no row %q", row)
		}
	}
}
