package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/upbloom/upbloom/bloom"
)

// A filter is a [bloom.Filter], or any other type of package bloom in Redis.
type filter interface {
	Stats(ctx context.Context) (bloom.Stats, error)
}

// ObserveFilter makes gauges of how full a filter is and how often it is wrong,
// and of whether it is over its capacity: let that one raise an alarm. Each
// collection asks the database for its Stats, by one request of four commands for
// a [bloom.Filter]. If there is no answer, the gauges have no value.
func ObserveFilter(meters metric.MeterProvider, name string, f filter) (metric.Registration, error) {
	meter := meters.Meter(scope)
	fill, err1 := meter.Float64ObservableGauge("bloom.fill",
		metric.WithUnit("1"), metric.WithDescription("Share of the cells that are set."))
	rate, err2 := meter.Float64ObservableGauge("bloom.false_positive_rate",
		metric.WithUnit("1"), metric.WithDescription("Share of strangers that are found now."))
	over, err3 := meter.Int64ObservableGauge("bloom.over_capacity",
		metric.WithDescription("1 if the filter holds more than it is sized for, else 0."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	of := metric.WithAttributes(attribute.String("bloom.filter", name))
	return meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		stats, err := f.Stats(ctx)
		if err != nil {
			return err
		}
		o.ObserveFloat64(fill, stats.Fill, of)
		o.ObserveFloat64(rate, stats.LiveFPRate, of)
		tooMany := int64(0)
		if stats.OverCapacity() {
			tooMany = 1
		}
		o.ObserveInt64(over, tooMany, of)
		return nil
	}, fill, rate, over)
}

// ObserveMirror makes gauges of a Mirror's copy: its age, its memory, and for how
// long the server has been silent, 0 if it answers. It sends nothing.
func ObserveMirror(meters metric.MeterProvider, name string, m *bloom.Mirror) (metric.Registration, error) {
	meter := meters.Meter(scope)
	age, err1 := meter.Float64ObservableGauge("bloom.mirror.age",
		metric.WithUnit("s"), metric.WithDescription("Time since the last refresh."))
	size, err2 := meter.Int64ObservableGauge("bloom.mirror.size",
		metric.WithUnit("By"), metric.WithDescription("Memory of the copy."))
	silent, err3 := meter.Float64ObservableGauge("bloom.mirror.outage",
		metric.WithUnit("s"), metric.WithDescription("For how long the server has not answered."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	of := metric.WithAttributes(attribute.String("bloom.filter", name))
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		stats := m.Stats()
		if stats.Copied {
			o.ObserveFloat64(age, stats.Age.Seconds(), of)
		}
		o.ObserveInt64(size, int64(stats.Bytes), of)
		outage := 0.0
		if !stats.StaleSince.IsZero() {
			outage = time.Since(stats.StaleSince).Seconds()
		}
		o.ObserveFloat64(silent, outage, of)
		return nil
	}, age, size, silent)
}

// CountUncertain returns a function that counts the Adds of which nobody knows
// whether the item was new. Call it with the error of each Add.
func CountUncertain(meters metric.MeterProvider) (func(ctx context.Context, err error), error) {
	counter, err := meters.Meter(scope).Int64Counter("bloom.uncertain",
		metric.WithUnit("{item}"), metric.WithDescription("Adds that ended with ErrUncertain."))
	return func(ctx context.Context, err error) {
		if errors.Is(err, bloom.ErrUncertain) {
			counter.Add(ctx, 1)
		}
	}, err
}
