// Package otel turns the calls of an upstash.Client into OpenTelemetry spans
// and metrics. Copy it into a program and change it: it is a recipe, not a
// library.
package otel

import (
	"context"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/upbloom/upbloom/upstash"
)

const scope = "github.com/upbloom/upbloom"

// Observe returns an option for upstash.New, which replaces another
// WithCallObserver: a log goes beside it by WithObserver. Every call becomes one client
// span, a child of the span in the call's context. Its attributes have the
// names of OpenTelemetry's conventions for databases. Three metrics record
// how long calls take, how many commands ran, and how often one was sent again.
// Commands inside a script are billed too, and are not counted.
func Observe(tracers trace.TracerProvider, meters metric.MeterProvider) (upstash.Option, error) {
	meter := meters.Meter(scope)
	duration, err1 := meter.Float64Histogram("db.client.operation.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of calls, with their retries."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10))
	commands, err2 := meter.Int64Counter("upstash.commands",
		metric.WithUnit("{command}"), metric.WithDescription("Commands by what is known of them."))
	retries, err3 := meter.Int64Counter("upstash.retries",
		metric.WithUnit("{attempt}"), metric.WithDescription("Attempts after the first of a call."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	tracer := tracers.Tracer(scope)
	return upstash.WithCallObserver(func(ctx context.Context, e upstash.Event) {
		common := attributes(e)
		set := metric.WithAttributeSet(attribute.NewSet(common...))
		duration.Record(ctx, e.Duration.Seconds(), set)
		count := func(n int, state string) {
			if n > 0 {
				commands.Add(ctx, int64(n), set, metric.WithAttributes(attribute.String("upstash.state", state)))
			}
		}
		count(e.Ran, "ran")
		count(e.MayHaveRun, "may_have_run")
		if e.Attempt > 1 {
			retries.Add(ctx, int64(e.Attempt-1), set)
		}
		record(ctx, tracer, e, common)
	}), nil
}

// record makes the span of a call after its end.
func record(ctx context.Context, tracer trace.Tracer, e upstash.Event, common []attribute.KeyValue) {
	_, span := tracer.Start(ctx, name(e), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(e.Start), trace.WithAttributes(common...))
	defer span.End(trace.WithTimestamp(e.Start.Add(e.Duration)))
	if !span.IsRecording() {
		return
	}
	if e.Label != "" {
		span.SetAttributes(attribute.String("db.query.summary", e.Label))
	}
	if e.Commands > 1 {
		span.SetAttributes(attribute.Int("db.operation.batch.size", e.Commands))
	}
	if e.Attempt > 1 {
		span.SetAttributes(attribute.Int("http.request.resend_count", e.Attempt-1))
	}
	span.SetAttributes(
		attribute.Int("http.request.body.size", e.BytesOut),
		attribute.Int("http.response.body.size", e.BytesIn))
	if e.Err != nil {
		span.SetStatus(codes.Error, e.Err.Error()) // the text has no key, item or token
	}
}

// name returns the span's name: the call's label, or the command if it has
// none.
func name(e upstash.Event) string {
	if e.Label != "" {
		return e.Label
	}
	return e.Command
}

// attributes returns the attributes with few values, which also suit a metric.
// The label is not among them, because it may name a key.
func attributes(e upstash.Event) []attribute.KeyValue {
	kv := []attribute.KeyValue{
		attribute.String("db.system.name", "redis"),
		attribute.String("db.operation.name", e.Command),
	}
	if e.StatusCode != 0 {
		kv = append(kv, attribute.Int("http.response.status_code", e.StatusCode))
	}
	var server *upstash.Error
	switch {
	case e.Err == nil:
	case errors.As(e.Err, &server):
		if code := server.Code(); code != "" {
			kv = append(kv, attribute.String("db.response.status_code", code))
		}
		kv = append(kv, attribute.String("error.type", strconv.Itoa(server.StatusCode)))
	case errors.Is(e.Err, context.DeadlineExceeded):
		kv = append(kv, attribute.String("error.type", "timeout"))
	default:
		kv = append(kv, attribute.String("error.type", "_OTHER"))
	}
	return kv
}
