package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// A record with a TTL reads bit 127 and the birth number with each write, and settles
// the TTL of that filter if the bit is 0.
func expiring(t *testing.T, steps ...step) (*engine.Record, *server) {
	t.Helper()
	r, s := newRecord(t, steps...)
	r.TTL = time.Minute
	return r, s
}

var (
	notSettled = answers("H,H,B,0,B,0").to(`"GET","u1","127","GET","u53","64"`)
	settled    = answers("null,H,null,1,B,1")
)

func TestFirstWriteSettlesTheTTL(t *testing.T) {
	// The birth number is the record's own, which the server shows as B.
	r, s := expiring(t, notSettled, answers("H,0,B,0").to(`"60000"`))
	add(t, r, "a", true, nil)
	s.then(settled)
	add(t, r, "a", false, nil)
	s.then(notSettled, answers("H,0,B,0")) // the next filter
	add(t, r, "a", true, nil)
}

// The items are in, but the server will refuse the script the next time too.
func TestTheServerRefusesToSettle(t *testing.T) {
	r, _ := expiring(t, notSettled, step{refused: "NOPERM no permission to run 'eval'"})
	w := add(t, r, "a", true, engine.ErrNoTTL)
	if !w.Applied {
		t.Error("the write is not applied")
	}
}

// Both are said: the item may have been new, and the TTL is not set.
func TestUncertainAndNotSettled(t *testing.T) {
	notYet := answers("null,H,null,0,B,1")
	refusal := step{refused: "NOPERM no permission to run 'eval'"}
	r, s := expiring(t, lost, notYet, refusal)
	add(t, r, "a", false, engine.ErrUncertain)
	s.then(lost, notYet, refusal)
	add(t, r, "a", false, engine.ErrNoTTL)
}

// Other data gets no TTL, also after a lost answer. Nothing gets one if no answer
// came.
func TestNothingElseIsSettled(t *testing.T) {
	r, _ := expiring(t, lost, answers("null,X,null,0,B,1"))
	add(t, r, "a", false, errOther)

	r, _ = expiring(t, lost, lost, lost)
	_, err := r.Write(t.Context(), "a", engine.Options{})
	wantSafe(t, err, false)
}

// A broken answer to a write settles nothing.
func TestBrokenWriteSettlesNothing(t *testing.T) {
	r, _ := expiring(t, answers("null,H,null,0,B,2"))
	add(t, r, "a", false, upstash.ErrBadResponse)
}

// The items of a first command are in, and the second got no whole answer: if the first
// found no TTL, it is set all the same.
func TestFailedSecondCommandSettles(t *testing.T) {
	r, s := expiring(t, answers("null,H,null,0,B,0"), lost, lost, lost, answers("H,0,B,0").to(`"60000"`))
	r.Timed = &late{}
	add(t, r, "a", false, engine.ErrUncertain)
	s.then(settled, lost, lost, lost)
	add(t, r, "a", false, engine.ErrUncertain)
	s.then(answers("null,H,null,0,B,0"), answers("null,H"), answers("H,0,B,0").to(`"60000"`)) // a broken one
	add(t, r, "a", false, engine.ErrUncertain)
	s.then(answers("null,H,null,0,B,0"), lost, lost, lost)
	r.Timed = &late{lost: true}
	_, err := r.Write(t.Context(), "a", engine.Options{})
	wantSafe(t, err, false)
}

// The write came after a lost answer: it settles as any other does.
func TestUncertainWriteSettles(t *testing.T) {
	r, _ := expiring(t, lost, answers("null,H,null,0,B,1"), answers("H,1,B,0"))
	add(t, r, "a", false, engine.ErrUncertain)
}

// If the answer to the script is lost, or it is refused for now, the write says so,
// and the next one tries again, unless it finds that the script ran.
func TestSettlingGetsNoAnswer(t *testing.T) {
	r, s := expiring(t, notSettled, lost, lost, lost)
	add(t, r, "a", true, engine.ErrNoTTL)
	s.then(answers("null,H,null,0,B,1"), lost, lost, lost)
	add(t, r, "a", false, engine.ErrNoTTL)
	later := step{refused: "ERR max requests limit exceeded. Limit: 10000, Usage: 10000."}
	s.then(answers("null,H,null,0,B,1"), later)
	add(t, r, "a", false, engine.ErrNoTTL)
	s.then(settled)
	add(t, r, "a", false, nil)
}

// A filter that was deleted or made again before the script ran has other writers:
// there is nothing to say.
func TestSettlingFindsAnotherFilter(t *testing.T) {
	for _, found := range []string{"0,0,0,0", "X,0,B,0", "H,0,X,0"} {
		r, _ := expiring(t, notSettled, answers(found))
		add(t, r, "a", true, nil)
	}
}

// A write that meets another's settling waits for its result, and returns it.
func TestTwoWritesSettleOnce(t *testing.T) {
	defer func() { door.Patience = 0 }()
	door.Patience = 2 * time.Second // longer than a slow answer takes
	for want, result := range map[error]step{nil: answers("H,1,B,0"), engine.ErrNoTTL: {refused: "NOPERM no permission"}} {
		synctest.Test(t, func(t *testing.T) {
			result.slow = time.Second
			r, _ := expiring(t, notSettled, result, answers("null,H,null,0,B,1"))
			defer r.Client.Close()
			var other sync.WaitGroup
			other.Go(func() { add(t, r, "a", true, want) })
			synctest.Wait() // it settles
			start := time.Now()
			add(t, r, "a", false, want)
			if took := time.Since(start); took == 0 {
				t.Error("the second write did not wait")
			}
			other.Wait()
		})
	}
}

// If the other's settling finds another filter than it wrote to, or none, a write
// that has waited settles its own.
func TestAWriteSettlesItsOwnFilter(t *testing.T) {
	defer func() { door.Patience = 0 }()
	door.Patience = 4 * time.Second // longer than two slow answers take
	for _, found := range []string{"0,0,0,0", "X,0,B,0", "H,0,X,0", "H,1,X,0"} {
		for want, result := range map[error]step{nil: answers("H,1,B,0"), engine.ErrNoTTL: {refused: "NOPERM no permission"}} {
			synctest.Test(t, func(t *testing.T) {
				first := answers(found)
				first.slow = time.Second
				r, _ := expiring(t, notSettled, first, answers("null,H,null,0,B,1"), result)
				defer r.Client.Close()
				var other sync.WaitGroup
				other.Go(func() { add(t, r, "a", true, nil) })
				synctest.Wait() // it settles
				add(t, r, "a", false, want)
				other.Wait()
			})
		}
	}
}

// A write that has waited settles no filter that has its TTL, whoever set it.
func TestAWriteSettlesNothingTwice(t *testing.T) {
	defer func() { door.Patience = 0 }()
	door.Patience = 4 * time.Second
	for name, c := range map[string]struct {
		found, waits string
		more         []step
	}{
		"the same filter":      {"H,0,B,0", "B", nil},
		"another, with a TTL":  {"H,1,X,0", "X", nil},
		"another, without one": {"H,0,X,0", "X", []step{answers("H,0,X,0")}},
	} {
		synctest.Test(t, func(t *testing.T) {
			found := answers(c.found)
			found.slow = time.Second
			r, _ := expiring(t, append([]step{notSettled, found, answers("null,H,null,0," + c.waits + ",1")}, c.more...)...)
			defer r.Client.Close()
			var first sync.WaitGroup
			first.Go(func() { _, _ = r.Write(t.Context(), "a", engine.Options{}) })
			synctest.Wait() // it settles
			if _, err := r.Write(t.Context(), "b", engine.Options{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			first.Wait()
		})
	}
}

// What a write waits for the second time may leave its filter alone, too. Then it
// settles that itself, and otherwise its filter has its TTL, or has gone.
func TestAWriteSettlesAfterTwoOfAnotherFilter(t *testing.T) {
	defer func() { door.Patience = 0 }()
	door.Patience = 4 * time.Second
	left, refused := answers("H,0,X,0"), step{refused: "NOPERM no permission"}
	for order, last := range map[string][]step{"BX": {left, refused}, "XB": {left}, "BB": {left}} {
		synctest.Test(t, func(t *testing.T) {
			slowly := left
			slowly.slow = time.Second
			// The filter may have been made again between two commands of a request.
			seen := func(birth byte) string { return `{"result":[null,H,null,0,` + string(birth) + `,1]}` }
			two := step{answer: "[" + seen(order[0]) + "," + seen(order[1]) + "]"}
			r, _ := expiring(t, append([]step{notSettled, slowly, two}, last...)...)
			defer r.Client.Close()
			var first sync.WaitGroup
			first.Go(func() { add(t, r, "a", true, nil) })
			synctest.Wait() // it settles
			var reqs []*engine.Request
			for range 2 {
				q := r.BeginWrite(t.Context(), engine.Options{})
				q.AppendWrite("a")
				reqs = append(reqs, q)
			}
			engine.WriteAll(t.Context(), reqs)
			if gone, there := reqs[0].NoTTL, reqs[1].NoTTL; gone != nil || (there != nil) != (len(last) > 1) {
				t.Errorf("%s: errors %v and %v", order, gone, there)
			}
			first.Wait()
		})
	}
}

// A TTL is sent in whole milliseconds, rounded down.
func TestTTLOnTheWire(t *testing.T) {
	for ttl, want := range map[time.Duration]string{
		time.Second: `,"1000",`, 999 * time.Millisecond: `,"999",`, time.Millisecond + time.Nanosecond: `,"1",`,
	} {
		r, _ := newRecord(t, notSettled, answers("H,1,B,0").to(want))
		r.TTL = ttl
		add(t, r, "a", true, nil)
	}
}

// A server that hangs while settling delays the caller for a second, whatever the
// client's timeout. The write's answer stands.
func TestSettlingThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := expiring(t, notSettled, step{hangs: true})
		r.Client = client(t, s, upstash.WithTimeout(time.Hour))
		defer r.Client.Close()
		start := time.Now()
		add(t, r, "a", true, engine.ErrNoTTL)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the write took %v, want a second", took)
		}
	})
}

// The caller's context does not interrupt the settling.
func TestSettlingOutlivesTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, s := expiring(t, notSettled, answers("H,1,B,0"))
	r.Client = client(t, s, upstash.WithObserver(func(context.Context, upstash.Event) { cancel() })) // after the write
	if added, err := r.Write(ctx, "a", engine.Options{}); !added || err != nil {
		t.Errorf("Write = %v, %v, want true", added, err)
	}
}

// With MustExist nothing is settled: Create has done it.
func TestMustExistSettlesNothing(t *testing.T) {
	r, _ := expiring(t, answers("H,0,B,0,0"))
	r.MustExist = true
	add(t, r, "a", true, nil)
}

// A record without a header has no bit 127. Its EXPIRE follows the first write,
// once for a handle.
func TestBareRecordExpiresOnce(t *testing.T) {
	r, s := expiring(t, answers("0"), step{answer: `{"result":1}`}.to(`"EXPIRE","key","60","NX"`))
	r.Header = 0
	add(t, r, "a", true, nil)
	s.then(answers("1"))
	add(t, r, "a", false, nil)
	r.Forget()
	s.then(answers("1"), step{answer: `{"result":0}`}.to("EXPIRE"))
	add(t, r, "a", false, nil)
	r.Forget()
	r.TTL = 0
	s.then(answers("1"))
	add(t, r, "a", false, nil)
}

// Two writes at once send one EXPIRE.
func TestBareRecordExpiresOnceForTwo(t *testing.T) {
	defer func() { door.Patience = 0 }()
	door.Patience = 4 * time.Second
	synctest.Test(t, func(t *testing.T) {
		r, _ := expiring(t, answers("0"), step{answer: `{"result":1}`, slow: time.Second}, answers("1"))
		r.Header = 0
		defer r.Client.Close()
		var other sync.WaitGroup
		other.Go(func() { add(t, r, "a", true, nil) })
		synctest.Wait() // it settles
		add(t, r, "a", false, nil)
		other.Wait()
	})
}

func TestBareRecordGetsNoAnswerToItsExpire(t *testing.T) {
	r, s := expiring(t, answers("0"), lost, lost, lost)
	r.Header = 0
	add(t, r, "a", true, engine.ErrNoTTL)
	s.then(answers("1"), step{answer: `{"result":1}`}.to("EXPIRE"))
	add(t, r, "a", false, nil)
}

// An observer of the client panics when it hears of the script. The record
// settles again with its next write.
func TestPanicWhileSettling(t *testing.T) {
	r, s := expiring(t, notSettled, answers("H,1,B,0"))
	calls := 0
	r.Client = client(t, s, upstash.WithCallObserver(func(context.Context, upstash.Event) {
		if calls++; calls == 2 {
			panic("an observer")
		}
	}))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		_, _ = r.Write(t.Context(), "a", engine.Options{})
	}()

	s.then(answers("null,H,null,0,B,1"), answers("H,1,B,0").to(`"60000"`))
	add(t, r, "a", false, nil)
}

// Records of one call settle in one request.
func TestSeveralRecordsSettleTogether(t *testing.T) {
	a, s := expiring(t)
	b := &engine.Record{
		Client: a.Client, Key: "other", Header: header, Items: letters{}, Meaning: meaning{}, TTL: time.Minute,
	}
	s.then(step{answer: `[{"result":[H,H,B,0,B,0]},{"result":[H,H,B,0,B,0]}]`},
		step{answer: `[{"result":[H,1,B,0]},{"error":"NOPERM no permission"}]`})

	var reqs []*engine.Request
	for _, r := range []*engine.Record{a, b} {
		q := r.BeginWrite(t.Context(), engine.Options{})
		q.AppendWrite("a")
		reqs = append(reqs, q)
	}
	engine.WriteAll(t.Context(), reqs)

	if one, two := engine.Both(reqs[0].Err, reqs[0].NoTTL), engine.Both(reqs[1].Err, reqs[1].NoTTL); one != nil || two == nil {
		t.Errorf("errors %v and %v; want the second record's alone", one, two)
	}
}
