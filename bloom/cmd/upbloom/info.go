package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

func (a *app) infoCommand() *cli.Command {
	return &cli.Command{
		Name: "info", Usage: "show the state of a filter", ArgsUsage: "KEY",
		Action: a.onDatabase(1, 1, func(ctx context.Context, c *cli.Command, args []string) error {
			s, err := a.look(ctx)
			if err != nil {
				return err
			}
			crowd := a.crowdIn(ctx, s)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			out := stateOf(args[0], s)
			out.Front = float64(crowd.front) / spreadOver
			return a.print(out, s.String()+"\nseed             "+a.seedOf(ctx, s)+overlong(s)+crowd.text(s)+overCapacity(a.key, s))
		}),
	}
}

// seedOf says whether a filter has a secret seed, and whether UPBLOOM_SEED may be it:
// the header tells two seeds apart 126 times in 127.
func (a *app) seedOf(ctx context.Context, s bloom.Stats) string {
	const unknown = "secret, not known (UPBLOOM_SEED)"
	switch {
	case !s.Seeded:
		return "usual"
	case a.seed == 0:
		return unknown
	case s.Kind != bloom.KindFilter && (s.Kind != bloom.KindShard || s.Parts != nil):
		return "secret, and UPBLOOM_SEED fits it" // it was opened
	}
	_, err := bloom.Open(ctx, a.client, a.key, bloom.Config{Seed: a.seed})
	other, isOther := errors.AsType[*bloom.MismatchError](err)
	switch {
	case isOther && other.OtherSeed:
		return "secret, and UPBLOOM_SEED is another"
	case err == nil, isOther: // a shard
		return "secret, and UPBLOOM_SEED fits it"
	}
	return unknown
}

// overlong names a string that is longer than its header says.
func overlong(s bloom.Stats) string {
	most := s.Geometry.Bytes(bloom.LayoutHeaded)
	switch {
	case s.Kind == bloom.KindWindow && len(s.Parts) > 0:
		most = format.HeaderBytes + uint64(s.MaxParts)*s.Parts[0].Bytes
	case s.Kind != bloom.KindFilter && s.Kind != bloom.KindCuckoo && (s.Kind != bloom.KindShard || s.Parts != nil):
		return ""
	}
	if s.Bytes <= most {
		return ""
	}
	return fmt.Sprintf("\ntoo long         %s, and its header says %s: something else wrote into the key, or a program with a"+
		" larger Config", human.Counted(s.Bytes, "byte"), human.Count(most))
}

// spreadOver is into how many parts crowdIn cuts a string. Each is a command.
const spreadOver = 8

// A crowd is the front of a string that is fuller than the rest. The positions in a
// smaller filter are remainders by its own size, so that all its bits lie there.
type crowd struct {
	front      int // of the parts, or 0
	fill, rest float64
	rate       float64 // of false positives, at least
	err        error   // if the parts were not counted
}

// crowdIn counts the parts of a plain filter's string, in one step, or one by one if a
// full database refuses that.
func (a *app) crowdIn(ctx context.Context, s bloom.Stats) crowd {
	body := s.Geometry.Bytes(bloom.LayoutHeaded) - format.HeaderBytes
	if s.Kind != bloom.KindFilter || s.SetBits < 200 || body < spreadOver {
		return crowd{} // so few bits show nothing
	}
	var cmds []upstash.Command
	var cells, set [spreadOver]uint64
	for i := range uint64(spreadOver) {
		first, end := body*i/spreadOver, body*(i+1)/spreadOver
		cells[i] = 8 * (end - first)
		cmds = append(cmds, upstash.Cmd("BITCOUNT", a.key, strconv.FormatUint(format.HeaderBytes+first, 10),
			strconv.FormatUint(format.HeaderBytes+end-1, 10)))
	}
	replies, err := a.client.MultiExec(ctx, cmds...)
	if errors.Is(err, upstash.ErrAborted) {
		replies, err = a.client.Pipeline(ctx, cmds...)
	}
	if err != nil {
		return crowd{err: err}
	}
	for i, r := range replies {
		n, err := r.Int64()
		if err != nil {
			return crowd{err: err}
		}
		set[i] = uint64(n)
	}
	return crowdOf(s.Geometry, cells, set)
}

// crowdOf finds the front that is fuller than the rest by most standard deviations.
// Chance gives no 8 of them: bits that are set in pairs have 1.4 times those of
// independent ones.
func crowdOf(g bloom.Geometry, cells, set [spreadOver]uint64) (c crowd) {
	var all, ones, n, x float64
	for i := range cells {
		all, ones = all+float64(cells[i]), ones+float64(set[i])
	}
	most, p := 8.0, ones/all
	for i := range spreadOver - 1 {
		n, x = n+float64(cells[i]), x+float64(set[i])
		fill, rest := x/n, (ones-x)/(all-n)
		if z := (fill - rest) / math.Sqrt(p*(1-p)*(1/n+1/(all-n))); z > most {
			most, c.front, c.fill, c.rest = z, i+1, fill, rest
		}
	}
	if c.front == 0 || g.Scheme != bloom.SchemeBlocked {
		return c // each of an item's independent bits lies anywhere
	}
	words, pass := float64(g.Hashes)/2, 0.0 // of an item, each in any part
	for i := range cells {
		g.Bits = cells[i]
		pass += math.Pow(g.LiveFalsePositiveRate(min(set[i], g.Bits)), 1/words) / spreadOver
	}
	c.rate = math.Pow(pass, words)
	return c
}

// text says what the crowd comes from.
func (c crowd) text(s bloom.Stats) string {
	switch {
	case c.err != nil:
		return "\ncrowded          not known, the parts were not counted: " + oneLine(plain(c.err))
	case c.front == 0:
		return ""
	}
	front := []string{"eighth", "quarter", "3 eighths", "half", "5 eighths", "3 quarters", "7 eighths"}[c.front-1]
	text := fmt.Sprintf("\ncrowded          %.0f%% of the bits in the first %s are set, and %.0f%% of the rest: a program with a"+
		" smaller Capacity or a higher FPRate adds to this key, with a MismatchError in its log, or something else wrote"+
		" into it: stop it", 100*c.fill, front, 100*c.rest)
	if c.rate > 1.1*s.LiveFPRate {
		text += "; false positives are " + human.OneIn(c.rate) + " or more"
	}
	return text
}

// look reads the state of a filter of any kind.
func (a *app) look(ctx context.Context) (bloom.Stats, error) {
	s, err := bloom.Inspect(ctx, a.client, a.key)
	whole := err == nil && (s.Kind == bloom.KindFilter || s.Kind == bloom.KindShard)
	if whole || err != nil && !errors.Is(err, bloom.ErrNotFound) {
		return s, err
	}
	o, err := a.openKey(ctx)
	if err != nil {
		return bloom.Stats{}, err
	}
	return o.stats(ctx)
}

// overCapacity says how far a filter is over its capacity, what that means, and
// which command makes it larger, or makes a damaged one again. It is "" for one that
// is neither.
func overCapacity(key string, s bloom.Stats) string {
	switch {
	case s.Damaged: // its count of items says nothing
		return "\nrepair           make it again, from its items: upbloom create -n " + strconv.FormatUint(s.Capacity, 10) +
			sameKind(s) + " OTHER-KEY"
	case !s.OverCapacity() && !s.Saturated:
		return ""
	}
	items, capacity := fullest(s)
	return fmt.Sprintf("\nover capacity    %s: %s\nrepair           %s\notherwise        if %s, something else set bits in"+
		" the string, or a program of yours with another Capacity, FPRate or Seed: stop it or give it a key of its own,"+
		" and bring the filter back from FILE or a backup",
		timesOver(s, items, capacity), saysYes(s), repair(key, s, max(items, capacity)), fewer(s, items))
}

// fullest returns the items that are too many, and for how many there is room.
func fullest(s bloom.Stats) (items, capacity uint64) {
	items, capacity = s.Items, s.Capacity
	switch {
	case s.Kind == bloom.KindWindow: // whose panes are for all items of a span
		items = 0
		for _, p := range s.Parts {
			items = max(items, p.Items)
		}
	case s.Kind == bloom.KindScalable && len(s.Parts) > 0: // the layers there are, and no others come
		capacity = 0
		for _, p := range s.Parts {
			capacity += p.Capacity
		}
	}
	return items, capacity
}

func timesOver(s bloom.Stats, items, capacity uint64) string {
	if capacity == 0 {
		return "every cell is set"
	}
	times := float64(items) / float64(capacity)
	over := fmt.Sprintf("%.1f times", times)
	if times >= 9.95 {
		over = human.Count(uint64(times+0.5)) + " times"
	}
	if s.Saturated {
		over = "at least " + over
	}
	return over
}

// saysYes says how many look-ups of items that were never added say yes.
func saysYes(s bloom.Stats) string {
	switch {
	case s.Saturated && len(s.Parts) > 1 && s.Kind == bloom.KindShard:
		return "every look-up in a full shard says yes"
	case s.Saturated:
		return "every look-up says yes"
	case s.LiveFPRate > 0.95:
		return "nearly every look-up says yes"
	case s.LiveFPRate > 0.1:
		return fmt.Sprintf("%.0f in 100 look-ups of other items say yes", 100*s.LiveFPRate)
	}
	return human.OneIn(s.LiveFPRate) + " look-ups of other items says yes"
}

// repair says which command makes the filter larger, for twice as many items.
func repair(key string, s bloom.Stats, items uint64) string {
	n, explained := twice(items), ""
	if s.Saturated {
		n = "N"
		explained = "; N is twice the lines of FILE: the filter does not know any more how many items it holds"
	}
	if flags := sameKind(s); flags != "" {
		return "make a larger one: upbloom create -n " + n + flags + " OTHER-KEY" + explained
	}
	return "upbloom replace --yes -n " + n + sameRate(s) + " " + printable(key) + " FILE, of all its items, makes it" +
		" for twice as many" + explained + "; programs that run with the old Capacity get errors from then on"
}

// sameKind returns the flags of another filter like one that is not plain, and ""
// for one that is.
func sameKind(s bloom.Stats) string {
	switch s.Kind {
	case bloom.KindWindow:
		return sameRate(s) + " --window " + human.Exact(s.Span)
	case bloom.KindScalable:
		return sameRate(s) + " --scalable"
	case bloom.KindCuckoo:
		return sameRate(s) + " --cuckoo"
	case bloom.KindShard:
		return fmt.Sprintf(" --shards %d", max(len(s.Parts), 2))
	}
	return ""
}

// sameRate returns the flags of the rate and the scheme, if they are not the usual.
func sameRate(s bloom.Stats) (flags string) {
	if one := rounded(1 / s.FPRate); s.FPRate != 0 && one != 100 {
		flags = fmt.Sprintf(" -p 1/%.0f", one)
	}
	if s.Geometry.Scheme == bloom.SchemeXXH3 {
		flags += " --scheme xxh3"
	}
	return flags
}

// fewer says what shows that the bits are not those of items.
func fewer(s bloom.Stats, items uint64) string {
	if s.Saturated {
		return "it was given far fewer items than that"
	}
	return fmt.Sprintf("FILE has far fewer lines than %s (wc -l FILE)", human.Count(items))
}
