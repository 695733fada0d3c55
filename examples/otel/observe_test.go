package otel_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/examples/otel"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// bench is a client whose spans and metrics stay in memory.
type bench struct {
	server *upstashtest.Server
	client *upstash.Client
	tracer trace.Tracer
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

func newBench(t *testing.T, opts ...upstash.Option) *bench {
	t.Helper()
	b := &bench{
		server: upstashtest.NewServer(t),
		spans:  tracetest.NewSpanRecorder(),
		reader: sdkmetric.NewManualReader(),
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	observe, err := otel.Observe(tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader)))
	if err != nil {
		t.Fatal(err)
	}
	b.tracer = tracers.Tracer("test")
	b.client = b.server.Client(append(opts, observe, upstash.WithBackoff(0, time.Millisecond))...)
	t.Cleanup(func() { _ = b.client.Close() })
	return b
}

// ended returns the spans of the client's calls, without the test's own spans.
func (b *bench) ended() []sdktrace.ReadOnlySpan {
	var calls []sdktrace.ReadOnlySpan
	for _, s := range b.spans.Ended() {
		if s.SpanKind() == trace.SpanKindClient {
			calls = append(calls, s)
		}
	}
	return calls
}

func attr(s sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, kv := range s.Attributes() {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// commands sums the counter by the state of its commands.
func (b *bench) commands(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := b.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			counter, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != "upstash.commands" || !ok {
				continue
			}
			for _, p := range counter.DataPoints {
				state, _ := p.Attributes.Value("upstash.state")
				sums[state.AsString()] += p.Value
			}
		}
	}
	return sums
}

func TestSpanOfACall(t *testing.T) {
	b := newBench(t)
	ctx, parent := b.tracer.Start(t.Context(), "handle the webhook")
	_, err := b.client.Do(upstash.WithLabel(ctx, "claim the event"), upstash.Cmd("SET", "secret-key", "v", "NX"))
	parent.End()
	if err != nil {
		t.Fatal(err)
	}
	spans := b.ended()
	if len(spans) != 1 {
		t.Fatalf("%d spans, want 1", len(spans))
	}
	s := spans[0]
	if s.Name() != "claim the event" || s.Parent().SpanID() != parent.SpanContext().SpanID() ||
		s.Status().Code == codes.Error || s.EndTime().Before(s.StartTime()) {
		t.Errorf("the span %s, child of %v, status %v, want claim the event, child of %v, no error",
			s.Name(), s.Parent().SpanID(), s.Status(), parent.SpanContext().SpanID())
	}
	for key, want := range map[attribute.Key]string{
		"db.system.name": "redis", "db.operation.name": "SET", "http.response.status_code": "200",
		"db.query.summary": "claim the event", "error.type": "", "http.request.resend_count": "",
	} {
		if got := attr(s, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestSpanOfARetriedCall(t *testing.T) {
	b := newBench(t)
	b.server.Inject(upstashtest.Drop(upstashtest.AfterExec))
	if _, err := b.client.Do(t.Context(), upstash.Cmd("SET", "k", "v")); err != nil {
		t.Fatal(err)
	}
	spans := b.ended()
	if len(spans) != 1 || attr(spans[0], "http.request.resend_count") != "1" || spans[0].Name() != "SET" {
		t.Fatalf("spans: %v, want one SET that was sent again once", spans)
	}
	if got := b.commands(t); got["ran"] != 1 || got["may_have_run"] != 1 {
		t.Errorf("counted %v, want 1 and 1", got)
	}
}

func TestSpanOfAFailedCall(t *testing.T) {
	b := newBench(t, upstash.WithRetry(0))
	const key, item = "secret-key", "secret-item"
	if _, err := b.client.Do(t.Context(), upstash.Cmd("LPUSH", key, item)); err != nil {
		t.Fatal(err)
	}
	_, refused := b.client.Do(t.Context(), upstash.Cmd("SETBIT", key, "1", "1"))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	b.server.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		cancel(context.DeadlineExceeded) // no earlier, however slow the machine is
		return upstashtest.Stall(upstashtest.AfterExec)
	})
	_, late := b.client.Do(ctx, upstash.Cmd("LPUSH", key, item))
	if refused == nil || late == nil {
		t.Fatalf("the calls returned %v and %v, want two errors", refused, late)
	}
	spans := b.ended()
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3", len(spans))
	}
	for i, want := range []map[attribute.Key]string{
		1: {"error.type": "400", "db.response.status_code": "WRONGTYPE", "db.operation.name": "SETBIT"},
		2: {"error.type": "timeout", "db.response.status_code": "", "http.response.status_code": ""},
	} {
		for key, value := range want {
			if got := attr(spans[i], key); got != value {
				t.Errorf("span %d: %s is %q, want %q", i, key, got, value)
			}
		}
		if failed := spans[i].Status().Code == codes.Error; failed != (want != nil) {
			t.Errorf("span %d: status %v, want an error: %v", i, spans[i].Status(), want != nil)
		}
		for _, secret := range []string{key, item, b.server.Token} {
			if strings.Contains(spans[i].Status().Description, secret) {
				t.Errorf("span %d shows the secret %q: %s", i, secret, spans[i].Status().Description)
			}
		}
	}
	if got := b.commands(t); got["ran"] != 1 || got["may_have_run"] != 1 {
		t.Errorf("counted %v, want 1 and 1: a refused command is none", got)
	}
}

func TestSpansOfAFilter(t *testing.T) {
	b := newBench(t)
	f, err := bloom.New(b.client, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Exists(t.Context(), "a"); err != nil || !found {
		t.Fatalf("Exists(a) = %v, %v, want true", found, err)
	}
	spans := b.ended()
	if len(spans) != 2 || attr(spans[0], "db.operation.name") != "BITFIELD" || spans[0].Name() != "bloom.Add" {
		t.Errorf("got %d spans, %v, want two, the first a BITFIELD called bloom.Add", len(spans), spans)
	}
	if got := b.commands(t); got["ran"] != 2 || got["may_have_run"] != 0 {
		t.Errorf("counted %v, want 2 commands", got)
	}
}
