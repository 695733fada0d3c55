package benchmarks

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/upstash"
)

// A hook is one way to work on each webhook once.
type hook struct {
	name     string
	handle   func(id string) // of a new id
	commands float64         // an id, which Redis must count
}

func (m *million) hooks(window *bloom.Window) []hook {
	claim := func(id, value, expiry string) {
		m.do(upstash.Cmd("SET", "seen:"+id, value, "NX", "EX", expiry))
	}
	look := func(id string) {
		seen, err := window.Exists(m.ctx, id)
		m.check(err)
		if seen {
			m.tb.Logf("%s is taken for a repetition", id) // at 1 in 100 million
		}
	}
	add := func(id string) {
		_, err := window.Add(m.ctx, id)
		m.check(err)
	}
	ten := func(handle func(ids []string)) func(string) {
		var ids []string
		return func(id string) {
			if ids = append(ids, id); len(ids) == 10 {
				handle(ids)
				ids = ids[:0]
			}
		}
	}
	return []hook{
		{"claim first, work lost if it fails: SET NX EX", func(id string) { claim(id, "", "86400") }, 1},
		{"the same with Window.Add", add, 1},
		{"keys, a claim before the work", func(id string) {
			claim(id, "working", "60")
			m.do(upstash.Cmd("SET", "seen:"+id, "done", "EX", "86400"))
		}, 2},
		{"Window: look, work, add", func(id string) { look(id); add(id) }, 2},
		{"keys in the same order", func(id string) {
			m.do(upstash.Cmd("GET", "seen:"+id))
			m.do(upstash.Cmd("SET", "seen:"+id, "", "EX", "86400"))
		}, 2},
		{"keys in the same order, ten at a time", ten(func(ids []string) {
			keys := make([]string, len(ids))
			sets := make([]upstash.Command, len(ids))
			for i, id := range ids {
				keys[i], sets[i] = "seen:"+id, upstash.Cmd("SET", "seen:"+id, "", "EX", "86400")
			}
			m.do(upstash.Cmd("MGET", keys...))
			replies, err := m.c.Pipeline(m.ctx, sets...)
			m.check(err)
			for _, r := range replies {
				m.check(r.Err())
			}
		}), 1.1},
		{"Window: look, work, add, ten at a time", ten(func(ids []string) {
			_, err := window.ExistsAll(m.ctx, ids)
			m.check(err)
			_, err = window.AddAll(m.ctx, ids)
			m.check(err)
		}), 0.2},
		{"Window with a lease", func(id string) {
			m.do(upstash.Cmd("SET", "lease:"+id, "", "NX", "EX", "60"))
			look(id)
			add(id)
			m.do(upstash.Cmd("DEL", "lease:"+id))
		}, 4},
	}
}

// TestWebhooks counts what a million new webhooks cost in each way: the commands
// as Redis counts them, the bytes sent, and the memory. UPBLOOM_MILLION sets the
// number of ids; the default is 2,000.
func TestWebhooks(t *testing.T) {
	n := howMany(t, 2_000)
	m := newMillion(t, n)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("evt_1QhN2eLkdIwHu7ix%08d", i) // as long as Stripe's
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "a million new webhooks\tbilled commands\t$\tMB out\tbytes an id\t")
	for i := range m.hooks(nil) {
		_, err := m.s.Exec("FLUSHALL")
		m.check(err)
		window, err := bloom.NewWindow(m.c, "seen:window", bloom.WindowConfig{
			Capacity: uint64(n), FPRate: 1e-8, Span: 24 * time.Hour, ExpireIdle: true,
		})
		m.check(err)
		way, before := m.hooks(window)[i], m.used()
		_, err = window.Exists(m.ctx, "evt_0") // so that the client knows the time
		m.check(err)
		m.s.ResetStats()
		calls := m.calls()
		for _, id := range ids {
			way.handle(id)
		}
		each := float64(m.calls()-calls) / float64(n)
		sent := float64(m.s.Stats().BytesIn) / float64(n) // an id, as MB a million
		if math.Abs(each-way.commands) > 0.01 {           // it may ask for the time once more
			t.Errorf("%s: Redis ran %.3f commands an id, want %g", way.name, each, way.commands)
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.0f\t%.1f\t\n", way.name, each*1e6,
			each*1e6/100_000*billing.PayAsYouGo().Commands, sent, float64(m.used()-before)/float64(n))
	}
	_ = w.Flush()
	t.Logf("%d ids\n%s", n, &table)
}

// calls returns how many commands Redis has run, but for those of this test.
func (m *million) calls() (sum int) {
	v, err := m.s.Exec("INFO", "commandstats")
	m.check(err)
	for line := range strings.Lines(fmt.Sprint(v)) {
		_, rest, ok := strings.Cut(line, ":calls=")
		if !ok || strings.HasPrefix(line, "cmdstat_info") {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(number)
		m.check(err)
		sum += n
	}
	return sum
}
