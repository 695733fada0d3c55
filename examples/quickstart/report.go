package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// result holds the measurements of the run.
type result struct {
	where          string
	added, found   int
	falsePositives int
	stats          bloom.Stats
	used           *usage
	took           time.Duration
}

func (r result) print(w io.Writer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-16s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("database", "%s", r.where)
	fmt.Fprintln(w)
	fmt.Fprintln(w, r.stats)
	fmt.Fprintln(w)
	line("added", "%s addresses, %s of them new (the others were false positives)",
		num(members), num(r.added))
	line("found again", "%s of %s: %s false negatives", num(r.found), num(members), num(members-r.found))
	rate := float64(r.falsePositives) / strangers
	line("strangers", "%s asked, %s \"found\": %s, promised %s",
		num(strangers), num(r.falsePositives), percent(rate), percent(fpRate))
	line("cardinality", "estimated %s, in truth %s (%+.1f%%)", human.Count(r.stats.Items), num(members),
		100*(float64(r.stats.Items)/members-1))
	fmt.Fprintln(w)
	line("cost", "%s requests, %s commands, %s sent, %s received",
		human.Count(r.used.requests.Load()), human.Count(r.used.commands.Load()),
		human.Bytes(r.used.bytesOut.Load()), human.Bytes(r.used.bytesIn.Load()))
	line("took", "%v for %s operations", r.took.Round(time.Millisecond), num(2*members+strangers))
}

func num(n int) string { return human.Count(uint64(n)) }

func percent(rate float64) string {
	return fmt.Sprintf("%.2f%% (%s)", 100*rate, human.OneIn(rate))
}

// progress is a line to be overwritten again and again. It is shown only if the
// output is a terminal.
type progress struct {
	out         *os.File
	shown       bool
	done, total int
}

func newProgress(out *os.File, total int) *progress {
	info, err := out.Stat()
	return &progress{out: out, total: total, shown: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (p *progress) advance(what string, n int) {
	p.done += n
	if p.shown {
		fmt.Fprintf(p.out, "\r\033[K%3d%%  %s", 100*p.done/p.total, what)
	}
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\033[K")
	}
}
