package bloom

import (
	"context"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// ScalableStats is the state of a [Scalable] at one moment. It is plain data.
type ScalableStats struct {
	// Stats is about the whole. Geometry is that of the first layer. SetBits,
	// Items and Capacity are sums over the layers. Capacity includes the layers MaxBytes leaves room for.
	// FPRate is the false positive rate when all of these are full. Fill is
	// that of the present layers.
	Stats

	// Layers is about each present layer, the newest last. Bytes is what the
	// cells of a layer take, or would take if the string were long enough.
	Layers []Stats
	// MaxLayers is how many layers there can be within MaxBytes.
	MaxLayers int
}

// String draws the state for a person, in a line for each layer without the key.
func (s ScalableStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "layers           %d of %d\n", len(s.Layers), s.MaxLayers)
	for _, l := range s.Layers {
		fmt.Fprintf(&b, "layer            %s %.1f%%, about %s%s items, %v\n", bar(l.Fill), 100*l.Fill,
			human.Count(l.Items), ofCapacity(l.Capacity), l.Geometry)
	}
	at := ""
	if s.Capacity != 0 {
		at = ", " + human.OneIn(s.FPRate) + " at capacity"
	}
	fmt.Fprintf(&b, "items            about %s%s\n", human.Count(s.Items), ofCapacity(s.Capacity))
	fmt.Fprintf(&b, "false positives  %s now%s\n", human.OneIn(s.LiveFPRate), at)
	fmt.Fprintf(&b, "stored           %s bytes, %s", human.Count(s.Bytes), expiry(s.TTL))
	return b.String()
}

func ofCapacity(n uint64) string {
	if n == 0 {
		return ""
	}
	return " of " + human.Count(n)
}

// Stats reads the state of the filter and of each layer: one request, a
// transaction of up to eight commands. The server reads the whole string, about
// 1 ms a megabyte. A full Redis is dealt with as [Filter.Stats] does, and in a
// global database the nearest region answers. A missing filter is
// [ErrNotFound], whatever MissingIsEmpty says.
func (s *Scalable) Stats(ctx context.Context) (st ScalableStats, err error) {
	defer fault.OnlyReads(&err)
	ctx = s.rec.Label(ctx, "bloom.Stats")
	newest, counts, more, err := s.layers.count(ctx,
		upstash.Cmd("STRLEN", s.rec.Key), upstash.Cmd("PTTL", s.rec.Key))
	if err != nil {
		return ScalableStats{}, err
	}
	st = s.layers.stats(newest, counts)
	st.Bytes, st.TTL, err = storedAs(more[0], more[1])
	if err != nil {
		return ScalableStats{}, err
	}
	return st, nil
}

// Cardinality estimates how many distinct items were added: the sum of what the
// layers hold, each estimated as by [Filter.Cardinality]. It is one request of up to six commands, as a transaction. If
// every bit of a layer is set, the error is [ErrSaturated].
func (s *Scalable) Cardinality(ctx context.Context) (items uint64, err error) {
	defer fault.OnlyReads(&err)
	ctx = s.rec.Label(ctx, "bloom.Cardinality")
	newest, counts, _, err := s.layers.count(ctx)
	if err != nil {
		return 0, s.allowMissing(err)
	}
	st := s.layers.stats(newest, counts)
	if st.Saturated {
		return 0, ErrSaturated
	}
	return st.Items, nil
}

// count verifies the header, counts the set bits of each possible layer, and
// runs more commands in the same transaction. It remembers nothing: the answer
// may be a replica's, from before the last write.
func (l *layers) count(ctx context.Context, more ...upstash.Command,
) (newest int, counts []uint64, rest []int64, err error) {
	r := &l.h.rec
	reads := make([]upstash.Command, 0, maxLayers+2)
	for _, a := range l.areas {
		reads = append(reads, a.count(r.Key))
	}
	own, n, err := r.ReadNumbers(ctx, append(reads, more...)...)
	if err != nil {
		return 0, nil, nil, err
	}
	if newest, err = l.newest(own.Kind); err != nil {
		return 0, nil, nil, err
	}
	for i := range l.areas {
		if n[i] < 0 {
			return 0, nil, nil, engine.ErrNegative
		}
		counts = append(counts, uint64(n[i]))
	}
	return newest, counts, n[len(l.areas):], nil
}

// stats works out everything that follows from the numbers of set bits.
func (l *layers) stats(newest int, counts []uint64) ScalableStats {
	out := ScalableStats{MaxLayers: l.limit}
	out.Geometry, out.Kind, out.Seeded, out.Parts = l.h.rec.geo, KindLayers, l.h.rec.geo.Seed != 0, newest
	bits := uint64(0)
	for i := range max(newest, l.limit) {
		capacity := l.capacity(i)
		g := l.geometry(i)
		one := statsOf(g, LayoutHeaded, capacity, counts[i])
		one.Kind, one.Seeded, one.Bytes = KindLayers, out.Seeded, g.Bytes(LayoutBare)
		out.Capacity += capacity
		out.FPRate = either(out.FPRate, one.FPRate)
		if i >= newest {
			continue
		}
		out.LiveFPRate = either(out.LiveFPRate, one.LiveFPRate)
		bits += g.Bits
		out.SetBits += one.SetBits
		out.Items += one.Items
		out.Saturated = out.Saturated || one.Saturated
		out.Layers = append(out.Layers, one)
	}
	out.Fill = float64(out.SetBits) / float64(bits)
	return out
}
