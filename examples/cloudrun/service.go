package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// maxBody is the longest webhook, in bytes.
const maxBody = 1 << 20

// service handles webhooks at least once, and a second time only rarely. It
// asks the filter first, does the work, and adds the id last: a Bloom filter
// cannot forget an id again, so that one added before its work failed would
// make the sender's next attempt look done. It is safe for concurrent use.
type service struct {
	handled *bloom.Filter // ids of webhooks whose work is done
	process func(ctx context.Context, body []byte) error

	// full is set once the filter holds more ids than it is sized for. It then
	// finds ids that it was never given, and a webhook that is skipped is lost:
	// from then on all are handled, duplicates too.
	full atomic.Bool

	// patience is for the body, the look-up and the work together: well below
	// the 10 s or more that senders wait, so that they get the answer.
	patience time.Duration
	// recordTime is for the Add after the work.
	recordTime time.Duration
}

// newService makes a service of the filter that cfg describes, and has it watch
// the filter's fill.
func newService(client *upstash.Client, key string, cfg bloom.Config,
	process func(context.Context, []byte) error,
) (*service, error) {
	s := &service{process: process, patience: 5 * time.Second, recordTime: 2 * time.Second}
	cfg.WarnFill = s.warnFill
	var err error
	s.handled, err = bloom.New(client, key, cfg)
	return s, err
}

// warnFill is called when the filter is over its capacity. Whoever reads the
// log makes a larger filter under another key.
func (s *service) warnFill(st bloom.Stats) {
	s.full.Store(true)
	slog.Error("the filter is over its capacity: no webhook is skipped any more",
		"items", st.Items, "capacity", st.Capacity, "falsePositiveRate", st.LiveFPRate)
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhook", s.webhook)
	mux.HandleFunc("GET /alive", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /ready", s.ready)
	return mux
}

// webhook answers 200 if the work is done, now or before: "new" or "duplicate".
// A 5xx asks the sender to try again, and is the answer only if the work is not
// done. It believes the id: check the sender's signature first.
func (s *service) webhook(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Webhook-Id")
	if id == "" {
		http.Error(w, "the header Webhook-Id is missing", http.StatusBadRequest)
		return
	}
	ctx, cancel := detach(r.Context(), s.patience)
	defer cancel()
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	seen, err := s.handled.Exists(ctx, id)
	if err != nil {
		unavailable(w, r, err)
		return
	}
	if seen && !s.full.Load() {
		_, _ = io.WriteString(w, "duplicate\n")
		return
	}
	if err := s.try(ctx, body); err != nil {
		slog.ErrorContext(ctx, "not handled", "id", id, "err", err)
		http.Error(w, "not handled, try again", http.StatusInternalServerError)
		return
	}
	s.record(ctx, id)
	_, _ = io.WriteString(w, "new\n")
}

// try does the work. A panic is this webhook's failure: left to net/http it
// would close the connection without an answer, and be logged without a
// severity.
func (s *service) try(ctx context.Context, body []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return s.process(ctx, body)
}

// readBody answers itself if it returns false. How long it may take is up to
// the server's ReadTimeout.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		http.Error(w, "the body is too long", http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "the body did not arrive", http.StatusRequestTimeout)
	}
	return body, err == nil
}

// record adds the id of a webhook whose work is done. Whatever comes of it, the
// answer is 200: any other would have the work done twice for certain.
func (s *service) record(ctx context.Context, id string) {
	ctx, cancel := detach(ctx, s.recordTime)
	defer cancel()
	if _, err := s.handled.Add(ctx, id); !bloom.InFilter(err) {
		slog.WarnContext(ctx, "handled, but not recorded: a duplicate will not be skipped", "err", err)
	}
}

// detach returns a context with its own time, whatever ended before. A
// request's context ends when its sender goes away. That must not stop work
// half-way: the sender comes back, and it would begin again.
func detach(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// ready is for the startup probe: a wrong URL, token or filter keeps a revision
// from getting traffic, the connection is open before the first request, and an
// overfull filter is noticed by an instance that has added nothing to it. The
// liveness probe is /alive, for a restart repairs no database.
func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := detach(r.Context(), s.patience)
	defer cancel()
	st, err := s.handled.Stats(ctx)
	switch {
	case errors.Is(err, bloom.ErrNotFound): // the first Add makes it
	case err != nil:
		unavailable(w, r, err)
	case st.OverCapacity():
		s.warnFill(st)
	}
}

// unavailable says when to try again: when the database does, or in a second.
func unavailable(w http.ResponseWriter, r *http.Request, err error) {
	slog.ErrorContext(r.Context(), "which webhooks are handled is not known", "err", err)
	wait := max(time.Second, upstash.RetryAfter(err))
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}
