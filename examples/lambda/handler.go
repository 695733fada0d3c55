package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

const (
	// reserve is kept at the end of an invocation to record what was done and
	// to answer: at the deadline itself Lambda kills the process, and every
	// message of the batch comes back.
	reserve = time.Second
	// recordTime is the longest that the record may take: if more time is
	// left, nobody should pay for waiting on a database that stalls.
	recordTime = 3 * time.Second
)

// handler processes messages at least once, and a second time only rarely. It
// asks the filter first, does the work, and adds the id last: a Bloom filter
// cannot forget an id again, so that one added before its work failed would
// make the redelivered message look done. It is safe for concurrent use.
type handler struct {
	done    *bloom.Filter // ids of messages whose work is done
	process func(context.Context, events.SQSMessage) error

	// full is set once the filter holds more ids than it is sized for. It then
	// finds ids that it was never given, and a message that is skipped is lost:
	// from then on all are processed, duplicates too.
	full atomic.Bool
}

// newHandler makes a handler of the filter that cfg describes, and has it watch
// the filter's fill.
func newHandler(client *upstash.Client, key string, cfg bloom.Config,
	process func(context.Context, events.SQSMessage) error,
) (*handler, error) {
	h := &handler{process: process}
	cfg.WarnFill = h.warnFill
	var err error
	h.done, err = bloom.New(client, key, cfg)
	return h, err
}

// warnFill is called when the filter is over its capacity. Whoever reads the
// log makes a larger filter under another key.
func (h *handler) warnFill(s bloom.Stats) {
	h.full.Store(true)
	slog.Error("the filter is over its capacity: no message is skipped any more",
		"items", s.Items, "capacity", s.Capacity, "falsePositiveRate", s.LiveFPRate)
}

// checkFill looks once, when a sandbox starts: one that lives for few messages
// would not notice by itself.
func (h *handler) checkFill(ctx context.Context) {
	if s, err := h.done.Stats(ctx); err == nil && s.OverCapacity() {
		h.warnFill(s)
	}
}

// handle takes two requests to the database for a batch, whatever its size: one
// if nothing in it is new. An error means that all of the batch is delivered
// again, a BatchItemFailure that this message is.
func (h *handler) handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	var resp events.SQSEventResponse
	kept, toAnswer := keep(ctx)
	work, cancel := beforeDeadline(ctx, kept)
	defer cancel()
	ids := make([]string, len(batch.Records))
	for i, m := range batch.Records {
		ids[i] = dedupID(m)
	}
	seen, err := h.done.ExistsAll(work, ids)
	if err != nil {
		return resp, fmt.Errorf("which messages are done is not known: %w", err)
	}

	var finished []string
	inBatch := make(map[string]bool) // finished, to find duplicates within the batch
	for i, m := range batch.Records {
		if seen[i] && !h.full.Load() || inBatch[ids[i]] {
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

// try does the work on one message if there is time to begin it. A panic is
// that message's failure: it would end the process, and what was done before in
// the batch would be done again with every delivery.
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

// record adds the ids of messages whose work is done, whatever comes of it:
// reporting them as failed would have the work done twice for certain.
func (h *handler) record(ctx context.Context, ids []string) {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if _, err := h.done.AddAll(ctx, ids); !bloom.InFilter(err) {
		slog.WarnContext(ctx, "processed, but not recorded: duplicates will not be skipped", "err", err)
	}
}

// dedupID is the sender's own id if it sets one: a sender that sends again
// after a timeout makes a new message. It is an id of its queue: orders and
// refunds may both number from 1. A redelivery keeps its MessageId, which is
// one of its own anywhere, and which stands for an id that is empty.
func dedupID(m events.SQSMessage) string {
	if a, ok := m.MessageAttributes["dedup-id"]; ok && a.StringValue != nil && *a.StringValue != "" {
		return "attribute:" + m.EventSourceARN + ":" + *a.StringValue
	}
	return "message:" + m.MessageId
}

// keep returns how long before the deadline the work ends, and the record: the
// reserve, or a third of the time left if that is less, and 3/10 of it.
func keep(ctx context.Context) (kept, toAnswer time.Duration) {
	kept = reserve
	if deadline, ok := ctx.Deadline(); ok {
		kept = min(kept, max(0, time.Until(deadline)/3))
	}
	return kept, kept * 3 / 10
}

// beforeDeadline ends d before ctx does, if ctx has a deadline.
func beforeDeadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-d))
}
