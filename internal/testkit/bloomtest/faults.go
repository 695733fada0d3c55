package bloomtest

import (
	"slices"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// During calls do when request n from now arrives, before it runs.
func During(s *upstashtest.Server, n int64, do func()) {
	s.InjectFunc(func(i int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		if i == n {
			do()
		}
		return upstashtest.Fault{}
	})
}

// StrikeAt has a fault strike request n from now.
func StrikeAt(s *upstashtest.Server, n int64, f upstashtest.Fault) {
	s.InjectFunc(func(i int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		if i == n {
			return f
		}
		return upstashtest.Fault{}
	})
}

// StrikeAll has a fault strike each request.
func StrikeAll(s *upstashtest.Server, f upstashtest.Fault) {
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return f })
}

// StrikeEach has a fault strike each request with the command. EVAL includes
// EVALSHA.
func StrikeEach(s *upstashtest.Server, command string, f upstashtest.Fault) {
	StrikeFirst(s, command, -1, f)
}

// StrikeFirst has a fault strike the next n requests with the command.
func StrikeFirst(s *upstashtest.Server, command string, n int, f upstashtest.Fault) {
	s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if n == 0 || !slices.Contains(r.Commands, command) && !slices.Contains(r.Commands, command+"SHA") {
			return upstashtest.Fault{}
		}
		n--
		return f
	})
}

// Sent notes the commands of all requests from now on.
func Sent(s *upstashtest.Server) *[]string {
	sent := new([]string)
	s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		*sent = append(*sent, r.Commands...)
		return upstashtest.Fault{}
	})
	return sent
}
