// Package proof checks what several clients of one Bloom filter were told
// against a model of the filter.
//
// A history holds calls that overlap in time. It is linearizable if there is an
// order of them, in keeping with which call ended before which began, in which
// every answer is the model's. Herlihy and Wing,
// "Linearizability: a correctness condition for concurrent objects" (1990), is
// the source of the idea; github.com/anishathalye/porcupine finds the order.
//
// The model knows the bits of every item, so that false positives are exact: an
// answer "yes" to an item that was never added is right if, and only if, others
// have set its bits. What ended without an answer stays open: it may take
// effect at any later time, once, or never. An error that upstash.SafeToRetry
// approves of must have had no effect at all.
//
// The time of a filter counts as well: what should have a TTL has one after the
// next write, Persist takes it off for good, and other data never gets one.
//
// Package linear makes histories over real sockets and processes, package
// simulation in a bubble with a virtual clock. Neither can show that there is
// no bug; each found those that were put back on purpose within a few hundred
// histories or a few thousand seeds.
package proof
