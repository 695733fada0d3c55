//go:build !wasm

package upstash

import "log/slog"

// LogValue returns the event as a group. Its took is a [time.Duration]: text such
// as 1.5ms in a text log, and a number of nanoseconds in one of JSON.
//
// On wasm there is no LogValue. A log of JSON then has the fields of the struct, and
// no text in its Err: log the fields by themselves.
func (e Event) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 12)
	if e.Label != "" {
		attrs = append(attrs, slog.String("label", e.Label))
	}
	attrs = append(attrs, slog.String("command", e.Command))
	if e.Commands != 1 {
		attrs = append(attrs, slog.Int("commands", e.Commands))
	}
	attrs = append(attrs, slog.Int("attempt", e.Attempt), slog.Int("status", e.StatusCode),
		slog.Int("ran", e.Ran))
	if e.MayHaveRun > 0 {
		attrs = append(attrs, slog.Int("may_have_run", e.MayHaveRun))
	}
	attrs = append(attrs, slog.Duration("took", e.Duration),
		slog.Int("out", e.BytesOut), slog.Int("in", e.BytesIn))
	if e.Err != nil {
		attrs = append(attrs, slog.String("err", e.Err.Error()))
	}
	return slog.GroupValue(attrs...)
}
