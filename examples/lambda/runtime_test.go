package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestInRuntime runs the built function as Lambda does, through the Runtime
// API, against a database that fails in between.
func TestInRuntime(t *testing.T) {
	const timeout = 20 * time.Second // of an invocation
	db := upstashtest.NewServer(t)
	s := newSandbox(t, build(t), db)

	t.Log("a duplicate within the batch, a message whose work fails")
	r := s.invoke("1", timeout, order("a", "Elm St"), order("b", ""), order("a", "Elm St"), order("c", "Oak St"))
	wantIDs(t, "redelivered", failures(t, r), "b")
	wantIDs(t, "shipped", s.shipped(), "a", "c")

	t.Log("a duplicate across batches, the failed message again")
	r = s.invoke("2", timeout, order("a", "Elm St"), order("b", "Ash St"), order("d", "Fir St"))
	wantIDs(t, "redelivered", failures(t, r))
	wantIDs(t, "shipped", s.shipped(), "b", "d")

	t.Log("the database fails")
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.InternalError(upstashtest.BeforeExec)
	})
	r = s.invoke("3", timeout, order("e", "Yew St"), order("a", "Elm St"))
	wantMessage(t, functionError(t, r), "HTTP status 500", db)

	t.Log("it stalls: the function answers, although the database never does")
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.Stall(upstashtest.BeforeExec)
	})
	r = s.invoke("4", 3*time.Second, order("e", "Yew St"))
	wantMessage(t, functionError(t, r), "deadline exceeded", db)

	t.Log("it is back: what failed is delivered again")
	db.InjectFunc(nil)
	r = s.invoke("5", timeout, order("e", "Yew St"), order("a", "Elm St"))
	wantIDs(t, "redelivered", failures(t, r))
	wantIDs(t, "shipped", s.shipped(), "e")

	t.Log("the reply of the Add is lost: the retry's answer is uncertain, the message is done")
	db.InjectWrites(upstashtest.Drop(upstashtest.AfterExec))
	r = s.invoke("6", timeout, order("f", "Bay St"))
	wantIDs(t, "redelivered", failures(t, r))
	wantIDs(t, "shipped", s.shipped(), "f")
	r = s.invoke("7", timeout, order("f", "Bay St"))
	wantIDs(t, "redelivered", failures(t, r))
	wantIDs(t, "shipped", s.shipped())
}

// TestStalledAddInRuntime lets the look-up through and stalls the Add after it.
// The work is done, so the function must say so long before its deadline: after
// 3 s, its handler.recordTime. If Lambda had to kill the process at the
// deadline, each delivery would do the work again.
func TestStalledAddInRuntime(t *testing.T) {
	const timeout = 30 * time.Second // of an invocation
	db := upstashtest.NewServer(t)
	s := newSandbox(t, build(t), db)
	db.InjectWrites(upstashtest.Stall(upstashtest.BeforeExec))
	deadline := time.Now().Add(timeout)
	r := s.invoke("stalled", timeout, order("a", "Elm St"), order("b", ""))
	if late := time.Since(deadline); late > 0 {
		t.Errorf("answered %v after the deadline, want before it", late)
	}
	wantIDs(t, "redelivered", failures(t, r), "b")
	wantIDs(t, "shipped", s.shipped(), "a")
	if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "not recorded") {
		t.Errorf("warnings %q, want one that the work is not recorded", s.warnings)
	}
	failures(t, s.invoke("back", 20*time.Second, order("a", "Elm St")))
	wantIDs(t, "shipped, not having been recorded", s.shipped(), "a")
}

// TestDatabaseGone starts a function whose database cannot be reached.
func TestDatabaseGone(t *testing.T) {
	db := upstashtest.NewServer(t)
	db.Close()
	s := newSandbox(t, build(t), db)
	r := s.invoke("1", 20*time.Second, order("a", "Elm St"))
	wantMessage(t, functionError(t, r), "the command did not run", db)
}

// order returns a message about an order. Without an address the work on it
// fails.
func order(id, address string) events.SQSMessage {
	return events.SQSMessage{
		MessageId: id,
		Body:      fmt.Sprintf(`{"order":%q,"address":%q}`, id, address),
	}
}

func wantMessage(t *testing.T, got, want string, db *upstashtest.Server) {
	t.Helper()
	if !strings.Contains(got, want) || !strings.Contains(got, "which messages are done is not known") {
		t.Errorf("the function's error does not say %q: %s", want, got)
	}
	if strings.Contains(got, db.Token) {
		t.Errorf("the function's error shows the token: %s", got)
	}
}
