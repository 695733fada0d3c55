package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// What the calls of package bloom are billed: a test compares it with the
// commands a server counts.

// A bill computes how many commands a call is billed as.
type bill struct {
	kind   string
	part   bloom.Geometry // of the filter, a pane, a layer or a shard
	areas  uint64         // an item is looked up in: panes or layers
	shards int            // 1 if it is no sharded filter
	must   bool           // writes are a script that creates nothing
	anew   bool           // each call has a new client and a new handle
	first  uint64         // the capacity, of a scalable filter that of its first layer
	grown  []grown        // the states of a scalable filter as it grows
	items  float64        // taken by each filter, from empty; 0 if not known
	pane   time.Duration  // of a window
	idle   bool           // the window expires
}

const (
	requestBytes  = 1 << 20 // of a batch: the default of BatchBytes
	scriptCommand = 2       // a script itself, and its read of the header
	mustExistText = 1200    // about the bytes of that script's text
	cuckooItems   = 500     // in one script
	growthLooks   = 64      // while a layer fills
	growthCost    = 3       // commands of a look whether it must grow
	growthStep    = 2       // commands more if it does
	settleCost    = 4       // commands with which an Add that makes a filter sets its TTL
)

// add returns the commands of an Add, or of an AddAll of n items.
func (b *bill) add(n uint64) (commands float64) {
	commands = b.requests(n, true, func(items uint64) float64 {
		switch {
		case b.kind == cuckooKind:
			return scriptCommand + 1 + b.moves(items)
		case b.must:
			return b.inShards(items, func(mine uint64) float64 {
				return float64(scriptCommand + b.writes(mine))
			}) + b.growth(items)
		}
		return 1 + b.growth(items)
	})
	if b.anew && (b.kind == windowKind || b.kind == scalableKind && (n == 1 || n*growthLooks < b.first)) {
		commands++ // the server's time, or which layer is the newest
	}
	return commands
}

// moves returns how many commands more a write to a cuckoo filter takes, because
// it moves items to make room for others: an average over all writes, from
// empty. The figures are those of real Redis and filters for 100,000 items that
// fill up. In smaller filters batches take less.
func (b *bill) moves(items uint64) float64 {
	const begin = 0.4 // how full it is when items begin to be moved
	share := 1.0
	if b.items > 0 {
		share = min(b.items/float64(b.first), 1)
	}
	slots := map[int]float64{5: 1, 4: 1.2, 3: 1.45, 2: 2}[b.part.Hashes]
	return slots * (0.1 + 0.27*math.Log10(float64(items))) * max(0, share-begin) / (1 - begin)
}

// look returns the commands of an Exists, or of an ExistsAll of n items.
func (b *bill) look(n uint64) (commands float64) {
	commands = b.requests(n, false, func(items uint64) float64 {
		return b.inShards(items, func(uint64) float64 { return 1 })
	})
	if b.anew && b.kind == windowKind && n > 1 {
		commands++
	}
	return commands
}

// requests returns the sum of cost over the requests of a batch.
func (b *bill) requests(n uint64, write bool, cost func(items uint64) float64) float64 {
	most := b.itemsInRequest(write)
	full := (n - 1) / most
	sum := cost(n - full*most)
	if full > 0 {
		sum += float64(full) * cost(most)
	}
	return sum
}

// itemsInRequest is about how many items fit into a request.
func (b *bill) itemsInRequest(write bool) uint64 {
	if write && b.kind == cuckooKind {
		return cuckooItems
	}
	k, z := float64(b.part.Hashes), float64(b.part.Hashes)/2
	set, get := b.average(func(at uint64) int { return upstash.SizeOfSet("u1", at, 1) }),
		b.average(func(at uint64) int { return upstash.SizeOfGet("u53", at) })
	head := 300.0
	if write && b.must {
		digits := b.average(func(at uint64) int { return len(strconv.FormatUint(at, 10)) })
		set, get, head = digits+3, digits+4, head+mustExistText
	}
	item := z * get * float64(b.areas)
	switch {
	case b.kind == cuckooKind:
		item = 2 * get
	case write:
		item = k*set + z*get*float64(b.areas-1)
	case b.part.Scheme == bloom.SchemeXXH3:
		item = k * b.average(func(at uint64) int { return upstash.SizeOfGet("u1", at) })
	}
	return uint64(max((requestBytes-head*float64(b.shards))/item, 1))
}

// average returns the average of size over the offsets of bits. An item has as
// many in each pane, and in each layer.
func (b *bill) average(size func(at uint64) int) float64 {
	sum, begin, bits := 0.0, uint64(8*headerBytes), b.part.Bits
	for range b.areas {
		end, inArea := begin+bits, 0.0
		for from := uint64(1); from < end; from *= 10 {
			if first, last := max(from, begin), min(from*10, end); first < last {
				inArea += float64(size(from)) * float64(last-first)
			}
		}
		sum += inArea / float64(bits)
		if begin = end; b.kind == scalableKind {
			bits *= 4
		}
	}
	return sum / float64(b.areas)
}

// writes returns how many commands a script needs to write items: it runs some
// 1,000 operations in each.
func (b *bill) writes(items uint64) (commands int) {
	const mostWords, setWords, getWords = 3997, 4, 3
	words := 0
	run := func(operations, each int) {
		for range operations {
			if words += each; words >= mostWords {
				commands, words = commands+1, 0
			}
		}
	}
	for range items {
		run(b.part.Hashes, setWords)
		run(b.part.Hashes/2*int(b.areas-1), getWords)
	}
	if words > 0 {
		commands++
	}
	return commands
}

// inShards returns the sum of cost over the shards with items of a request, on
// average over all ways the items may be spread.
func (b *bill) inShards(items uint64, cost func(mine uint64) float64) float64 {
	if b.shards == 1 {
		return cost(items)
	}
	share, sum := 1/float64(b.shards), 0.0
	all, _ := math.Lgamma(float64(items) + 1)
	for mine := uint64(1); mine <= items; mine++ {
		in, _ := math.Lgamma(float64(mine) + 1)
		out, _ := math.Lgamma(float64(items-mine) + 1)
		chance := math.Exp(all - in - out + float64(mine)*math.Log(share) +
			float64(items-mine)*math.Log1p(-share))
		if chance > 1e-12 {
			sum += chance * cost(mine)
		}
	}
	return sum * float64(b.shards)
}

// turns returns the commands a day with which windows clear old panes, if there
// are so many AddAlls.
func (b *bill) turns(filters uint64, calls float64) float64 {
	if b.kind != windowKind {
		return 0
	}
	commands := 4 + math.Ceil(float64(b.part.Bits)/8/(1<<20)) // the script, and one for each MiB
	if b.idle {
		commands++
	}
	return commands * min(calls, float64(max(filters, 1))*float64(24*time.Hour)/float64(b.pane))
}

// times returns the commands a day with which long-lived clients ask for the
// server's time. An Add of a window needs it, and an ExistsAll, every ten
// minutes.
func (b *bill) times(processes uint64, calls float64) float64 {
	if b.kind != windowKind || b.anew {
		return 0
	}
	return min(calls, float64(max(processes, 1))*float64(24*time.Hour)/float64(10*time.Minute))
}

// uncounted is what the sum of a month leaves out.
type uncounted struct {
	// Create is how many commands a Create takes that makes a filter, and TTL how
	// many more if that sets one. They are missing if the sum has them.
	Create float64 `json:"create,omitempty"`
	TTL    float64 `json:"ttl,omitempty"`
	// Make is how many commands more an Add takes that makes a window. It has
	// no Create: each time it has expired, an Add makes it.
	Make float64 `json:"make,omitempty"`
	// WarnFill is how many looks an Add or AddAll leads to, on average and at
	// most; of a scalable filter, how many a new item in its last layer does, and
	// no other. Full is how many times as many commands a write takes in a cuckoo
	// filter that stays full.
	WarnFill float64 `json:"warnFill,omitempty"`
	Full     float64 `json:"whenFull,omitempty"`
	// Load is how many commands a Load of all items takes that makes a plain
	// filter.
	Load int `json:"load,omitempty"`

	byItem bool // WarnFill is that of a scalable filter
}

// fillLooks is how often WarnFill looks while the last layer of a scalable filter
// fills up.
const fillLooks = 16

// leftOut returns what the sum leaves out.
func (b *bill) leftOut() uncounted {
	u := uncounted{Create: 4, TTL: 1, WarnFill: 0.01}
	if b.first < 10_000 {
		u.WarnFill = 0.1
	}
	switch b.kind {
	case windowKind:
		u.TTL = 0
		if b.idle {
			u.Create, u.Make = 0, settleCost
		}
	case scalableKind:
		last := b.first << (2 * (len(b.grown) - 1)) // each layer is for four times as many
		u.WarnFill, u.byItem = fillLooks/float64(last), true
	case cuckooKind:
		u = uncounted{Create: 4, Full: 2.5}
	case shardedKind:
		u = uncounted{Create: 6 * float64(b.shards)}
	}
	return u
}

// making returns the commands a day with which filters are made each time they
// have expired, if there are so many calls that add, and what the sum leaves
// out. Without a TTL the making is part of that.
func (b *bill) making(filters uint64, ttl time.Duration, calls float64) (commands float64, left uncounted) {
	left = b.leftOut()
	if ttl == 0 {
		return 0, left
	}
	lives := float64(filters) * float64(24*time.Hour) / float64(ttl)
	each := left.Create + left.TTL
	if b.kind == plainKind && !b.must {
		each = settleCost
	}
	commands = min(lives, calls) * each
	left.Create, left.TTL = 0, 0
	return commands, left
}

// text returns all of it, or "". A Load is on a line of its own.
func (u uncounted) text() string {
	var parts []string
	if u.Create > 0 {
		parts = append(parts, "making each filter by Create, "+commands(u.Create))
	}
	if u.TTL > 0 {
		parts[0] += fmt.Sprintf(", %.0f with a TTL", u.Create+u.TTL)
	}
	if u.Make > 0 {
		parts = append(parts, "an Add that makes a window, "+commands(u.Make)+" more")
	}
	switch {
	case u.byItem:
		parts = append(parts, fmt.Sprintf("WarnFill, 1 in %s new items of the last layer",
			human.Count(uint64(math.Round(1/u.WarnFill)))))
	case u.WarnFill > 0:
		parts = append(parts, fmt.Sprintf("WarnFill, 1 in %.0f writes at most", 1/u.WarnFill))
	}
	if u.Full > 0 {
		parts = append(parts, fmt.Sprintf("up to %.1f times as many a write while it is full", u.Full))
	}
	text := strings.Join(parts, "; ")
	if u.Load > 0 {
		text += "\n                 a Load of all items of a filter, " + commands(float64(u.Load))
	}
	return text
}

// billOf takes what the flags say of the calls.
func billOf(c *cli.Command, kind string, part bloom.Geometry) *bill {
	return &bill{
		kind: kind, part: part, areas: 1, shards: 1, first: countOf(c, "items"),
		must: c.Bool("must-exist"), anew: c.Bool("new-client"),
	}
}
