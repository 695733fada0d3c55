package otel

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// globally records the spans of the global provider until the end of the test.
// The environment names server's database.
func globally(t *testing.T, server *upstashtest.Server) *tracetest.SpanRecorder {
	t.Helper()
	spans, before := tracetest.NewSpanRecorder(), otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	t.Setenv("UPSTASH_REDIS_REST_URL", server.URL)
	t.Setenv("UPSTASH_REDIS_REST_TOKEN", server.Token)
	return spans
}

// TestREADME runs the lines of README with the global providers.
func TestREADME(t *testing.T) {
	spans := globally(t, upstashtest.NewServer(t))
	count := func(ctx context.Context) error {
		observe, err := Observe(otel.GetTracerProvider(), otel.GetMeterProvider())
		if err != nil {
			return err
		}
		client, err := upstash.FromEnv(observe, upstash.WithObserver(func(ctx context.Context, e upstash.Event) {
			slog.LogAttrs(ctx, slog.LevelDebug, "redis", slog.Any("e", e))
		}))
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.Do(ctx, upstash.Cmd("INCR", "visits"))
		return err
	}
	if err := count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ended := spans.Ended(); len(ended) != 1 || ended[0].Name() != "INCR" {
		t.Errorf("the spans are %v, want one INCR", ended)
	}
}

// TestOtelhttp holds the doc of package httptransport: with otelhttp each
// attempt is a span of the context's trace, which has no token and no key.
func TestOtelhttp(t *testing.T) {
	server := upstashtest.NewServer(t)
	spans := globally(t, server)
	before := otel.GetTextMapPropagator()
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })

	rt := otelhttp.NewTransport(&http.Transport{Proxy: httptransport.ProxyFromEnvironment})
	transport := httptransport.New(&http.Client{Transport: rt})
	client, err := upstash.FromEnv(upstash.WithTransport(transport), upstash.WithBackoff(0, 0),
		upstash.WithTimeout(testenv.Patience))
	if err != nil {
		t.Fatal(err)
	}
	server.Inject(upstashtest.Drop(upstashtest.AfterExec))
	ctx, parent := otel.Tracer("test").Start(t.Context(), "parent")
	_, err = client.Do(ctx, upstash.Cmd("SET", "secret-key", "v"))
	parent.End()
	if err != nil {
		t.Fatal(err)
	}
	ended := slices.DeleteFunc(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "parent" })
	if len(ended) != 2 {
		t.Fatalf("%d spans, want one of each of the two attempts", len(ended))
	}
	for _, s := range ended {
		if s.Parent().SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("%s is a child of %v, want of %v", s.Name(), s.Parent().SpanID(), parent.SpanContext().SpanID())
		}
		urls := 0
		for _, kv := range s.Attributes() {
			if kv.Key == "url.full" && strings.HasPrefix(kv.Value.AsString(), server.URL) {
				urls++
			}
			if text := kv.Value.String(); strings.Contains(text, server.Token) || strings.Contains(text, "secret-key") {
				t.Errorf("the span has %s: %s", kv.Key, text)
			}
		}
		if urls != 1 {
			t.Errorf("the attributes %v, want the URL of the server", s.Attributes())
		}
	}
}
