// Package proof compares the answers that several clients of one Bloom filter
// got with a model of the filter.
//
// A history holds calls that overlap in time. It is linearizable if the calls
// have an order in which the model gives every answer. In that order a call
// that ended before another began comes first. The idea is from Herlihy and
// Wing, "Linearizability: a correctness condition for concurrent objects"
// (1990). github.com/anishathalye/porcupine finds the order.
//
// The model knows the bits of every item, and so predicts each false positive:
// an answer "yes" for an item that was never added is right if, and only if,
// other items have set its bits. A call that ended without an answer stays
// open: it may take effect at any later time, once, or never. A call whose
// error upstash.SafeToRetry reports as safe must have had no effect.
//
// The model knows times to live too. A filter that should have a TTL has one
// after the next write. Persist removes it for good. Other data never get one.
//
// Package linear makes histories over real sockets and processes, package
// simulation on a virtual clock. Neither can show that there is no bug. Bugs
// that were put back on purpose were found within a few hundred histories or a
// few thousand seeds.
package proof
