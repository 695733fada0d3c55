package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/upbloom/upbloom/bloom"
)

// reserve is kept at the end of an invocation to record what was done and to
// answer: at the deadline itself Lambda kills the process, and every message of
// the batch comes back.
const reserve = time.Second

// handler processes messages at least once, and a second time only rarely. It
// asks the filter first, does the work, and adds the id last: a Bloom filter
// cannot forget an id again, so that one added before its work failed would
// make the redelivered message look done. It is safe for concurrent use.
type handler struct {
	done    *bloom.Filter // ids of messages whose work is done
	process func(context.Context, events.SQSMessage) error
}

// handle takes two requests to the database for a batch, whatever its size: one
// where nothing in it is new. An error means that all of the batch is delivered
// again, a BatchItemFailure that this message is.
func (h *handler) handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	var resp events.SQSEventResponse
	work, cancel := beforeDeadline(ctx, reserve)
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
		if seen[i] || inBatch[ids[i]] {
			continue
		}
		err := work.Err() // no time is left to begin another
		if err == nil {
			err = h.process(work, m)
		}
		if err != nil {
			slog.ErrorContext(ctx, "not processed", "message", m.MessageId, "err", err)
			resp.BatchItemFailures = append(resp.BatchItemFailures,
				events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			continue
		}
		inBatch[ids[i]] = true
		finished = append(finished, ids[i])
	}

	// The work is done, whatever comes of its record: reporting these messages
	// as failed would have it done twice for certain.
	if _, err = h.done.AddAll(ctx, finished); !bloom.InFilter(err) {
		slog.WarnContext(ctx, "processed, but not recorded: duplicates will not be skipped", "err", err)
	}
	slog.InfoContext(ctx, "batch", "messages", len(ids), "processed", len(finished),
		"failed", len(resp.BatchItemFailures))
	return resp, nil
}

// dedupID is the sender's own id where it sets one: a sender that sends again
// after a timeout makes a new message. A redelivery keeps its MessageId.
func dedupID(m events.SQSMessage) string {
	if a, ok := m.MessageAttributes["dedup-id"]; ok && a.StringValue != nil {
		return "attribute:" + *a.StringValue
	}
	return "message:" + m.MessageId
}

// beforeDeadline ends d before ctx does, where ctx has a deadline.
func beforeDeadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-d))
}
