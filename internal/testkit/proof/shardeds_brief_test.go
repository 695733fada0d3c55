package proof

import (
	"testing"
	"time"
)

// TestCheckBrief looks for an item some time after a Create.
func TestCheckBrief(t *testing.T) {
	of := &Shardeds{Shards: 2, Spread: 1, Brief: true, Plain: Filters{MustExist: true, TTL: 10 * time.Second}}
	const missing = "bloom: shard 0, 1 of 2 not found: never created"
	lost := func() Result {
		return Result{End: Missing, Tried: 1, Safe: true, Shards: []int{0, 1}, Err: missing}
	}
	for _, tt := range []struct {
		name   string
		after  time.Duration // the look-up
		result Result
		clear  bool
		right  bool
	}{
		{"found at once", time.Second, told(false), false, true},
		{"missing at once", time.Second, lost(), false, false},
		{"evicted", time.Second, lost(), true, true},
		{"missing before half of the TTL", 3 * time.Second, lost(), false, false},
		{"missing after the TTL", 11 * time.Second, lost(), false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := NewHistory(of)
			add := func(at time.Duration, c Call, r Result) {
				h.ticks = append(h.ticks, at, at+time.Millisecond)
				n := int64(2 * len(h.ticks))
				h.calls = append(h.calls, &called{
					client: "x", session: "x", call: c, result: r, from: n - 2, to: n,
					began: at, ended: at + time.Millisecond,
				})
			}
			add(0, Call{Verb: Create}, told(true))
			for shard := range of.Shards {
				if tt.clear {
					add(10*time.Millisecond*time.Duration(1+shard), Call{Verb: Clear, Shard: shard}, told(true))
				}
			}
			add(tt.after, Call{Verb: Exists, Items: []string{itemName(0)}}, tt.result)
			if err := h.Check(); (err == nil) != tt.right {
				t.Errorf("Check() = %v, want right: %v", err, tt.right)
			}
		})
	}
}
