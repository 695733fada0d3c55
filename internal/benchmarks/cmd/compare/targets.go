package main

import (
	"bytes"
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
// against another one. With bare, it is the contestant whose context cannot end.
var wanted = []struct {
	contest, against string
	aim              float64
	bare             bool
}{
	{contest: "Add, callers: 1, server: memory", against: wireLimit, aim: 0.92},
	{contest: "Exists, callers: 1, server: memory", against: wireLimit, aim: 0.92},
	{contest: "Add, callers: 64, server: memory", against: wireLimit, aim: 0.70},
	{contest: "Exists, callers: 64, server: memory", against: wireLimit, aim: 0.70},
	{contest: "Add, callers: 64, server: memory", against: wireLimit, aim: 0.75, bare: true},
	{contest: "Exists, callers: 64, server: memory", against: wireLimit, aim: 0.75, bare: true},
	{contest: "Add, callers: 64, server: memory", against: nodeName, aim: 20},
	{contest: "Add, callers: 64, server: memory", against: plainName, aim: 2},
	{contest: "AddAll(1000)", against: resp7Name, aim: 1.3},
	{contest: "ExistsAll(1000)", against: resp7Name, aim: 2.2},
	{contest: "Local, 10000 items, Add", against: bitsName, aim: 3.6},
	{contest: "Local, 10000 items, found", against: bitsName, aim: 3.6},
	{contest: "Local, 10000 items, not found", against: bitsName, aim: 4.3},
	{contest: "Local, 1000000 items, Add", against: bitsName, aim: 3},
	{contest: "Local, 1000000 items, found", against: bitsName, aim: 3},
	{contest: "Local, 1000000 items, not found", against: bitsName, aim: 3.7},
	{contest: "Local, 30000000 items, Add", against: bitsName, aim: 2.7},
	{contest: "Local, 30000000 items, found", against: bitsName, aim: 2.6},
	{contest: "Local, 30000000 items, not found", against: bitsName, aim: 3.6},
	{contest: coldContest, against: plainName, aim: 0.75},
}

// judge notes the targets of a contest.
func (r *report) judge(c *contest) {
	ours := c.contestants[0]
	for _, w := range wanted {
		other := c.find(w.against)
		if w.contest != c.name || other == nil {
			continue
		}
		if endless := c.find(endlessName); w.bare && endless != nil {
			r.atLeast(c.name+", with context.Background(), against "+w.against, w.aim, endless.ratio(other))
		} else if !w.bare {
			r.atLeast(c.name+", against "+w.against, w.aim, ours.ratio(other))
		}
	}
	if other := c.find(wireLimit); other != nil && c.callers < 1000 && strings.HasSuffix(c.name, "server: memory") {
		r.atMost(c.name+", client CPU beyond "+wireLimit+", µs", 3.5, ours.cpuBeyond(other))
	}
}

// writeTargets prints the table of the targets that were measured.
func (r *report) writeTargets(o options) error {
	if len(r.targets) == 0 {
		return nil
	}
	r.text.Reset()
	r.printf("%s, %s; %d rounds; load after the last part %s.\n\n"+
		"| what | aim | median | lower quartile | met |\n|---|---|---|---|---|\n",
		machine(), time.Now().UTC().Format("2006-01-02 15:04 MST"), o.rounds, load())
	missed := ""
	for _, t := range r.targets {
		answer := "yes"
		if !t.met {
			answer = "**no**"
			if why := reasonFor(t.what); why != "" {
				missed += fmt.Sprintf("- %s: %s\n", t.what, why)
			}
		}
		r.printf("| %s | %s | %s | %s | %s |\n", t.what, t.aim, ratioText(t.got.median), ratioText(t.got.low), answer)
	}
	if missed != "" {
		r.printf("\nWhat is missed, and why:\n\n%s", missed)
	}
	if r.err != nil || r.folder == "" {
		return r.err
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
	{"AddAll(1000)", "", reasonServer},
	{"ExistsAll(1000)", "", reasonServer},
	{"Local,", "", "the time is that of cache misses, and depends on the processor: huge pages bring 10% more at" +
		" 3e7, which needs code for one system. The processor overlaps the misses of few calls: a batch, AddAll or" +
		" ExistsAll, takes half the time at 3e7."},
	{"the dearest size", "", "a larger filter has longer offsets, which are written and read as decimal digits."},
	{"cold start", "", "the start of the packages that carry the client takes part of it."},
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

// The lines between these marks of a README are the facts.
const (
	factsBegin = "<!-- measured: internal/benchmarks writes this -->\n"
	factsEnd   = "<!-- end of measured -->\n"
)

// learn notes the facts of a contest for the first screen of a README.
func (r *report) learn(c *contest) {
	ours := c.contestants[0]
	times := func(name string) string { return ratioText(ours.ratio(c.find(name)).median) }
	has := func(names ...string) bool {
		for _, name := range names {
			if c.find(name) == nil {
				return false
			}
		}
		return true
	}
	know := func(format string, args ...any) { r.facts = append(r.facts, fmt.Sprintf(format, args...)) }
	switch c.name {
	case "Add, callers: 64, server: memory":
		if has(wireLimit) {
			know("An `Add` takes %s µs of the client's CPU time with 64 callers; fasthttp takes %s µs to send a"+
				" request that was built in advance.", figure(ours.cpu().median), figure(c.find(wireLimit).cpu().median))
		}
		if has(nodeName, plainName) {
			know("64 callers add %s times as many items a second as with @upstash/redis on Node, and %s times as"+
				" many as with net/http and encoding/json.", times(nodeName), times(plainName))
		}
	case "ExistsAll(1000)":
		know("`ExistsAll` of 1,000 items is one billed command, and answers %s items a second over REST with"+
			" client, server and Redis on one machine.", figure(ours.perSecond().median))
	case "Local, 1000000 items, found":
		know("In memory a `Local` of a million items finds %s members a second, %s times as many as bits-and-blooms.",
			figure(ours.perSecond().median), times(bitsName))
	}
}

// writeFacts puts the facts into the README at path.
func (r *report) writeFacts(path string) error {
	if path == "" || len(r.facts) == 0 {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(factsBegin))
	_, after, end := bytes.Cut(rest, []byte(factsEnd))
	if !ok || !end {
		return fmt.Errorf("%s has no place for the facts", path)
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(factsBegin)
	for _, fact := range r.facts {
		b.WriteString(wrap("- "+fact, "  "))
	}
	b.WriteString("\n" + wrap(fmt.Sprintf("Measured on %s (%s) by [one command](internal/benchmarks/README.md),"+
		" which runs each program in turn.",
		time.Now().UTC().Format(time.DateOnly), machine()), ""))
	b.WriteString(factsEnd)
	b.Write(after)
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// wrap breaks a text into lines of up to 100 bytes, and indents all but the
// first.
func wrap(text, indent string) string {
	const columns = 100
	var b strings.Builder
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > columns:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	return b.String() + line + "\n"
}
