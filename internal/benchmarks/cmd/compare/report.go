package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/upbloom/upbloom/internal/human"
)

// report is the output of a run.
type report struct {
	out io.Writer
	settings
	err   error // of the output
	facts []string
}

// printf prints. The run's end returns its error.
func (r *report) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(r.out, format, args...); err != nil {
		r.err = err
	}
}

// know notes a fact for the root README.
func (r *report) know(format string, args ...any) {
	r.facts = append(r.facts, fmt.Sprintf(format, args...))
}

// play plays a contest and prints its table.
func (r *report) play(a *arena, c *contest) error {
	if err := c.play(a.ctx, r.settings); err != nil {
		return err
	}
	r.printf("%s\n", c.table())
	return nil
}

// The lines between these marks of a README are the facts.
const (
	factsBegin = "<!-- measured: internal/benchmarks writes this -->\n"
	factsEnd   = "<!-- end of measured -->\n"
)

// writeFacts puts the facts into the README at path.
func (r *report) writeFacts(path string) error {
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
	b.WriteString(wrap(fmt.Sprintf("- Measured on %s on a quiet %s: [how](internal/benchmarks/README.md).",
		time.Now().UTC().Format(time.DateOnly), machine()), "  "))
	b.WriteString(factsEnd)
	b.Write(after)
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// wrap breaks a text into lines of up to 118 bytes, and indents all but the first.
func wrap(text, indent string) string {
	const columns = 118
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

func machine() string {
	return fmt.Sprintf("%s, %d CPUs, %s", processor(), runtime.NumCPU(), runtime.Version())
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(text), "model name\t: ")
	if name, _, ok := strings.Cut(rest, "\n"); ok {
		return name
	}
	return "unknown processor"
}

// load returns the load averages of 1, 5 and 15 minutes.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}

func ratioText(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// figure rounds to three digits.
func figure(x float64) string {
	if x < 100 {
		return fmt.Sprintf("%.3g", x)
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return human.Count(uint64(x/unit+0.5) * uint64(unit))
}
