package upstash

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	notSent = NotSent(errors.New("dial failed"))
	dropped = io.ErrUnexpectedEOF
)

// TestAttempts counts the attempts for each class of failure, of a repeatable
// command and of another.
func TestAttempts(t *testing.T) {
	const all = 1 + defaultRetries
	for _, tt := range []struct {
		name             string
		answer           answer
		repeatable, once int
		safe             bool // SafeToRetry of the error at the end
	}{
		{"never sent", answer{err: notSent}, all, all, true},
		{"dropped", answer{err: dropped}, all, 1, false},
		{"500", answer{status: 500, body: `{"error":"ERR"}`}, all, 1, false},
		{"502 with HTML", answer{status: 502, body: "<html>"}, all, 1, false},
		{"503 with a short Retry-After", answer{status: 503, retryAfter: "0"}, all, 1, false},
		{"503 with a long Retry-After", answer{status: 503, retryAfter: "3600"}, 1, 1, false},
		{"408", answer{status: 408}, all, 1, false},
		{"103", answer{status: 103}, 1, 1, false},
		{"429", answer{status: 429, body: `{"error":"ERR max"}`}, all, all, true},
		{"429 with HTML", answer{status: 429, body: "<html>"}, all, all, true},
		{"429 with a long Retry-After", answer{status: 429, retryAfter: "31"}, 1, 1, true},
		{"429 of a quota", answer{status: 429, body: `{"error":"ERR max requests limit exceeded. Limit: 5, Usage: 7"}`}, 1, 1, true},
		{"400", answer{status: 400, body: `{"error":"ERR"}`}, 1, 1, true},
		{"401", answer{status: 401, body: `{"error":"WRONGPASS"}`}, 1, 1, true},
		{"413", answer{status: 413, body: `{"error":"ERR max"}`}, 1, 1, true},
		{"200 with an error", answer{body: `{"error":"ERR"}`}, 1, 1, true},
		{"redirect", answer{status: 307}, 1, 1, false},
		{"not JSON", answer{body: "error code: 1016"}, all, 1, false},
		{"RESP2 in place of JSON", answer{body: ":1\r\n"}, all, 1, false},
		{"cut JSON", answer{body: `{"result":`}, all, 1, false},
		{"too large", answer{err: ErrResponseTooLarge}, 1, 1, false},
		{"no transport", answer{err: NotSent(ErrNoTransport)}, 1, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for cmd, want := range map[string]int{"SET": tt.repeatable, "INCR": tt.once} {
					c, f := newFake(t, []answer{tt.answer})
					_, err := c.Do(t.Context(), Cmd(cmd, "k", "v"))
					if f.count() != want {
						t.Errorf("%s: %d attempts, want %d", cmd, f.count(), want)
					}
					if err == nil || SafeToRetry(err) != tt.safe {
						t.Errorf("%s: SafeToRetry(%v) = %v", cmd, err, !tt.safe)
					}
					var call *CallError
					if errors.As(err, &call) && call.Attempts != want {
						t.Errorf("%s: the error speaks of %d attempts, want %d", cmd, call.Attempts, want)
					}

					c, f = newFake(t, []answer{tt.answer}, WithRetry(0))
					_, err = c.Do(t.Context(), Cmd(cmd, "k", "v"))
					if f.count() != 1 || err == nil {
						t.Errorf("%s without retries: %d attempts, want 1 and an error: %v",
							cmd, f.count(), err)
					}
				}
			})
		})
	}
}

func TestFailedScriptMayHaveRun(t *testing.T) {
	for status, safe := range map[int]bool{400: false, 200: false, 401: true, 413: true, 429: true} {
		c, _ := newFake(t, []answer{{status: status, body: `{"error":"ERR in script"}`}}, WithRetry(0))
		_, err := c.Do(t.Context(), Cmd("EVAL", "x", "0"))
		if err == nil || SafeToRetry(err) != safe {
			t.Errorf("status %d: SafeToRetry(%v) = %v", status, err, !safe)
		}
	}
	c, _ := newFake(t, []answer{{status: 400, body: `{"error":"NOSCRIPT No matching script."}`}})
	if _, err := c.Do(t.Context(), Cmd("EVALSHA", "abc", "0")); err == nil || !SafeToRetry(err) {
		t.Errorf("a script that is not there: SafeToRetry(%v) is false", err)
	}
}

// ranBefore has first attempts after which a second one may be a repetition, and
// others.
var ranBefore = map[*answer]bool{
	{err: dropped}: true, {status: 500}: true, {err: notSent}: false, {status: 429}: false,
}

// secondly makes a client whose second attempt is answered.
func secondly(t *testing.T, first answer, body string) *Client {
	t.Helper()
	c, _ := newFake(t, []answer{first, {body: body}})
	return c
}

func TestMaybeRepeated(t *testing.T) {
	for first, want := range ranBefore {
		r, err := secondly(t, *first, `{"result":[0]}`).Do(t.Context(), Cmd("BITFIELD", "k", "SET", "u1", "0", "1"))
		if err != nil || r.MaybeRepeated() != want {
			t.Errorf("after %+v: MaybeRepeated is %v, want %v: %v", first, r.MaybeRepeated(), want, err)
		}
		replies, err := secondly(t, *first, `[{"result":0}]`).MultiExec(t.Context(), Cmd("PERSIST", "k"))
		if err != nil || replies[0].MaybeRepeated() != want {
			t.Errorf("after %+v: a transaction: %v, %v, want MaybeRepeated %v", first, replies, err, want)
		}
	}
	// Of three attempts the first was lost, and the second was not sent at all.
	c, _ := newFake(t, []answer{{err: dropped}, {err: notSent}, {body: `{"result":"OK"}`}})
	if r, err := c.Do(t.Context(), Cmd("SET", "k", "v")); err != nil || !r.MaybeRepeated() {
		t.Errorf("at the third attempt: MaybeRepeated is %v, want true: %v", r.MaybeRepeated(), err)
	}
}

func TestBitFieldIsUncertainOnlyIfItWrites(t *testing.T) {
	for first, want := range ranBefore {
		got, err := secondly(t, *first, `{"result":[0]}`).BitField(t.Context(), NewBitField("k").Set("u1", 0, 1))
		if errors.Is(err, ErrMaybeRepeated) != want || len(got) != 1 {
			t.Errorf("after %+v: a write: %v, %v, want an answer, uncertain: %v", first, got, err, want)
		}
		_, err = secondly(t, *first, `{"result":[0]}`).BitField(t.Context(), NewBitField("k").Get("u1", 0))
		if err != nil {
			t.Errorf("after %+v: a read: %v", first, err)
		}
	}
}

// A 1 is certain: an attempt before would have left nothing to do. A 0 may follow
// from one: it took the expiry off, or its key has expired.
func TestOnlyNothingDoneIsUncertain(t *testing.T) {
	for first, mayHaveRun := range ranBefore {
		for result, want := range map[string]bool{"0": mayHaveRun, "1": false} {
			body := `{"result":` + result + `}`
			_, persist := secondly(t, *first, body).Persist(t.Context(), "k")
			_, expire := secondly(t, *first, body).Expire(t.Context(), "k", time.Millisecond)
			if errors.Is(persist, ErrMaybeRepeated) != want || errors.Is(expire, ErrMaybeRepeated) != want {
				t.Errorf("after %+v: %s of Persist and Expire: %v and %v", first, result, persist, expire)
			}
		}
	}
}

// If a method that reads a reply returns an error, the error counts the
// attempts of the call.
func TestAnErrorOfAReplyCountsTheAttempts(t *testing.T) {
	lost := func(body string) *Client { return secondly(t, answer{err: dropped}, body) }
	_, uncertain := lost(`{"result":0}`).Persist(t.Context(), "k")
	_, wrongType := lost(`{"result":"x"}`).BitCount(t.Context(), "k")
	list, err1 := lost(`{"result":["x"]}`).Do(t.Context(), Cmd("MGET", "k"))
	batch, err2 := lost(`[{"result":"x"}]`).Pipeline(t.Context(), Cmd("GET", "k"))
	elements, err3 := list.Array()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	_, ofElement := elements[0].Int64()
	_, inBatch := batch[0].Int64()

	for _, err := range []error{uncertain, wrongType, ofElement, inBatch} {
		var call *CallError
		if !errors.As(err, &call) || call.Attempts != 2 || !strings.Contains(err.Error(), "after 2 attempts") {
			t.Errorf("got %v, want one that speaks of 2 attempts", err)
		}
	}
}

func TestPause(t *testing.T) {
	s := settings{backoffBase: 50 * time.Millisecond, backoffCap: 2 * time.Second}
	for n, ceiling := range map[int]time.Duration{
		1: 50 * time.Millisecond, 2: 100 * time.Millisecond, 5: 800 * time.Millisecond,
		6: 1600 * time.Millisecond, 7: 2 * time.Second, 70: 2 * time.Second, math.MaxInt: 2 * time.Second,
	} {
		var sum, highest time.Duration
		const draws = 4000
		for range draws {
			d := s.pause(n, nil)
			if d < 0 || d > ceiling {
				t.Fatalf("retry %d: pause %v, want at most %v", n, d, ceiling)
			}
			sum, highest = sum+d, max(highest, d)
		}
		// Full jitter: uniform, with its mean in the middle. Seven standard
		// errors of the mean are 3.2 percent of the ceiling.
		mean := float64(sum) / draws / float64(ceiling)
		if math.Abs(mean-0.5) > 0.032 || float64(highest) < 0.98*float64(ceiling) {
			t.Errorf("retry %d: mean %.3f of the ceiling, highest %v of %v", n, mean, highest, ceiling)
		}
	}
	for _, s := range []settings{{}, {backoffCap: time.Hour}} {
		if d := s.pause(99, nil); d != 0 {
			t.Errorf("base 0: pause %v, want 0", d)
		}
	}
	limited := &Error{StatusCode: 429, RetryAfter: 7 * time.Second}
	if d := s.pause(1, limited); d < 7*time.Second || d >= 9*time.Second {
		t.Errorf("Retry-After of 7 s: pause %v, want 7 to 9 s", d)
	}
	forever := settings{backoffBase: 1, backoffCap: math.MaxInt64}
	if d := forever.pause(64, nil); d < 0 {
		t.Errorf("pause %v after 64 attempts, want 0 or more", d)
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, time.October, 21, 7, 27, 30, 0, time.UTC)
	for s, want := range map[string]time.Duration{
		"": 0, "0": 0, "12": 12 * time.Second, "-1": 0, "1.5": 0, "soon": 0,
		"99999999999":                   math.MaxInt32 * time.Second,
		"Wed, 21 Oct 2026 07:28:00 GMT": 30 * time.Second,
		"Wed, 21 Oct 2026 07:00:00 GMT": 0,
		// The old forms of a date: RFC 9110, section 5.6.7.
		"Wednesday, 21-Oct-26 07:28:00 GMT": 30 * time.Second,
		"Wed Oct 21 07:28:00 2026":          30 * time.Second,
		"Wed Oct  7 07:28:00 2026":          0,
		"Sat Nov  7 07:27:30 2026":          17 * 24 * time.Hour,
		"Fri, 31 Dec 9999 23:59:59 GMT":     math.MaxInt32 * time.Second,
		"Wed, 21 Oct 2026 07:28:00 CET":     0,
	} {
		if got := parseRetryAfter(s, now); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

// TestNoSleepPastTheDeadline: if the deadline would cut a pause short, the
// pause is not begun at all.
func TestNoSleepPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c, f := newFake(t, []answer{{status: 429, retryAfter: "5"}})
		start := time.Now()
		_, err := c.Do(ctx, Cmd("INCR", "k"))
		var server *Error
		if !errors.As(err, &server) || server.StatusCode != 429 || f.count() != 1 {
			t.Errorf("got %v after %d attempts", err, f.count())
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("waited %v in vain", waited)
		}
	})
}

func TestCancelEndsThePause(t *testing.T) {
	for _, tt := range []struct {
		answer answer
		want   string
	}{
		{
			answer{status: 429, body: `{"error":"ERR max"}`, retryAfter: "20"},
			"ERR max (HTTP status 429): send fewer at a time; try again in 20s; the command did not run",
		},
		{answer{status: 503, body: `{"error":"ERR x"}`}, "ERR x (HTTP status 503); the command may have run"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(1, cancel) // the clock stands still until the pause
			c, f := newFake(t, []answer{tt.answer}, WithBackoff(time.Hour, time.Hour))
			start := time.Now()
			_, err := c.Do(ctx, Cmd("SET", "k", "v"))
			var server *Error
			if !errors.Is(err, context.Canceled) || !errors.As(err, &server) || f.count() != 1 ||
				err.Error() != "upstash: SET: context canceled, after: "+tt.want {
				t.Errorf("got %v after %d attempts, want one and %s", err, f.count(), tt.want)
			}
			if safe := strings.HasSuffix(tt.want, "did not run"); SafeToRetry(err) != safe {
				t.Errorf("SafeToRetry(%v) = %v", err, !safe)
			}
			if waited := time.Since(start); waited != 1 {
				t.Errorf("waited %v, want 1ns", waited)
			}
		})
	}
}

// TestSentIsTheStartOfTheAnsweredAttempt: Sent of each reply of a call is the
// start of the answered attempt, and not of the call.
func TestSentIsTheStartOfTheAnsweredAttempt(t *testing.T) {
	list := Cmd("LRANGE", "k", "0", "-1")
	for body, send := range map[string]func(context.Context, *Client) (Reply, error){
		`{"result":[1]}`: func(ctx context.Context, c *Client) (Reply, error) { return c.Do(ctx, list) },
		"*1\r\n:1\r\n":   func(ctx context.Context, c *Client) (Reply, error) { return c.Do(ctx, list.Binary()) },
		`[{"result":[1]}]`: func(ctx context.Context, c *Client) (Reply, error) {
			replies, err := c.Pipeline(ctx, list)
			return append(replies, Reply{})[0], err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			// Each attempt takes a second, and the pause between them two.
			wait := func(context.Context) { time.Sleep(time.Second) }
			c, _ := newFake(t, []answer{{status: 429, retryAfter: "2", hook: wait}, {body: body, hook: wait}},
				WithBackoff(0, 0))
			start := time.Now()
			r, err := send(t.Context(), c)
			elements, arrayErr := r.Array()
			if err := errors.Join(err, arrayErr); err != nil {
				t.Fatal(err)
			}
			for _, each := range append(elements, r) {
				if sent := each.Sent().Sub(start); sent != 3*time.Second {
					t.Errorf("%s: sent %v after the call, want 3 s", body, sent)
				}
			}
		})
	}
	if sent := (Reply{}).Sent(); !sent.IsZero() {
		t.Errorf("a Reply that no call returned was sent at %v", sent)
	}
}

// TestRetryBudget: a thousand callers of a dead server send few more requests
// than they make calls. When the server is back, it gets retries again.
func TestRetryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t, []answer{{status: 503}}, WithBackoff(defaultBackoffBase, defaultBackoffCap))
		const callers = 1000
		everyone := func(calls int) (requests int) {
			before := f.count()
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range calls {
						_, _ = c.Do(t.Context(), Cmd("GET", "k"))
					}
				})
			}
			group.Wait()
			return f.count() - before
		}
		if n := everyone(1); n != callers+defaultRetryBudget {
			t.Errorf("%d requests of %d calls that spend the budget, want %d more",
				n, callers, defaultRetryBudget)
		}
		if n := everyone(5); n > 5*callers*12/10 {
			t.Errorf("%d requests of %d calls once the budget is spent, want 1.2 each at most",
				n, 5*callers)
		}
		setScript := func(a answer) {
			f.mu.Lock()
			f.script = append(make([]answer, len(f.requests)), a)
			f.script[len(f.requests)-1] = a
			f.mu.Unlock()
		}
		setScript(answer{body: `{"result":1}`})
		everyone(2)
		setScript(answer{status: 503})
		if n := everyone(1); n != callers+defaultRetryBudget {
			t.Errorf("%d requests of %d calls after 2,000 successes, want %d more",
				n, callers, defaultRetryBudget)
		}
	})
}

// A tenth of a token is not enough for a retry. With 0 there is no bound.
func TestRetryBudgetOfAnySize(t *testing.T) {
	for budget, want := range map[int]int{1: 10 + 1, 7: 10 + 7, 0: 10 * (1 + defaultRetries)} {
		c, f := newFake(t, []answer{{status: 503}}, withRetryBudget(budget))
		for range 10 {
			_, _ = c.Do(t.Context(), Cmd("GET", "k"))
		}
		if f.count() != want {
			t.Errorf("withRetryBudget(%d): %d requests, want %d", budget, f.count(), want)
		}
	}
}

// TestRetryAfterIsSpread: callers who are sent away together do not return
// together, and none returns too early.
func TestRetryAfterIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 200
		start := time.Now()
		var mu sync.Mutex
		var back []time.Duration
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				c, _ := newFake(t, []answer{{status: 429, retryAfter: "1"}, {body: `{"result":1}`}},
					WithBackoff(defaultBackoffBase, defaultBackoffCap))
				_, err := c.Do(t.Context(), Cmd("INCR", "k"))
				mu.Lock()
				defer mu.Unlock()
				if back = append(back, time.Since(start)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		var in [10]int // tenths of the second after the pause; 20 callers are expected in each
		for _, d := range back {
			if d < time.Second || d >= 2*time.Second {
				t.Fatalf("one came back after %v, want 1 s to 2 s", d)
			}
			in[(d-time.Second)/(100*time.Millisecond)]++
		}
		for i, n := range in {
			if n > 50 { // seven standard deviations
				t.Errorf("%d of %d came back in the %d. tenth of a second, want 50 at most: %v",
					n, callers, i+1, in)
			}
		}
	})
}

// With the defaults a call to a database that stalls takes what the doc of
// WithTimeout says.
func TestStallWithTheDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clientOver(t, &fakeTransport{script: []answer{{hook: untilDone, err: context.DeadlineExceeded}}})
		start := time.Now()
		_, err := c.Do(t.Context(), Cmd("GET", "key"))
		if took := time.Since(start); err == nil || took < 50*time.Second || took > 51*time.Second {
			t.Errorf("%v after %v, want an error after 50 to 51 s", err, took)
		}
	})
}
