package bloom

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

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
