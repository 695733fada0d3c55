package bloom

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A state is the result of one look at a filter's key.
type state struct {
	header  headerInfo
	birth   int64
	settled bool
	word    int64  // the kind's own
	length  uint64 // of the string, in bytes
	setBits uint64 // if counted
	ttl     time.Duration
}

// readState reads the header and what proves it: see engine.Record.ReadState.
func (r *record) readState(ctx context.Context, count bool) (state, error) {
	s, err := r.ReadState(ctx, count)
	if err != nil {
		return state{}, err
	}
	return checkState(s)
}

// checkState checks the header, the bits that are always 0, and the length
// allowed by FORMAT.md. Without these, other data would pass.
func checkState(seen engine.State) (state, error) {
	h, err := parseHeader(uint64(seen.Header))
	if err != nil {
		return state{}, err
	}
	s := state{
		header: h, birth: seen.Birth, settled: seen.Settled, word: seen.KindWord,
		length: seen.Length, setBits: seen.SetBits, ttl: seen.TTL,
	}
	if seen.Stray || h.hasWord() && (s.word>>52 != 1 || seen.StrayKind) {
		return state{}, engine.ErrHeaderBits
	}
	// Every command that makes a filter writes to its body too. An Add of a
	// larger filter lengthens the string, and gives it a birth number if it has
	// none.
	if s.length <= headerBytes || s.overlong() && s.birth&engine.BirthMarker == 0 {
		return state{}, fmt.Errorf("%w: it is %d bytes long, and its header allows %d to %d",
			ErrNotFilter, s.length, headerBytes+1, s.maxBytes())
	}
	return s, nil
}

// The first count goes to the end of the string, because nothing is known of
// the filter yet. A second count leaves out what is behind the cells. It is
// made if the string is longer, because a handle of a larger filter added to
// it, or if all cells seem to be set and the last byte has other bits too.

func (s *state) countsTooMuch() bool {
	full := s.header.scheme.oneBit() && s.parts() == 1 && s.setBits >= s.header.bits
	return s.overlong() || full && s.header.bits%8 != 0
}

func (s *state) overlong() bool { return s.length > s.maxBytes() }

// maxBytes returns the length of the whole string.
func (s *state) maxBytes() uint64 {
	switch s.header.kind {
	case KindWindow:
		areas := windowAreas(s.header.geometry(0), s.parts())
		return areas[len(areas)-1].end() / 8
	case KindLayers:
		areas := layerAreas(s.header.bits)
		return areas[len(areas)-1].end() / 8
	}
	return s.header.geometry(0).Bytes(LayoutHeaded)
}

// parts returns how many panes or layers the string has, at least 1.
func (s *state) parts() int {
	switch s.header.kind {
	case KindWindow:
		return max(1, int(s.word>>paneShift&15))
	case KindLayers:
		_, n, _ := layersIn(s.word)
		return max(1, n)
	}
	return 1
}

// recountCommands returns the second count, and which filter it is about.
func (s *state) recountCommands(key string, readOnly bool) []upstash.Command {
	r := record{Record: engine.Record{Key: key}, geo: s.header.geometry(0)}
	count := r.countCells()
	if s.parts() > 1 {
		count = upstash.Cmd("BITCOUNT", key, strconv.Itoa(headerBytes), strconv.FormatUint(s.maxBytes()-1, 10))
	}
	look := r.Identity()
	if readOnly {
		look.ReadOnly()
	}
	return []upstash.Command{look.Command(), count}
}

// recounted takes the replies to recountCommands.
func (s *state) recounted(replies []upstash.Reply) error {
	id, err := engine.ParseIdentity(replies[0])
	if err != nil {
		return engine.Explain(err)
	}
	n, err := replies[1].Int64()
	switch {
	case err != nil:
		return engine.Explain(err)
	case id != [2]int64{int64(s.header.word()), s.birth}:
		return ErrRecreated
	case n < 0:
		return engine.ErrNegative
	}
	s.setBits = uint64(n)
	return nil
}

// Inspect reads the state of any filter with a header, without its [Config] or
// its seed: its geometry, how full it is and its TTL. It is one request of four
// commands, as [Filter.Stats] is; the server reads the whole string, about 1 ms
// a megabyte. If an Add of a larger filter has lengthened the string, or all
// cells seem to be set, a second request of two commands counts the filter's
// own cells. Without it, bits that fill up the last byte count as cells, up to
// 7; only other programs, and handles with another Config, set them. The Seed
// of [Stats.Geometry] is always 0, and [Stats.Seeded] says whether there is
// one.
//
// The error is [ErrNotFound] if the key is free, and [ErrNotFilter] if it holds
// anything but a filter of this package's format. It is [ErrRecreated] if the
// filter was made again between the two requests. [Open] says which copy of a
// global database answers.
func Inspect(ctx context.Context, c *upstash.Client, key string) (stats Stats, err error) {
	defer fault.OnlyReads(&err)
	probe, err := New(c, key, Config{Scheme: SchemeXXH3, Bits: 1, Hashes: 1})
	if err != nil {
		return Stats{}, err
	}
	s, err := probe.rec.readState(ctx, true)
	if err != nil {
		return Stats{}, err
	}
	if s.countsTooMuch() {
		replies, _, err := probe.rec.AtPrimary(ctx, func(readOnly bool) []upstash.Command {
			return s.recountCommands(key, readOnly)
		})
		if err != nil {
			return Stats{}, engine.Explain(err)
		}
		if err := s.recounted(replies); err != nil {
			return Stats{}, err
		}
	}
	return s.stats(), nil
}

func (s *state) stats() Stats {
	g := s.header.geometry(0)
	out := Stats{Geometry: g, Layout: LayoutHeaded, SetBits: s.setBits}
	switch s.header.kind {
	case KindFilter, KindShard:
		out = statsOf(g, LayoutHeaded, g.holds(rateIn(s.birth), 1), s.setBits)
	case KindWindow:
		if w, err := windowShapeOf(s, 0); err == nil {
			if out.Capacity = w.holds(rateIn(s.birth)); out.Capacity != 0 {
				out.FPRate = w.rateAt(out.Capacity)
			}
		}
	}
	if g.isTable() {
		items, _ := cuckooWord(s.word)
		c := cuckooStatsOf(g, 0, items)
		out.Items, out.Capacity, out.Fill = c.Items, c.Capacity, c.Fill
		out.FPRate, out.LiveFPRate = c.FPRate, c.LiveFPRate
	}
	out.Kind, out.Seeded, out.Parts = s.header.kind, s.header.seedTag != 0, s.parts()
	out.Bytes, out.TTL = s.length, s.ttl
	return out
}

// An Inspection is what [InspectAll] found at one key. It is plain data.
type Inspection struct {
	Stats Stats // zero if Err is set
	Err   error // as of Inspect
}

// InspectAll is [Inspect] for many keys, in one request. Inspection number i is
// about keys[i] and has its own error. Each key costs four commands, and the
// server reads all the strings: send some dozens of keys a call. One more
// request counts again if Inspect would. The error of InspectAll is that of a
// request.
//
// The nearest region answers, and the four answers about a key are not of one
// moment: it is meant for listings. If a filter is made, deleted or replaced
// meanwhile, its [Inspection] may be [ErrNotFilter] or [ErrRecreated], or mix
// both filters.
func InspectAll(ctx context.Context, c *upstash.Client, keys []string) (out []Inspection, err error) {
	defer func() {
		fault.OnlyReads(&err)
		for i := range out {
			fault.OnlyReads(&out[i].Err)
		}
	}()
	out = make([]Inspection, len(keys))
	var cmds []upstash.Command
	var asked []int
	for i, key := range keys {
		probe, err := New(c, key, Config{Scheme: SchemeXXH3, Bits: 1, Hashes: 1})
		if err != nil {
			out[i].Err = err
			continue
		}
		asked = append(asked, i)
		cmds = append(cmds, probe.rec.StateCommands(true, true)...)
	}
	replies, err := engine.Pipeline(ctx, c, cmds)
	if err != nil {
		return nil, err
	}
	states := make([]state, len(keys))
	var again []int
	var recounts []upstash.Command
	for _, i := range asked {
		each := len(cmds) / len(asked)
		var seen engine.State
		if seen, out[i].Err = engine.ParseState(replies[:each], true); out[i].Err == nil {
			states[i], out[i].Err = checkState(seen)
		}
		replies = replies[each:]
		if out[i].Err == nil && states[i].countsTooMuch() {
			again = append(again, i)
			recounts = append(recounts, states[i].recountCommands(keys[i], true)...)
		}
	}
	if replies, err = engine.Pipeline(ctx, c, recounts); err != nil {
		return nil, err
	}
	for n, i := range again {
		out[i].Err = states[i].recounted(replies[2*n : 2*n+2])
	}
	for _, i := range asked {
		if out[i].Err == nil {
			out[i].Stats = states[i].stats()
		}
	}
	return out, nil
}
