package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

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
