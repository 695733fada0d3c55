package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
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

	// patience is for the body, the look-up and the work together: well below
	// the 10 s or more that senders wait, so that they get the answer.
	patience time.Duration
	// recordTime is for the Add after the work.
	recordTime time.Duration
}

func newService(handled *bloom.Filter, process func(context.Context, []byte) error) *service {
	return &service{
		handled: handled, process: process,
		patience: 5 * time.Second, recordTime: 2 * time.Second,
	}
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhook", s.webhook)
	mux.HandleFunc("GET /alive", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /ready", s.ready)
	return mux
}

// webhook answers 200 where the work is done, now or before: "new" or
// "duplicate". A 5xx asks the sender to try again, and is given only where the
// work is not done. It believes the id: check the sender's signature first.
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
	if seen {
		_, _ = io.WriteString(w, "duplicate\n")
		return
	}
	if err := s.process(ctx, body); err != nil {
		slog.ErrorContext(ctx, "not handled", "id", id, "err", err)
		http.Error(w, "not handled, try again", http.StatusInternalServerError)
		return
	}
	s.record(ctx, id)
	_, _ = io.WriteString(w, "new\n")
}

// readBody answers itself where it gives false. How long it may take is up to
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

// detach gives a step its own time, whatever ended before. A request's context
// ends when its sender goes away. That must not stop work half-way: the sender
// comes back, and it would begin again.
func detach(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// ready is for the startup probe: a wrong URL, token or filter keeps a revision
// from getting traffic, and the connection is open before the first request.
// The liveness probe is /alive, for a restart repairs no database.
func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := detach(r.Context(), s.patience)
	defer cancel()
	if _, err := s.handled.Exists(ctx, "ready"); err != nil {
		unavailable(w, r, err)
	}
}

// unavailable says when to try again: when the database does, or in a second.
func unavailable(w http.ResponseWriter, r *http.Request, err error) {
	slog.ErrorContext(r.Context(), "which webhooks are handled is not known", "err", err)
	wait := max(time.Second, upstash.RetryAfter(err))
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}
