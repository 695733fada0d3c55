package main

import (
	"context"
	"io"
	"slices"
	"strings"
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
// cuckoo filter cannot be made with a TTL: it gets one by the next request.
func TestDoctorKeysExpire(t *testing.T) {
	sh := newShell(t)
	made := 0
	sh.s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
		all, lasting := sh.keys()
		made = max(made, strings.Count(all, "upbloom:doctor:"))
		if lasting != "" && !(strings.HasSuffix(lasting, ":cuckoo") && slices.Equal(r.Commands, []string{"EXPIRE"})) {
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
		for at := int64(1); ; at += step {
			sh := newShell(t)
			sh.setenv()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reached, last := false, ""
			sh.s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
				last = strings.Join(r.Commands, " ")
				if n != at {
					return upstashtest.Fault{}
				}
				cancel()
				reached = true
				return upstashtest.Stall(when)
			})
			var errOut strings.Builder
			a := &app{in: strings.NewReader(""), out: io.Discard, errOut: &errOut}
			status := exitStatus(a.run(ctx, []string{"upbloom", "doctor"}))
			sh.s.InjectFunc(nil)
			_, lasting := sh.keys()
			stay := emptyTTL
			if strings.Contains(errOut.String(), "may be left: they expire in 10m") || when == upstashtest.AfterExec {
				stay = scratchTTL // the late request may set it
			}
			sh.s.FastForward(stay + time.Second)
			all, _ := sh.keys()
			if !reached {
				if at < 90 {
					t.Errorf("doctor sends only %d requests", at)
				}
				break
			}
			if status != exitInterrupted || lasting+all != "" {
				t.Errorf("request %d, %v: status %d, and leaves %s; for good %s; the last request was %s", at, when,
					status, all, lasting, last)
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
		reached, last := false, ""
		sh.s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
			if n != at {
				return upstashtest.Fault{}
			}
			reached, last = true, strings.Join(r.Commands, " ")
			return upstashtest.Drop(upstashtest.AfterExec)
		})
		if out, errOut, status := sh.run("", "doctor"); status != 0 {
			t.Errorf("the answer to request %d, %s, is lost: status %d\n%s%s", at, last, status, out, errOut)
		}
		if !reached {
			return
		}
	}
}
