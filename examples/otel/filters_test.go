package otel_test

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/examples/otel"
	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestPrometheus asks README's endpoint for the metrics of a filter, a Mirror and a
// call whose answer was lost. The global registry is one of its own, so that the test
// can run again.
func TestPrometheus(t *testing.T) {
	registerer, gatherer := promclient.DefaultRegisterer, promclient.DefaultGatherer
	defer func() { promclient.DefaultRegisterer, promclient.DefaultGatherer = registerer, gatherer }()
	own := promclient.NewRegistry()
	promclient.DefaultRegisterer, promclient.DefaultGatherer = own, own
	exporter, err := prometheus.New()
	if err != nil {
		t.Fatal(err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	endpoint := httptest.NewServer(promhttp.Handler())
	defer endpoint.Close()

	server := upstashtest.NewServer(t)
	observe, err := otel.Observe(sdktrace.NewTracerProvider(), meters)
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client(observe, upstash.WithBackoff(0, time.Millisecond))
	defer client.Close()
	filter, err := bloom.New(client, "secret-key", bloom.Config{Capacity: 100, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := bloom.NewMirror(filter, bloom.MirrorConfig{MaxStale: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := otel.ObserveFilter(meters, "visited", filter); err != nil {
		t.Fatal(err)
	}
	if _, err := otel.ObserveMirror(meters, "visited", mirror); err != nil {
		t.Fatal(err)
	}
	count, err := otel.CountUncertain(meters)
	if err != nil {
		t.Fatal(err)
	}

	for i := range 100 {
		_, err := filter.Add(t.Context(), fmt.Sprint("item ", i))
		count(t.Context(), err)
		if err != nil {
			t.Fatal(err)
		}
	}
	server.Inject(upstashtest.Drop(upstashtest.AfterExec))
	_, err = filter.Add(t.Context(), "lost")
	count(t.Context(), err)
	if !errors.Is(err, bloom.ErrUncertain) {
		t.Fatalf("Add after a lost answer: %v, want ErrUncertain", err)
	}
	if err := mirror.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}

	page, values := metricsAt(t, endpoint)
	rules := pages.Code(t, "README.md", "yaml")[0]
	for _, name := range regexp.MustCompile(`bloom(_[a-z]+)+`).FindAllString(rules, -1) {
		if !strings.Contains(page, "\n# TYPE "+name+" ") {
			t.Errorf("an alert asks for %s, and the page does not have it", name)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`[a-z]+(_[a-z]+)+`").FindAllString(string(readme), -1)
	for _, name := range names {
		name = strings.Trim(name, "`")
		if !strings.Contains(page, "\n# TYPE "+name+" ") && name != "may_have_run" {
			t.Errorf("README names the metric %s, and the page does not", name)
		}
	}
	if types := strings.Count(page, "\n# TYPE bloom_") + strings.Count(page, "\n# TYPE upstash_"); len(names) < types {
		t.Errorf("README has %d names of metrics: %q, and the page has %d", len(names), names, types)
	}
	for name, want := range map[string]string{
		"bloom_uncertain_total": "1", "upstash_retries_total": "1", "bloom_mirror_outage_seconds": "0",
		"bloom_mirror_size_bytes": fmt.Sprint(mirror.Stats().Bytes),
		"bloom_over_capacity":     "0",
	} {
		if got := values[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"bloom_fill_ratio", "bloom_false_positive_rate_ratio", "bloom_mirror_age_seconds"} {
		if got := values[name]; got == "" || got == "0" {
			t.Errorf("%s is %q, want a number above 0", name, got)
		}
	}
	if strings.Contains(page, "secret-key") || strings.Contains(page, server.Token) {
		t.Error("the page shows the key or the token")
	}

	for i := range 200 {
		if _, err := filter.Add(t.Context(), fmt.Sprint("one more ", i)); err != nil && !errors.Is(err, bloom.ErrUncertain) {
			t.Fatal(err)
		}
	}
	if _, values := metricsAt(t, endpoint); values["bloom_over_capacity"] != "1" {
		t.Errorf("bloom_over_capacity is %q at three times the capacity, want 1", values["bloom_over_capacity"])
	}

	window, err := bloom.NewWindow(client, "secret-window", bloom.WindowConfig{
		Capacity: 100, FPRate: 0.01, Span: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := window.Add(t.Context(), "item"); err != nil {
		t.Fatal(err)
	}
	if _, err := otel.ObserveFilter(meters, "recent", window); err != nil {
		t.Fatal(err)
	}
	if page, _ := metricsAt(t, endpoint); strings.Count(page, `bloom_filter="recent"`) != 3 {
		t.Errorf("the page lacks one of the three gauges of a window:\n%s", page)
	}
}

// metricsAt asks an endpoint for its page, and returns the values by the names of
// the metrics.
func metricsAt(t *testing.T, endpoint *httptest.Server) (page string, values map[string]string) {
	t.Helper()
	resp, err := endpoint.Client().Get(endpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for line := range strings.Lines(string(body)) {
		name, rest, _ := strings.Cut(line, "{")
		if _, value, ok := strings.Cut(rest, "} "); ok {
			values[name] = strings.TrimSpace(value)
		}
	}
	return string(body), values
}

// TestFillAtCapacity: README's alert goes off a little before a filter is full.
func TestFillAtCapacity(t *testing.T) {
	if rules := pages.Code(t, "README.md", "yaml")[0]; !strings.Contains(rules, "bloom_fill_ratio > 0.29\n") {
		t.Errorf("the bound of the rules is not 0.29:\n%s", rules)
	}
	client := upstashtest.NewServer(t).Client()
	defer client.Close()
	items := make([]string, 20_000)
	for i := range items {
		items[i] = fmt.Sprint("item ", i)
	}
	for _, rate := range []float64{0.01, 1e-6} {
		f, err := bloom.New(client, fmt.Sprint(rate), bloom.Config{Capacity: uint64(len(items)), FPRate: rate})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		stats, err := f.Stats(t.Context())
		if err != nil || stats.Fill < 0.305 || stats.Fill > 0.32 {
			t.Errorf("at capacity, at %v: a fill of %v, %v, want 0.31", rate, stats.Fill, err)
		}
	}
}
