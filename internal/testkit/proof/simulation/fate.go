package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

const (
	timeout = 300 * time.Millisecond // of an attempt
	// slowTime is the longest delay with which an answer to TIME is still used. A
	// client waits twice as long.
	slowTime = 1900 * time.Millisecond
)

// fates draws what goes wrong. It depends only on the seed and on the place:
// the number of a connection, of an answer on it, or of a request. The order in
// which goroutines ask does not matter.
type fates struct {
	seed uint64
	rate int  // how often something goes wrong, in percent
	held bool // one BITFIELD in four waits longer than its client
	// patience is how long clients wait, if that is panes.
	patience time.Duration
	// pane is the unit of time of a type with clocks, or 0.
	pane time.Duration
}

func (f fates) at(place uint64, n int) (rng *rand.Rand, wrong bool) {
	rng = rand.New(rand.NewPCG(f.seed, place<<32|uint64(n)))
	return rng, rng.IntN(100) < f.rate
}

// Places, for at.
const (
	placeConn = iota + 1
	placeRequest
	placeScript
	placeCrossing
	placeSlow
	placeUpload
	placeAnswer = 1 << 16 // and above: one for each connection
)

// connFate is what happens to a connection.
type connFate struct {
	refused            bool
	unasked            bool // an answer comes before the first request, without TLS
	dialDelay          time.Duration
	toClient, toServer cut
	idleClose          time.Duration
}

func (f fates) ofConn(id int) (c connFate) {
	rng, wrong := f.at(placeConn, id)
	if !wrong {
		return c
	}
	switch rng.IntN(7) {
	case 6:
		c.unasked, c.dialDelay = true, time.Millisecond+upTo(rng, 10*time.Millisecond)
	case 0:
		c.refused = true
	case 1:
		c.dialDelay = upTo(rng, 500*time.Millisecond)
	case 2:
		c.idleClose = upTo(rng, 40*time.Second)
	case 3:
		c.toServer = drawCut(rng, 4000)
	default:
		c.toClient = drawCut(rng, 2000)
	}
	return c
}

func drawCut(rng *rand.Rand, bytes int) cut {
	return cut{
		how: hangUp + cutting(rng.IntN(5)), at: rng.IntN(bytes),
		pause: upTo(rng, 3*time.Second),
	}
}

// ofRequest returns the server's fault for a request that begins with a
// command.
func (f fates) ofRequest(n int, command string) upstashtest.Fault {
	rng, wrong := f.at(placeRequest, n)
	if f.held && command == "BITFIELD" && rng.IntN(4) == 0 {
		return upstashtest.Stall(upstashtest.BeforeExec)
	}
	if !wrong {
		// The request after one that went wrong is refused, and not sent again.
		if _, before := f.at(placeRequest, n-1); before && rng.IntN(4) == 0 {
			return upstashtest.RateLimit(time.Minute)
		}
		return upstashtest.Fault{}
	}
	if f.patience > 0 && rng.IntN(4) > 0 {
		switch rng.IntN(3) {
		case 0:
			return upstashtest.LateExec(lateness(rng, f.patience))
		case 1:
			return upstashtest.Late(lateness(rng, f.patience))
		}
		// A client waits for half a minute at most.
		return upstashtest.RateLimit(time.Duration(1+rng.IntN(30)) * time.Second)
	}
	switch rng.IntN(12) {
	case 0: // late: others act before
		if f.pane != 0 && rng.IntN(2) == 0 {
			return upstashtest.LateExec(lateness(rng, min(3*f.pane, 55*time.Second)))
		}
		fallthrough
	case 1:
		return upstashtest.LateExec(lateness(rng, 3*time.Second))
	case 5:
		if f.pane != 0 {
			return upstashtest.NoPermission("TIME")
		}
	case 2, 3:
		return upstashtest.NoPermission("EVAL")
	case 6: // such as that which sets a TTL: it is not sent again
		if strings.HasPrefix(command, "EVAL") {
			return upstashtest.RateLimit(time.Minute)
		}
	case 4: // most often later than a client waits
		return upstashtest.Late(lateness(rng, time.Second))
	}
	all := upstashtest.EveryFault()
	return all[rng.IntN(len(all))]
}

// ofSlow returns the fault of a request whose clients have clocks that are as
// wrong as they may be: some are behind, because the answer to TIME was late, and
// some ahead, because the command was. One BITFIELD in four has an answer almost
// as late as its client waits.
func (f fates) ofSlow(n int, command string, other upstashtest.Fault) upstashtest.Fault {
	rng, _ := f.at(placeSlow, n)
	switch {
	case command == "TIME" && rng.IntN(3) == 0:
		return upstashtest.Late(slowTime)
	case command == "TIME" && rng.IntN(2) == 0:
		return upstashtest.LateExec(slowTime)
	case command == "BITFIELD" && rng.IntN(4) == 0:
		return upstashtest.Late(slowTime/unit*unit + lateness(rng, slowTime))
	}
	return other
}

// scriptTime is how much longer a client waits for the script of a small upload.
const scriptTime = 4 * time.Second

// ofUpload returns the fault of a request of an upload: one part in two arrives
// after it was sent again, and one script in two answers after that.
func (f fates) ofUpload(n int, command string, other upstashtest.Fault) upstashtest.Fault {
	rng, _ := f.at(placeUpload, n)
	d := timeout/unit*unit + lateness(rng, timeout)
	switch {
	case rng.IntN(2) == 0:
	case command == "SETEX":
		return upstashtest.LateExec(d)
	case strings.HasPrefix(command, "EVAL"):
		return upstashtest.Late(scriptTime + d)
	}
	return other
}

// answerFate is what happens to the bytes of an answer after the server has sent it:
// serverConn.send does it. A fault of the server itself is from ofRequest.
type answerFate struct {
	how    mangling
	n      int // interim answers, or the byte of a cut in 1/1000 of the answer
	pause  time.Duration
	header string
	reset  bool
}

type mangling uint8

const (
	untouched mangling = iota
	interim            // answers of status 1xx come first
	twice              // the answer comes a second time
	elsewhere          // it comes on other connections too
	late               // it comes late
	pieces             // it comes in two pieces
	broken             // it is cut
	closing            // the connection's end is announced
)

func (f fates) ofAnswer(conn, n int) (a answerFate) {
	rng, wrong := f.at(placeAnswer+uint64(conn), n)
	if !wrong {
		return a
	}
	a.how = interim + mangling(rng.IntN(7))
	if rng.IntN(2) == 0 {
		a.pause = upTo(rng, 5*time.Millisecond)
	}
	switch a.how {
	case interim:
		a.n = 1 + rng.IntN(9)
	case late:
		a.pause = upTo(rng, 800*time.Millisecond)
	case pieces, broken:
		a.n, a.reset = rng.IntN(1000), rng.IntN(2) == 0
	case closing:
		a.header = closeHeaders[rng.IntN(len(closeHeaders))]
	}
	return a
}

var closeHeaders = []string{
	"Connection: close", "Connection: Close", "connection: CLOSE", "Connection: keep-alive, close",
}

// String formats the fate for the trace of a seed.
func (a answerFate) String() string {
	name := strings.Fields("untouched interim twice elsewhere late pieces broken closing")[a.how]
	return fmt.Sprintf("%s n=%d pause=%v %q reset=%v", name, a.n, a.pause, a.header, a.reset)
}

// cut is what happens to a stream at a byte.
type cut struct {
	how   cutting
	at    int           // bytes that come through
	pause time.Duration // of a freeze
}

type cutting uint8

const (
	whole   cutting = iota
	hangUp          // both directions end
	reset           // both directions end at once, and bytes under way are lost
	refuse          // as hangUp, and the write returns an error
	swallow         // nothing arrives any more
	freeze          // nothing arrives for a while
)
