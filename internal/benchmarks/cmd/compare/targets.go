package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A target is a measured figure with its aim.
type target struct {
	what string
	aim  string
	got  spread
	met  bool
}

// slack is how far below the aim the lower quartile of a ratio may be.
const slack = 0.03

// atLeast notes a ratio with the least it should be.
func (r *report) atLeast(what string, aim float64, got spread) {
	r.targets = append(r.targets, target{
		what: what, aim: fmt.Sprintf("at least %g", aim), got: got,
		met: got.median >= aim && got.low >= aim-slack,
	})
}

// atMost notes a figure with the most it should be.
func (r *report) atMost(what string, aim float64, got spread) {
	r.targets = append(r.targets, target{
		what: what, aim: fmt.Sprintf("at most %g", aim), got: got, met: got.median <= aim,
	})
}

// exactly is a spread of a counted figure.
func exactly(x float64) spread { return spread{x, x, x} }

// wanted are the targets of throughput: the first contestant of a contest
// against another one. Against the wire limit, so does the one whose context
// cannot end.
var wanted = []struct {
	contest, against string
	aim              float64
}{
	{"Add, callers: 1, server: memory", wireLimit, 0.97},
	{"Exists, callers: 1, server: memory", wireLimit, 0.97},
	{"Add, callers: 64, server: memory", wireLimit, 0.90},
	{"Exists, callers: 64, server: memory", wireLimit, 0.90},
	{"Add, callers: 1, server: memory", nodeName, 3},
	{"Add, callers: 64, server: memory", nodeName, 20},
	{"Add, callers: 64, server: memory", plainName, 2.5},
	{"AddAll(1000)", resp7Name, 0.8},
	{"ExistsAll(1000)", resp7Name, 1.3},
	{"ExistsAll(1000)", respBName, 0.6},
	{"AddAll(1000)", zeroName, 25},
	{"AddAll(1000)", scriptName, 1.2},
	{"Local, 1000000 items, Add", bitsName, 3},
	{"Local, 1000000 items, found", bitsName, 2.3},
	{"Local, 1000000 items, not found", bitsName, 3},
	{"Local, 30000000 items, Add", bitsName, 2.7},
	{"Local, 30000000 items, found", bitsName, 1.8},
	{"Local, 30000000 items, not found", bitsName, 2.3},
	{coldContest, plainName, 1},
}

// judge notes the targets of a contest.
func (r *report) judge(c *contest) {
	ours := c.contestants[0]
	for _, w := range wanted {
		if other := c.find(w.against); w.contest == c.name && other != nil {
			r.atLeast(c.name+", against "+w.against, w.aim, ours.ratio(other))
			if endless := c.find(endlessName); endless != nil && other.name == wireLimit {
				r.atLeast(c.name+", with context.Background(), against "+w.against, w.aim, endless.ratio(other))
			}
		}
	}
	if other := c.find(wireLimit); other != nil && c.callers < 1000 && strings.HasSuffix(c.name, "server: memory") {
		r.atMost(c.name+", client CPU beyond "+wireLimit+", µs", 2, ours.cpuBeyond(other))
	}
}

// writeTargets prints the table of the targets that were measured.
func (r *report) writeTargets(o options) error {
	if len(r.targets) == 0 {
		return nil
	}
	r.text.Reset()
	err := r.printf("%s, %s; %d rounds; load after the last part %s.\n\n"+
		"| what | aim | median | lower quartile | met |\n|---|---|---|---|---|\n",
		machine(), time.Now().UTC().Format("2006-01-02 15:04 MST"), o.rounds, load())
	missed := ""
	for _, t := range r.targets {
		if err != nil {
			return err
		}
		answer := "yes"
		if !t.met {
			answer = "**no**"
			if why := reasonFor(t.what); why != "" {
				missed += fmt.Sprintf("- %s: %s\n", t.what, why)
			}
		}
		err = r.printf("| %s | %s | %s | %s | %s |\n", t.what, t.aim, ratioText(t.got.median), ratioText(t.got.low), answer)
	}
	if err == nil && missed != "" {
		err = r.printf("\nWhat is missed, and why:\n\n%s", missed)
	}
	if err != nil || r.folder == "" {
		return err
	}
	return os.WriteFile(filepath.Join(r.folder, "targets.md"), r.text.Bytes(), 0o644)
}

// reasons explain why a target may be missed, by the beginning and the end of
// its name.
var reasons = []struct{ begins, ends, why string }{
	{"Add, callers: 1,", wireLimit, reasonOne},
	{"Exists, callers: 1,", wireLimit, reasonOne},
	{"Add, callers: 64, server: memory, with", wireLimit, reasonBare},
	{"Exists, callers: 64, server: memory, with", wireLimit, reasonBare},
	{"Add, callers: 64,", wireLimit, reasonMany},
	{"Exists, callers: 64,", wireLimit, reasonMany},
	{"Add, callers", "µs", reasonCPU},
	{"Exists, callers", "µs", reasonCPU},
	{"AddAll(1000)", zeroName, "go-zero takes one round trip an item, and over loopback a round trip costs" +
		" little; the server between REST and Redis costs us more."},
	{"AddAll(1000)", "", reasonServer},
	{"ExistsAll(1000)", "", reasonServer},
	{"Local,", "", "the time is that of cache misses, and depends on the processor: huge pages bring 10% more at" +
		" 3e7, which needs code for one system. The processor overlaps the misses of few calls: a batch, AddAll or" +
		" ExistsAll, takes half the time at 3e7."},
	{"the dearest size", "", "a larger filter has longer offsets, which are written and read as decimal digits."},
	{"cold start", "", "packages are initialized in 0.67 ms against 0.84 (GODEBUG=inittrace=1, medians of the sums of 31" +
		" starts in turns, loaded machine). Without fasthttp and go-json they take two thirds of the time; a hash" +
		" that runs nothing at the start saved 0.8 ms, a dial without a race of addresses five system calls."},
}

const (
	reasonOne = "one caller waits for all that a call takes, and nothing else runs meanwhile; see the row with" +
		" context.Background(), and 64 callers."
	reasonMany = "to watch a context that can end takes about 1 µs of CPU a call: context.AfterFunc and its stop." +
		" The row with context.Background() is without it."
	reasonBare = "the request is written and the answer read anew for each item, and the connection has a limit in" +
		" time; the ready request has neither."
	reasonCPU    = "about 1 µs of it watches a context that can end."
	reasonServer = "the REST server translates JSON to RESP and back on the same two processors."
)

func reasonFor(what string) string {
	for _, r := range reasons {
		if strings.HasPrefix(what, r.begins) && strings.HasSuffix(what, r.ends) {
			return r.why
		}
	}
	return ""
}
