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

// service handles each webhook at least once, and seldom twice. It asks the
// window first, does the work, and adds the id last. A window cannot forget a
// single id. If the id were added first and the work failed, the sender's next
// attempt would look done. A service is safe for concurrent use.
type service struct {
	client  *upstash.Client
	handled *bloom.Window // ids of webhooks whose work is done
	process func(ctx context.Context, body []byte) error

	// full is set once the window holds more ids than it is sized for. It then
	// finds too many new ids, and the service would skip webhooks it has never
	// handled. From then on it handles all webhooks, even duplicates.
	full atomic.Bool
	// recorded is how many ids this instance has recorded, and lookEvery after how
	// many it looks at the fill.
	recorded  atomic.Int64
	lookEvery int64

	// patience limits the body, the look-up and the work together. Senders wait
	// 10 s or more. patience is well below that, so they get the answer.
	patience time.Duration
	// recordTime limits the Add after the work.
	recordTime time.Duration
}

// newService returns a service with the window of cfg. It watches the fill.
func newService(client *upstash.Client, key string, cfg bloom.WindowConfig,
	process func(context.Context, []byte) error,
) (*service, error) {
	s := &service{
		client: client, process: process, patience: 5 * time.Second, recordTime: 2 * time.Second,
	}
	s.lookEvery = int64(max(1, cfg.Capacity/10))
	var err error
	s.handled, err = bloom.NewWindow(client, key, cfg)
	return s, err
}

// look looks at the fill. The log line asks an operator to make a larger window
// under another key. A missing window is not full: the first Add makes it.
func (s *service) look(ctx context.Context) error {
	st, err := s.handled.Stats(ctx)
	if err != nil && !errors.Is(err, bloom.ErrNotFound) {
		return err
	}
	if st.OverCapacity() && !s.full.Swap(true) {
		slog.ErrorContext(ctx, "the window is over its capacity: no webhook is skipped any more",
			"capacity", st.Capacity, "falsePositiveRate", st.LiveFPRate)
	}
	return nil
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhook", s.webhook)
	mux.HandleFunc("GET /alive", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /ready", s.ready)
	return takenWithin(answerTime, mux)
}

// takenWithin limits how long a sender may take to read an answer of h. Answers
// are short, so net/http writes one when h has returned. First it reads the
// rest of the body, until readTime is over. Otherwise a sender could send more
// requests, read no answer, hold its connection and delay the end of the
// process.
func takenWithin(limit time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodyEnds := time.Now().Add(readTime)
		h.ServeHTTP(w, r)
		begins := time.Now()
		if bodyEnds.After(begins) {
			begins = bodyEnds
		}
		_ = http.NewResponseController(w).SetWriteDeadline(begins.Add(limit))
	})
}

// webhook answers 200 with "new" if it has done the work, and 200 with
// "duplicate" if the work was done before. A 5xx asks the sender to try again,
// and is sent only if the work is not done. webhook trusts the id: check the
// sender's signature first.
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

// try does the work and turns a panic into an error. net/http would close the
// connection without an answer, and log the panic without a severity.
func (s *service) try(ctx context.Context, body []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return s.process(ctx, body)
}

// readBody reads the body within the server's ReadTimeout. If it returns false,
// it has already answered the request.
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

// record adds the id of a webhook whose work is done. If that fails, it only
// logs a warning: after any other answer than 200 the work would certainly be
// done twice.
func (s *service) record(ctx context.Context, id string) {
	ctx, cancel := detach(ctx, s.recordTime)
	defer cancel()
	if _, err := s.handled.Add(ctx, id); !bloom.InFilter(err) {
		slog.WarnContext(ctx, "handled, but not recorded: a duplicate will not be skipped", "err", err)
	}
	if s.recorded.Add(1)%s.lookEvery == 0 {
		if err := s.look(ctx); err != nil {
			slog.WarnContext(ctx, "how full the window is is not known", "err", err)
		}
	}
}

// detach returns a context with its own time limit. It does not end with ctx: a
// request's context ends when its sender goes away. That must not stop the work
// halfway, because the sender would return and the work would begin again.
func detach(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// ready is for the startup probe. A revision with a wrong URL, token or window
// gets no traffic. It opens the connection before the first request, and learns
// the server's time, which the window needs. An instance that has added nothing
// yet learns here whether the window is too full. The liveness probe is /alive
// instead, because a restart repairs no database.
func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := detach(r.Context(), s.patience)
	defer cancel()
	_, err := s.client.ServerTime(ctx)
	if err == nil {
		err = s.look(ctx)
	}
	if err != nil {
		unavailable(w, r, err)
	}
}

// unavailable answers 503. Retry-After is what the database asks for, or one
// second.
func unavailable(w http.ResponseWriter, r *http.Request, err error) {
	slog.ErrorContext(r.Context(), "which webhooks are handled is not known", "err", err)
	wait := time.Second
	if server := (*upstash.Error)(nil); errors.As(err, &server) {
		wait = max(wait, server.RetryAfter)
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}
