package proof

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The shards of a Brief history expire while it goes on.

// slack is more than two clocks differ, and than a server is late with an expiry.
const slack = time.Second

// withLapses returns a history with the expiries that may have been: each Create
// may have made a shard once with each attempt, which then lives for the TTL at
// most.
func (s *Shardeds) withLapses(h *History) *History {
	if !s.Brief {
		return h
	}
	all := &History{of: h.of, ticks: h.ticks, calls: slices.Clone(h.calls)}
	for _, c := range h.calls {
		if c.call.Verb != Create || c.result.End == NotRun {
			continue
		}
		for i := range s.Shards {
			for range 1 + c.result.Maybe {
				all.calls = append(all.calls, &called{
					client: "time", call: Call{Verb: Lapse, Shard: i}, result: Result{End: Unknown},
					from: h.before(c.began + s.Plain.TTL/2 - slack), to: math.MaxInt64,
				})
			}
		}
	}
	return all
}

// checkLasting checks that what a Create made alone is there for half of the TTL.
func (s *Shardeds) checkLasting(h *History) error {
	if !s.Brief {
		return nil
	}
	for _, made := range h.calls {
		alone := made.call.Verb == Create && made.result.End == Answered && made.result.Yes[0] &&
			!slices.ContainsFunc(h.calls, func(o *called) bool {
				return o != made && o.call.Verb == Create && o.meets(made)
			})
		if !alone {
			continue
		}
		for _, c := range h.calls {
			lost := strings.Contains(c.result.Err, " of "+strconv.Itoa(s.Shards)+" not found: ")
			if evicted := slices.ContainsFunc(h.calls, func(o *called) bool {
				return o.call.Verb == Clear && o.to > made.from && o.from < c.to
			}); evicted {
				continue
			}
			if lost && c.from > made.to && c.ended < made.began+s.Plain.TTL/2-slack {
				return fmt.Errorf("a Create at %v made all shards, and at %v some are missing", made.began, c.began)
			}
		}
	}
	return nil
}
