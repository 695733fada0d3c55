// Package proof compares the answers of one Bloom filter to several clients
// with a model of the filter.
//
// A history holds calls that overlap in time. It is linearizable if, in some
// order of the calls, the model gives every answer. In such an order, a call
// comes before all calls that began after its end. The idea is from Herlihy and
// Wing, "Linearizability: a correctness condition for concurrent objects"
// (1990). github.com/anishathalye/porcupine finds the order.
//
// # The model
//
// The model has two keys, because filters are renamed. It knows the bits of
// every item, and therefore predicts each false positive. An answer "yes" for an
// item never added is right if, and only if, other items have set its bits. The
// model also predicts the counts of Stats, Inspect and Cardinality, and the
// answers of a Load.
//
// A call without an answer stays open. If it is an Add, it may take effect at
// any later time, once for each attempt, or never. A Load, a Replace, a Rename
// and a Delete take effect at most once, whatever was repeated. If
// upstash.SafeToRetry is true for a call's error, the call must have had no
// effect. It must be true of every error of a call that only reads.
//
// If an answer may be old, its interval begins earlier: by MaxStale for the
// "no" of a Mirror and for its "yes" (a minute, if that is 0), and at any time for
// the answer of a region. By StaleIfError it begins earlier only if the server had
// the last word: a question of the Mirror got no answer, and no later one did, and
// somebody asks. A "yes" is not of a filter that was gone when the Mirror last asked
// and was answered, unless the answer to an Add that made it came later. A Mirror must
// not forget its own Adds. After a loss of acknowledged writes, or a COPY over the
// key, only an hour and MaxStale limit its age.
//
// After a successful [Open] a client uses the opened handle. The model does not
// know which handle made a call: with what is not in the string, an opened one
// must answer as a configured one. The only exception is a Scalable, whose
// opened handle does not know the capacity. It may add a layer earlier, as far
// as [bloom.OpenScalable] says. An Open asks the primary. If it finds a filter
// of another geometry, the client keeps its old handle.
//
// In a part of the histories of a Filter the handles have a Capacity. The model
// predicts whether a Load says that the filter is over it.
//
// A filter is small, and fills up in a few calls. If filters are moved, some are
// so long that they move in several parts. Their items share no cells.
//
// In histories near a region that lags, the writes of one client overlap, and
// their replies arrive in another order. A Snapshot must have what others were
// told is there. A client that sends sync tokens must find its own writes.
//
// In a part of the histories of a Filter, a Scalable and a Sharded, first attempts at
// the command that makes a filter come late, after the filter of their retry has gone.
// Each attempt of the model makes another filter, too.
//
// A few rules need no order. For example, a handle that met other data sends no
// Add. They are in rules.go, and those of Mirrors in outages.go, which judge the
// Mirror of a Filter and of a Window.
//
// In a part of the histories of each type the database comes back with an older
// state. The model brings it back too. What a handle remembers must not make it
// answer as if nothing had been lost, as far as the type's documentation goes: a
// Window may forget what was added since.
//
// In a part of the histories of a Window and a Scalable, clients take a Backup
// and restore it, to a free key or to one that is taken. A restored filter has
// what the Backup has, and a birth number and a TTL of its own.
//
// The model also knows times to live. A filter without its TTL gets it with the
// next write, and a write that could not set it says so. Persist removes it for
// good. Other data never gets one.
//
// # Histories
//
// Package simulation makes histories on a virtual clock, package systemtest of
// bloom over real sockets and processes. Each history has the plain verbs and at
// most two themes, so calls that disturb each other meet often. Neither can
// prove the absence of bugs. Bugs put back on purpose were found within a few
// hundred histories or a few thousand seeds.
//
// # Another verb
//
// A verb has its constant and its row in the table of verbs.go: its traits, how
// many items it takes, how a handle makes the call, and what a step of it does to
// the model of a Filter and of the types that answer like one. The rules and the
// models ask the table, so that most need no change. Then:
//
//   - a type draws the verb as often as its list says, such as windowVerbs; calls
//     that only together show something are a story, such as Windows.drawTurn, with a
//     weight in the type's table;
//   - cuckooTable.next and windowCheck.take say what it does to the other models.
//
// # Another rule
//
// A rule that needs no order of the calls is a sentence and a function in a list:
// callRules, batchRules and seqRules of any call, mirrorRules of a call through a
// Mirror, filterRules, cuckooRules, and of a Window windowRules and answerRules.
//
// # Another type of filter
//
// [Filters], [Windows], [Cuckoos], [Scalables] and [Shardeds] are types. A
// Window has no order of calls: its model compares each answer with all calls
// that may be its reason. A Scalable answers like a Filter, and the rules about
// its layers need no order. In a Sharded, each shard is a Filter, in one of
// several databases. [Mixed] has a Filter and a Window or Scalable beside it, for
// AddIn and ExistsIn: each has its part of the history, in which what such a call
// did to it is a call of its own. Another type has its own file, and needs:
//
//   - a struct with [Common], drawn from a seed;
//   - make and open, by which a [Session] makes its handles;
//   - Draw and last, the calls of its clients and those at the end;
//   - the methods of [Subject]: the state of its model, which is compared with
//     ==, and a [Step] for each atomic effect, with the interval in which it
//     may have been;
//   - a test of its Steps with right and wrong histories, like TestCheck.
//
// Each client of a type with a Pane has its own clocks. In a bubble time.Now is
// virtual. A client's clock is time.Now with an offset, a jump at some instant, or
// a stop, and each Result says by how much it was wrong. The server's TIME is the
// bubble's. A model that depends on the time takes it from the beginnings and ends of
// the calls, as the ages of a Mirror do.
package proof
