package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// diagnosis runs doctor and returns its findings by the names of the checks.
func (sh *shell) diagnosis(status int, args ...string) map[string]finding {
	sh.t.Helper()
	found := make(map[string]finding)
	out := sh.want(status, "", "", append([]string{"--json", "doctor"}, args...)...)
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var f finding
		decode(sh.t, line, &f)
		found[f.Check] = f
	}
	if v, err := sh.s.Exec("DBSIZE"); err != nil || v != int64(0) {
		sh.t.Errorf("doctor leaves %v keys, %v", v, err)
	}
	return found
}

// failed returns the names of the checks that found a FAIL.
func failed(found map[string]finding) (names []string) {
	for name, f := range found {
		if f.Verdict == broken {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Both databases of the test server keep all promises.
func TestDoctorOfAHealthyDatabase(t *testing.T) {
	for _, mode := range []string{"memory", "redis"} {
		t.Run(mode, func(t *testing.T) {
			var opts []upstashtest.Option
			if mode == "redis" {
				opts = append(opts, upstashtest.WithRedis(testenv.Redis(t)))
			}
			sh := newShell(t, opts...)
			found := sh.diagnosis(0)
			if len(found) != len(checks()) || len(failed(found)) != 0 {
				t.Errorf("%d findings, and %q failed", len(found), failed(found))
			}
			if f := found["read-only token"]; f.Verdict != notAsked {
				t.Errorf("%+v", f)
			}
			sh.env = append(sh.env, "UPSTASH_REDIS_REST_READONLY_TOKEN="+sh.s.ReadOnlyToken)
			if f := sh.diagnosis(0)["read-only token"]; f.Verdict != "ok" {
				t.Errorf("%+v", f)
			}
		})
	}
}

// What a database does otherwise is found, and shows in the exit status.
func TestDoctorOfASickDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []upstashtest.Option
		denied string
		fault  upstashtest.Fault
		on     string // the command that meets the fault
		status int
		failed []string
	}{
		"no scripts": {
			denied: "EVAL", status: exitDatabase,
			failed: []string{"a filter, from Create to Delete", "script"},
		},
		"no EVALSHA": {denied: "EVALSHA"},
		"small answer": {
			on: "BITCOUNT", fault: upstashtest.WrongType(),
			status: exitDatabase, failed: []string{"BITCOUNT by bits"},
		},
		"small requests": {opts: []upstashtest.Option{upstashtest.WithMaxRequest(2 << 20)}},
		"tiny requests": {
			opts: []upstashtest.Option{upstashtest.WithMaxRequest(64 << 10)}, status: exitDatabase,
			failed: []string{"any bytes, and back", "BITFIELD of 10,000 operations", "BITCOUNT by bits"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, c.opts...)
			if c.denied != "" {
				sh.s.DenyFunc(func(command []string) bool { return command[0] == c.denied })
			}
			if c.on != "" {
				sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
					if len(r.Commands) == 1 && r.Commands[0] == c.on {
						return c.fault
					}
					return upstashtest.Fault{}
				})
			}
			found := sh.diagnosis(c.status)
			for _, want := range c.failed {
				if found[want].Verdict != broken {
					t.Errorf("%+v, want a FAIL", found[want])
				}
			}
			if c.status == 0 && len(failed(found)) != 0 {
				t.Errorf("%q failed", failed(found))
			}
		})
	}
}

// A database that does not answer is one error, and no list of them.
func TestDoctorWithoutADatabase(t *testing.T) {
	sh := newShell(t)
	sh.env = []string{"UPSTASH_REDIS_REST_URL=" + sh.s.URL, "UPSTASH_REDIS_REST_TOKEN=another"}
	out, errOut, status := sh.run("", "doctor")
	if status != exitDatabase || strings.Count(out, "\n") != 1 || !strings.Contains(errOut, "does not answer") {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

// The recording holds what was asked and answered, and no secret.
func TestDoctorRecords(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "sub", "doctor.json")
	if found := sh.diagnosis(0, "--record", file); len(failed(found)) != 0 {
		t.Errorf("%q failed", failed(found))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rec struct {
		Exchanges []json.RawMessage `json:"exchanges"`
	}
	if err := json.Unmarshal(data, &rec); err != nil || len(rec.Exchanges) < 50 {
		t.Errorf("%d exchanges, %v", len(rec.Exchanges), err)
	}
	host := strings.TrimPrefix(sh.s.URL, "http://")
	if bytes.Contains(data, []byte(sh.s.Token)) || bytes.Contains(data, []byte(host)) {
		t.Error("the recording holds the token or the host")
	}
	sh.want(exitUsage, "--record names no file", "", "doctor", "--record", "")
	sh.want(exitUsage, "nothing was recorded: ", "", "doctor", "--record", t.TempDir())
}
