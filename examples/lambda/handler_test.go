package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	sent   []call // to the database, without looks
	fail   map[string]error
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
	b := &bench{server: upstashtest.NewServer(tb), fail: map[string]error{}}
	client := b.server.Client(append(opts, upstash.WithRetry(1), upstash.WithBackoff(0, 0),
		upstash.WithCallObserver(b.observe))...)
	var err error
	b.handler, err = newHandler(client, "done", capacityOf(1000), func(_ context.Context, m events.SQSMessage) error {
		if err := b.fail[m.MessageId]; err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.worked = append(b.worked, m.MessageId)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := b.checkFill(tb.Context()); err != nil { // as main does
		tb.Fatal(err)
	}
	return b
}

// deliver returns the ids of the messages that SQS would deliver again.
func (b *bench) deliver(ids ...string) (again []string, err error) {
	return b.deliverMessages(messages(ids...))
}

func (b *bench) deliverMessages(batch []events.SQSMessage) (again []string, err error) {
	resp, err := b.handle(context.Background(), events.SQSEvent{Records: batch})
	if err != nil {
		for _, m := range batch {
			again = append(again, m.MessageId)
		}
		return again, err
	}
	return failedIDs(resp), nil
}

func failedIDs(resp events.SQSEventResponse) (ids []string) {
	for _, f := range resp.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

func messages(ids ...string) []events.SQSMessage {
	batch := make([]events.SQSMessage, len(ids))
	for i, id := range ids {
		batch[i].MessageId = id
	}
	return batch
}

func tagged(messageID, dedupID string) events.SQSMessage {
	return events.SQSMessage{
		MessageId: messageID,
		MessageAttributes: map[string]events.SQSMessageAttribute{
			"dedup-id": {StringValue: &dedupID, DataType: "String"},
		},
	}
}

func wantIDs(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestSkipsWhatIsDone(t *testing.T) {
	b := newBench(t)
	for _, batch := range [][]string{{"a", "b", "a"}, {"b", "c"}, {"a", "b", "c"}} {
		again, err := b.deliver(batch...)
		if err != nil {
			t.Fatal(err)
		}
		wantIDs(t, "redelivered", again)
	}
	wantIDs(t, "worked", b.worked, "a", "b", "c")
}

// TestForgetsEachIDByItself: a window has no end at which it forgets everything.
// An id is found for a day after its own Add, however old the window is, and
// forgotten after three.
func TestForgetsEachIDByItself(t *testing.T) {
	b := newBench(t)
	for _, step := range []struct {
		id   string
		wait time.Duration // before
		new  bool
	}{
		{"a", 0, true},
		{"b", 23 * time.Hour, true},
		{"a", 30 * time.Minute, false},
		{"b", 23 * time.Hour, false},
		{"c", 20 * time.Hour, true},
		{"d", 3 * time.Hour, true},
		{"a", 4 * time.Hour, true}, // 73 h 30 min
		{"c", 16 * time.Hour, false},
		{"d", 100 * time.Hour, true}, // the window itself has expired
		{"d", 0, false},
	} {
		b.server.FastForward(step.wait)
		b.worked = nil
		if again, err := b.deliver(step.id); err != nil || len(again) != 0 {
			t.Fatalf("redelivered %q, %v, want none", again, err)
		}
		if isNew := len(b.worked) == 1; isNew != step.new {
			t.Errorf("%s after %v more: worked on: %v, want %v", step.id, step.wait, isNew, step.new)
		}
	}
}

func TestSenderSendsTwice(t *testing.T) {
	b := newBench(t)
	b.fail["m1"] = errors.New("out of order")
	again, err := b.deliverMessages([]events.SQSMessage{
		tagged("m1", "order 7"), tagged("m2", "order 7"), tagged("m3", "order 7"),
	})
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "redelivered", again, "m1")
	wantIDs(t, "worked", b.worked, "m2") // m1 failed, and m2 was tried all the same; m3 was not needed
	again, err = b.deliverMessages([]events.SQSMessage{tagged("m1", "order 7")})
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "redelivered", again)
	wantIDs(t, "worked", b.worked, "m2")
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

func TestFailedWorkIsNotLost(t *testing.T) {
	b := newBench(t)
	b.fail["b"] = errors.New("no address")
	again, err := b.deliver("a", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "redelivered", again, "b")
	delete(b.fail, "b")
	if again, err = b.deliver("b"); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "redelivered", again)
	wantIDs(t, "worked", b.worked, "a", "c", "b")
}

func TestRequestsOfABatch(t *testing.T) {
	b := newBench(t)
	ten := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	for _, tt := range []struct {
		name     string
		commands []string
	}{
		{"the first batch of all: a script sets when the window expires", []string{"BITFIELD", "BITFIELD", "EVAL"}},
		{"new messages", []string{"BITFIELD", "BITFIELD"}},
		{"nothing new: no Add", []string{"BITFIELD"}},
	} {
		b.sent = nil
		if tt.name == "new messages" {
			for i := range ten {
				ten[i] += "b"
			}
		}
		if _, err := b.deliver(ten...); err != nil {
			t.Fatal(err)
		}
		var commands []string
		for _, c := range b.sent {
			commands = append(commands, c.command)
		}
		wantIDs(t, tt.name, commands, tt.commands...)
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
			again, err := b.deliver("a", "b")
			wantIDs(t, "redelivered", again, tt.again...)
			if (err != nil) != (tt.again != nil) {
				t.Errorf("the handler's error: %v, want one: %v", err, tt.again != nil)
			}
			if _, err := b.deliver("a", "b"); err != nil {
				t.Fatal(err)
			}
			wantIDs(t, "worked", b.worked, tt.worked...)
		})
	}
}

// TestPanic: if the work on one message panics, the others are recorded.
func TestPanic(t *testing.T) {
	b := newBench(t)
	work := b.process
	b.process = func(ctx context.Context, m events.SQSMessage) error {
		if m.MessageId == "poison" {
			panic("a case nobody thought of")
		}
		return work(ctx, m)
	}
	for range 2 {
		again, err := b.deliver("a", "b", "poison", "c")
		if err != nil {
			t.Fatal(err)
		}
		wantIDs(t, "redelivered", again, "poison")
	}
	wantIDs(t, "worked", b.worked, "a", "b", "c")
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
			if again, err := b.deliver(batch...); err != nil || again != nil {
				t.Errorf("redelivered %q, %v, want none", again, err)
			}
		})
	}
	wg.Wait()
	distinct := func(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }
	wantIDs(t, "worked", distinct(b.worked), distinct(all)...)
	b.worked = nil
	if _, err := b.deliver(all...); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "worked again", b.worked)
}

// Two queues number their orders alike, and a sender leaves the id empty.
// Neither makes the handler skip a message.
func TestIDsBelongToTheirQueue(t *testing.T) {
	b := newBench(t)
	order, refund := tagged("m1", "1"), tagged("m2", "1")
	order.EventSourceARN, refund.EventSourceARN = "arn:aws:sqs:eu:1:orders", "arn:aws:sqs:eu:1:refunds"
	for _, m := range []events.SQSMessage{order, refund, tagged("m3", ""), tagged("m4", "")} {
		if again, err := b.deliverMessages([]events.SQSMessage{m}); err != nil || len(again) != 0 {
			t.Fatalf("%s: redelivered %q, %v, want none", m.MessageId, again, err)
		}
	}
	if want := []string{"m1", "m2", "m3", "m4"}; !slices.Equal(b.worked, want) {
		t.Errorf("worked on %q, want %q", b.worked, want)
	}
}

// The window gets ten times as many ids as it is sized for. Still no new
// message is lost: once the window is over its capacity nothing is skipped,
// neither in this sandbox nor in a new one.
func TestOverCapacityNothingIsDropped(t *testing.T) {
	b := newBench(t)
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	const ids = 10_000
	for n := 0; n < ids; n += 10 {
		batch := make([]string, 10)
		for i := range batch {
			batch[i] = fmt.Sprintf("id-%d", n+i)
		}
		if again, err := b.deliver(batch...); err != nil || len(again) != 0 {
			t.Fatalf("redelivered %q, %v, want none", again, err)
		}
	}
	if len(b.worked) != ids {
		t.Errorf("%d of %d new messages were processed, want all", len(b.worked), ids)
	}
	if !b.full.Load() || !strings.Contains(log.String(), "over its capacity") {
		t.Error("neither the handler nor its log says that the window is over its capacity, want both")
	}
	other, err := newHandler(b.server.Client(), "done", capacityOf(1000), b.process)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.checkFill(t.Context()); err != nil || !other.full.Load() {
		t.Errorf("checkFill with an overfull window: %v, full %v, want true", err, other.full.Load())
	}
}

// TestFillIsLookedAtUntilItIsKnown starts a sandbox with a window at five times
// its capacity. It finds most of all new ids. The first looks at
// its fill fail. Even so, no message is lost.
func TestFillIsLookedAtUntilItIsKnown(t *testing.T) {
	quiet(t)
	b := newBench(t)
	cfg := capacityOf(1000)
	cfg.FPRate = 0.001
	window, err := bloom.NewWindow(b.server.Client(), "other", cfg)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 5_000)
	for i := range ids {
		ids[i] = fmt.Sprint("message:old-", i)
	}
	if _, err := window.AddAll(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	down := upstashtest.InternalError(upstashtest.BeforeExec)
	b.handler, err = newHandler(b.server.Client(upstash.WithRetry(0)), "other", cfg, b.process)
	if err != nil {
		t.Fatal(err)
	}
	b.server.Inject(down, down) // the look when the sandbox starts, and the first invocation's
	if err := b.checkFill(t.Context()); err == nil {
		t.Error("checkFill without a database: no error, want one")
	}
	for n := range 30 {
		batch := make([]string, 10)
		for i := range batch {
			batch[i] = fmt.Sprintf("new-%d-%d", n, i)
		}
		if again, err := b.deliver(batch...); err != nil || len(again) != 0 {
			t.Fatalf("redelivered %q, %v, want none", again, err)
		}
	}
	if len(b.worked) != 300 {
		t.Errorf("%d of 300 new messages were processed, want all", len(b.worked))
	}
	if !b.looked.Load() || !b.full.Load() {
		t.Error("no later invocation looked at the fill, want one to")
	}
}

// TestNothingIsLost delivers random batches to a handler whose work and
// database fail at random. What SQS would deliver again is delivered again
// until nothing is left. Then the work on every message must have been done.
func TestNothingIsLost(t *testing.T) {
	quiet(t)
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
		b.worked, b.fail = nil, map[string]error{}

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
			clear(b.fail)
			if rapid.IntRange(0, 3).Draw(rt, "work fails") == 0 {
				b.fail[queue[0]] = errors.New("failed")
			}
			again, _ := b.deliver(queue[:n]...)
			queue = append(slices.Clone(queue[n:]), again...)
		}
		worked := slices.Compact(slices.Sorted(slices.Values(b.worked)))
		if !slices.Equal(worked, sent) {
			rt.Fatalf("sent %q, the work was done for %q", sent, worked)
		}
	})
}

// quiet keeps the handler's log out of a test with many runs.
func quiet(tb testing.TB) {
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	tb.Cleanup(func() { slog.SetDefault(old) })
}

// TestOneLookIsEnough: once the fill is known, no invocation asks for it again,
// and duplicates are skipped.
func TestOneLookIsEnough(t *testing.T) {
	b := newBench(t)
	if _, err := b.deliver("a"); err != nil {
		t.Fatal(err)
	}
	var err error
	b.handler, err = newHandler(b.server.Client(), "done", capacityOf(1000), b.process)
	if err != nil {
		t.Fatal(err)
	}
	b.server.ResetStats()
	for range 3 {
		if _, err := b.deliver("a"); err != nil {
			t.Fatal(err)
		}
	}
	wantIDs(t, "worked", b.worked, "a")
	if n := b.server.Stats(); n.Requests != 5 || n.Billed != 10 {
		t.Errorf("%d requests and %d commands for 3 duplicates, want one each, one TIME,"+
			" and one look of six commands", n.Requests, n.Billed)
	}
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

// TestTurn counts the commands of the first batch of a day, which clears a pane.
func TestTurn(t *testing.T) {
	b := newBench(t)
	var err error
	if b.handler, err = newHandler(b.server.Client(), "orders", windowConfig, b.process); err != nil {
		t.Fatal(err)
	}
	if _, err := b.done.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.checkFill(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.server.FastForward(windowConfig.Span + time.Minute)
	b.server.ResetStats()
	if _, err := b.deliver("a"); err != nil {
		t.Fatal(err)
	}
	if n := b.server.Stats(); n.Requests != 4 || n.Billed != 3+11 {
		t.Errorf("%d requests and %d commands, want the look-up, a TIME, the Add and a script of 11",
			n.Requests, n.Billed)
	}
}
