package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// handler processes each message at least once, and seldom twice. It asks the
// window first, does the work, and adds the id last. A window cannot forget a
// single id. If the id were added first and the work failed, the message would
// look done when it is delivered again. A handler is safe for concurrent use.
type handler struct {
	client  *upstash.Client
	done    *bloom.Window // ids of messages whose work is done
	process func(context.Context, events.SQSMessage) error

	// looked is true if the last look at the fill succeeded. recorded is how many
	// ids this sandbox has recorded since, and lookEvery after how many it looks
	// again.
	looked    atomic.Bool
	recorded  atomic.Int64
	lookEvery int64
	// full is set once the window holds more ids than it is sized for. It then
	// finds too many new ids, and the handler would skip messages it has never
	// processed. From then on it processes all messages, even duplicates.
	full atomic.Bool

	// reserve is kept at the end of an invocation for recording what was done
	// and for answering. At the deadline itself Lambda kills the process, and
	// SQS delivers every message of the batch again.
	reserve time.Duration
	// recordTime limits the record. Waiting longer for a stalled database costs
	// money, even if there is time left.
	recordTime time.Duration
	// lookTime limits a look at the fill.
	lookTime time.Duration
}

// newHandler returns a handler with the window of cfg. It watches the fill.
func newHandler(client *upstash.Client, key string, cfg bloom.WindowConfig,
	process func(context.Context, events.SQSMessage) error,
) (*handler, error) {
	h := &handler{
		client: client, process: process,
		reserve: time.Second, recordTime: recordTime, lookTime: lookTime,
	}
	h.lookEvery = int64(cfg.Capacity / 10)
	var err error
	h.done, err = bloom.NewWindow(client, key, cfg)
	return h, err
}

// checkFill learns the server's time, which the window needs, and looks at the
// fill when the sandbox starts and after each tenth of Capacity. After an error
// nobody knows whether the window is right about an id it finds. No message is
// skipped then, and the next invocation looks again. A missing window is not
// full. The log line asks an operator to make a larger window under another key.
func (h *handler) checkFill(ctx context.Context) error {
	if h.looked.Load() && h.recorded.Load() < h.lookEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.lookTime)
	defer cancel()
	var s bloom.Stats
	_, err := h.client.ServerTime(ctx)
	if err == nil {
		s, err = h.done.Stats(ctx)
	}
	missing := errors.Is(err, bloom.ErrNotFound)
	h.looked.Store(err == nil || missing)
	if err != nil && !missing {
		return fmt.Errorf("how full the window is is not known: %w", err)
	}
	h.recorded.Store(0)
	if s.OverCapacity() && !h.full.Swap(true) {
		slog.ErrorContext(ctx, "the window is over its capacity: no message is skipped any more",
			"capacity", s.Capacity, "falsePositiveRate", s.LiveFPRate)
	}
	return nil
}

// skips reports whether a message is skipped if the window finds it.
func (h *handler) skips() bool { return h.looked.Load() && !h.full.Load() }

// handle makes two requests to the database for a batch, or one if nothing in
// the batch is new. The first one also looks at the fill, and so does one in many
// later on. After an error
// SQS delivers the whole batch again, after a BatchItemFailure only that
// message.
func (h *handler) handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	var resp events.SQSEventResponse
	kept, toAnswer := keep(ctx, h.reserve)
	work, cancel := beforeDeadline(ctx, kept)
	defer cancel()
	ids := make([]string, len(batch.Records))
	for i, m := range batch.Records {
		if m.MessageId == "" {
			return resp, fmt.Errorf("record %d of %d has no messageId, and was sent by %q: this function is for SQS",
				i+1, len(batch.Records), m.EventSource)
		}
		ids[i] = dedupID(m)
	}
	if err := h.checkFill(work); err != nil {
		slog.WarnContext(ctx, "no message is skipped", "err", err)
	}
	seen, err := h.done.ExistsAll(work, ids)
	if err != nil {
		return resp, fmt.Errorf("which messages are done is not known: %w", err)
	}

	var finished []string
	inBatch := make(map[string]bool) // the ids in finished
	for i, m := range batch.Records {
		if seen[i] && h.skips() || inBatch[ids[i]] {
			continue
		}
		if err := h.try(work, m); err != nil {
			slog.ErrorContext(ctx, "not processed", "message", m.MessageId, "err", err)
			resp.BatchItemFailures = append(resp.BatchItemFailures,
				events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			continue
		}
		inBatch[ids[i]] = true
		finished = append(finished, ids[i])
	}
	record, cancel := beforeDeadline(ctx, toAnswer)
	defer cancel()
	h.record(record, finished)
	slog.InfoContext(ctx, "batch", "messages", len(ids), "processed", len(finished),
		"failed", len(resp.BatchItemFailures))
	return resp, nil
}

// try does the work on one message if there is time to begin it. It turns a
// panic into that message's failure. Otherwise the panic would end the process,
// and each delivery would process the messages before it again.
func (h *handler) try(ctx context.Context, m events.SQSMessage) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.process(ctx, m)
}

// record adds the ids of messages whose work is done. If that fails, it only
// logs a warning: if it reported a failure to SQS, the work would certainly be
// done twice.
func (h *handler) record(ctx context.Context, ids []string) {
	ctx, cancel := context.WithTimeout(ctx, h.recordTime)
	defer cancel()
	h.recorded.Add(int64(len(ids)))
	if _, err := h.done.AddAll(ctx, ids); !bloom.InFilter(err) {
		slog.WarnContext(ctx, "processed, but not recorded: duplicates will not be skipped", "err", err)
	}
}

// dedupID returns the sender's own id if the message has one: after a timeout a
// sender makes a new message. The queue's name is part of it, because orders
// and refunds may both count from 1. Otherwise dedupID returns the MessageId.
// It is unique among all queues, and the same in each delivery of a message.
func dedupID(m events.SQSMessage) string {
	if a, ok := m.MessageAttributes["dedup-id"]; ok && a.StringValue != nil && *a.StringValue != "" {
		return "attribute:" + m.EventSourceARN + ":" + *a.StringValue
	}
	return "message:" + m.MessageId
}

// keep returns how long before ctx's deadline the work must end, and how long
// before it the record must end. The first is reserve, but at most a third of
// the time left. The second is 3/10 of the first.
func keep(ctx context.Context, reserve time.Duration) (kept, toAnswer time.Duration) {
	kept = reserve
	if deadline, ok := ctx.Deadline(); ok {
		kept = min(kept, max(0, time.Until(deadline)/3))
	}
	return kept, kept * 3 / 10
}

// beforeDeadline returns a context that ends d before ctx's deadline, or ctx
// itself if it has none.
func beforeDeadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-d))
}
