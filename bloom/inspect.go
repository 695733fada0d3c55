package bloom

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// countsTooMuch reports whether a second count is needed, which leaves out what
// is behind the cells. The first goes to the end of the string, because nothing
// is known of the filter yet. The string may be longer, because a handle of a
// larger filter added to it, or all cells seem to be set and the last byte has
// other bits too.
func (s *state) countsTooMuch() bool {
	full := Scheme(s.Header.Scheme).oneBit() && s.Parts() == 1 && s.SetBits >= s.Header.Bits
	return s.IsOverlong() || full && s.Header.Bits%8 != 0
}

// recountCommands returns the second count, and which filter it is about.
func (s *state) recountCommands(key string, readOnly bool) []upstash.Command {
	r := record{Record: engine.Record{Key: key}, geo: geometryOf(s.Header, 0)}
	count := r.countCells()
	if s.Parts() > 1 {
		count = upstash.Cmd("BITCOUNT", key, strconv.Itoa(format.HeaderBytes), strconv.FormatUint(s.MaxBytes()-1, 10))
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
	case id != [2]int64{int64(s.Header.Word()), s.Birth}:
		return ErrRecreated
	case n < 0:
		return engine.ErrNegative
	}
	s.SetBits = uint64(n)
	return nil
}

// checkWord is CheckWord, but takes a damaged Cuckoo: its Stats say so.
func (s *state) checkWord() error {
	if Kind(s.Header.Kind) == KindCuckoo {
		return nil
	}
	return s.CheckWord()
}

// Inspect reads the state of any filter with a header, without its Config or
// its seed. [Open] says which copy of a global database answers.
func Inspect(ctx context.Context, c *upstash.Client, key string) (stats Stats, err error) {
	defer fault.OnlyReads(&err)
	if err := checkTarget(c, key); err != nil {
		return Stats{}, err
	}
	r := recordOf(c, key, format.Header{})
	s, err := r.readState(ctx, true)
	if err == nil {
		err = s.checkWord()
	}
	if err != nil {
		return Stats{}, err
	}
	if s.countsTooMuch() {
		replies, _, err := r.AtPrimary(ctx, func(readOnly bool) []upstash.Command {
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

// An Inspection is the state of the filter at one key, or why there is none: what
// [InspectAll] and [Scan] return.
type Inspection struct {
	Key   string
	Stats Stats // zero if Err is set
	Err   error // as of Inspect
}

// InspectAll is [Inspect] for many keys: Inspection number i is about keys[i].
// The server reads all the strings: send some dozens of keys a call. The
// nearest region answers. If a filter is replaced meanwhile, its Inspection may
// mix both.
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
		out[i].Key, out[i].Err = key, checkTarget(c, key)
		if out[i].Err != nil {
			continue
		}
		asked = append(asked, i)
		cmds = append(cmds, recordOf(c, key, format.Header{}).StateCommands(true, true)...)
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
		states[i].State, out[i].Err = engine.ParseState(replies[:each], true)
		replies = replies[each:]
		if out[i].Err == nil {
			out[i].Err = states[i].checkWord()
		}
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

const (
	likeAtOnce    = 1000 // keys whose first bits are read in one request
	inspectAtOnce = 32   // filters whose cells are counted in one request
)

// Scan inspects the filters whose keys match a pattern, such as "seen:*", as
// [upstash.Client.Scan] finds them: in no order, and a key may come twice. An
// error ends the iteration. One about a single filter is the Err of its
// Inspection, and the iteration goes on.
//
// Each matching key of the database, whatever it holds, takes a command, and
// each filter four more, as in [InspectAll]. Each shard of a [Sharded] is a
// filter of its own. Keys that are not in UTF-8 are left out.
func Scan(ctx context.Context, c *upstash.Client, match string) iter.Seq2[Inspection, error] {
	return func(yield func(Inspection, error) bool) {
		var keys []string
		// part inspects the keys, and reports whether the iteration goes on.
		part := func() bool {
			like, err := likeFilters(ctx, c, keys)
			keys = keys[:0]
			for some := range slices.Chunk(like, inspectAtOnce) {
				if err != nil {
					break
				}
				var found []Inspection
				found, err = InspectAll(ctx, c, some)
				for _, one := range found {
					// One of these only begins like a filter, or is gone.
					if !errors.Is(one.Err, ErrNotFilter) && !errors.Is(one.Err, ErrNotFound) && !yield(one, nil) {
						return false
					}
				}
			}
			if err != nil {
				fault.OnlyReads(&err)
				yield(Inspection{}, err)
			}
			return err == nil
		}
		for key, err := range c.Scan(ctx, match) {
			if err != nil {
				yield(Inspection{}, err)
				return
			}
			if utf8.ValidString(key) && !strings.ContainsRune(key, '\uFFFD') {
				keys = append(keys, key)
			}
			if len(keys) == likeAtOnce && !part() {
				return
			}
		}
		part()
	}
}

// likeFilters asks for the first bit and the version of many keys in one
// request, and returns those that may be filters. A key with an error may be
// one, unless it is no string: inspecting it shows why.
func likeFilters(ctx context.Context, c *upstash.Client, keys []string) ([]string, error) {
	cmds := make([]upstash.Command, len(keys))
	for i, key := range keys {
		cmds[i] = upstash.NewBitField(key).Get("u1", 0).Get("u2", 3).ReadOnly().Command()
	}
	replies, err := engine.Pipeline(ctx, c, cmds)
	if err != nil {
		return nil, err
	}
	var like []string
	for i, r := range replies {
		n, err := r.Ints(nil)
		if server, ok := errors.AsType[*upstash.Error](err); ok && server.Code() == "WRONGTYPE" {
			continue // it is no string
		}
		if err != nil || len(n) == 2 && n[0].Int64 == 1 && n[1].Int64 == 1 {
			like = append(like, keys[i])
		}
	}
	return like, nil
}
