package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// keys returns the names of all keys, and of those without a TTL.
func (sh *shell) keys() (all, lasting string) {
	sh.t.Helper()
	for into, which := range map[*string]string{&all: "", &lasting: "if redis.call('PTTL', k) < 0 then"} {
		end := strings.Repeat(" end", btoi(which != ""))
		v, err := sh.s.Exec("EVAL", "local found = {} for _, k in ipairs(redis.call('KEYS', '*')) do "+which+
			" found[#found + 1] = k"+end+" end return table.concat(found, ' ')", "0")
		if err != nil {
			sh.t.Fatal(err)
		}
		*into, _ = v.(string)
	}
	return all, lasting
}

// Whatever ends doctor, even a kill, all keys it has made by then expire. A
// cuckoo and a sharded filter cannot be made with a TTL: they get one by the next
// request.
func TestDoctorKeysExpire(t *testing.T) {
	sh := newShell(t)
	made := 0
	sh.s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
		all, lasting := sh.keys()
		made = max(made, strings.Count(all, "upbloom:doctor:"))
		without := strings.HasSuffix(lasting, ":cuckoo") || strings.HasSuffix(lasting, ":shards:0")
		if lasting != "" && !(without && slices.Equal(r.Commands, []string{"EXPIRE"})) {
			t.Errorf("before request %d, %s: no TTL: %s", n, r.Commands, lasting)
		}
		return upstashtest.Fault{}
	})
	if sh.diagnosis(0, "--large"); made < 5 {
		t.Errorf("only %d keys were seen", made)
	}
}

// An interrupt leaves no key behind for long, whenever it comes, even if the
// request on its way runs later. If it finds doctor removing its keys, and they
// cannot be removed, doctor says so.
func TestDoctorInterruptedAnywhere(t *testing.T) {
	step := int64(9)
	if testenv.Long() {
		step = 1
	}
	for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
		for n := int64(1); ; n += step {
			sh := newShell(t)
			errOut, request, status := sh.interrupted(n, when, "", "doctor")
			_, lasting := sh.keys()
			stay := emptyTTL
			if strings.Contains(errOut, "may be left: they expire in 10m") || when == upstashtest.AfterExec {
				stay = scratchTTL // the late request may set it
			}
			sh.s.FastForward(stay + time.Second)
			all, _ := sh.keys()
			if request == "" {
				if n < 90 {
					t.Errorf("doctor sends only %d requests", n)
				}
				break
			}
			if status != exitInterrupted || lasting+all != "" {
				t.Errorf("request %d, %s, %v: status %d, and leaves %s; for good %s", n, request, when, status, all, lasting)
			}
		}
	}
}

// A lost answer breaks no promise: it is no FAIL, whichever it is.
func TestDoctorLosesAnAnswer(t *testing.T) {
	step := int64(7)
	if testenv.Long() {
		step = 1
	}
	for at := int64(1); ; at += step {
		sh := newShell(t)
		lost := ""
		sh.s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
			if n != at {
				return upstashtest.Fault{}
			}
			lost = strings.Join(r.Commands, " ")
			return upstashtest.Drop(upstashtest.AfterExec)
		})
		if out, errOut, status := sh.run("", "doctor"); status != 0 {
			t.Errorf("the answer to request %d, %s, is lost: status %d\n%s%s", at, lost, status, out, errOut)
		}
		if lost == "" {
			if at < 90 {
				t.Errorf("doctor sends only %d requests", at)
			}
			return
		}
	}
}

// A request whose answer is lost may run when doctor has ended. It leaves no key
// for longer than the help says.
func TestDoctorLosesARequest(t *testing.T) {
	step := int64(7)
	if testenv.Long() {
		step = 1
	}
	for at := int64(1); ; at += step {
		sh := newShell(t)
		var requests atomic.Int64
		held := make(chan *http.Request, 1)
		sh.through(func(r *http.Request) {
			if requests.Add(1) != at {
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			late := r.Clone(context.Background()) // the other one's context ends with its connection
			late.Body, late.RequestURI = io.NopCloser(bytes.NewReader(body)), ""
			held <- late
			panic(http.ErrAbortHandler)
		}, func(*http.Response) error { return nil })
		out, errOut, status := sh.run("", "doctor")
		select {
		case late := <-held:
			answer, err := http.DefaultClient.Do(late)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
		default:
			if at < 90 {
				t.Errorf("doctor sends only %d requests", at)
			}
			return
		}
		all, lasting := sh.keys()
		sh.s.FastForward(time.Hour + time.Second)
		if left, _ := sh.keys(); status != 0 || lasting+left != "" {
			t.Errorf("request %d is late: status %d, leaves %s; for good %s\n%s%s", at, status, all, lasting, out, errOut)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
