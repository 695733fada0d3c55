package upstashtest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// region is a Region of a running Server: a copy that applies the primary's
// writes late.
type region struct {
	Region
	url string // of the region; "" for the one near the server's own URL

	db      *database.Memory
	pending []write // not applied yet, oldest first
	state   uint64  // writes applied
}

// write is a command that ran on the primary.
type write struct {
	cmd  []string
	full bool // the database was full: a script may have been refused
}

func (s *Server) openRegions(regions []Region) error {
	for _, r := range regions {
		if s.region(r.Name) != nil || r.Name == "" {
			return fmt.Errorf("a region's name is missing or taken: %q", r.Name)
		}
		if err := s.openRegion(r); err != nil {
			return err
		}
	}
	return nil
}

// openRegion adds a region with a copy of the data.
func (s *Server) openRegion(r Region) error {
	primary, ok := s.db.(*database.Memory)
	if !ok {
		return errors.New("a real Redis has no regions here: use the default database")
	}
	s.regions = append(s.regions, &region{Region: r, db: primary.Copy(1 + len(s.regions)), state: s.state})
	return nil
}

// region returns the region with a name, or nil.
func (s *Server) region(name string) *region {
	for _, r := range s.regions {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// regionAt returns the region listening at an address, or nil.
func (s *Server) regionAt(addr string) *region {
	for _, r := range s.regions {
		if r.url == "" || strings.HasSuffix(r.url, "//"+addr) {
			return r
		}
	}
	return nil
}

// arrival returns the address of the listener at which a request arrived.
func arrival(r *http.Request) string {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil {
		return ""
	}
	return reachable(at)
}

// choose returns the database to answer a request that arrived near a region and
// whose sync token names the state seen.
func (s *Server) choose(near *region, b wire.Batch, seen uint64) database.DB {
	if near == nil || seen > near.state || slices.ContainsFunc(b.Cmds, s.db.Table().IsWrite) {
		return s.db
	}
	return near.db
}

// apply runs pending writes until only keep are left.
func (r *region) apply(keep int) {
	for len(r.pending) > keep {
		r.db.Again(r.pending[0].cmd, r.pending[0].full)
		r.pending = r.pending[1:]
		r.state++
	}
}

// noteWrite is called after a command ran on the primary. If it is a write, it
// advances the state and passes the write on to the regions. They know all scripts, so
// one that was not known did nothing.
func (s *Server) noteWrite(cmd []string, r database.Reply) {
	f, _ := r.(database.Failure)
	if !s.db.Table().IsWrite(cmd) || strings.HasPrefix(string(f), "NOSCRIPT ") {
		return
	}
	s.state++
	for _, r := range s.regions {
		r.pending = append(r.pending, write{cmd, s.full})
		r.apply(r.Lag)
	}
}

// A sync token is the number of writes a database has applied, as 16
// hexadecimal digits. Compared as strings, tokens have the order of their
// states. To clients a token is opaque.

func formatToken(state uint64) string { return fmt.Sprintf("%016x", state) }

// parseToken returns the state in a token, or 0 for an empty or garbled one. A
// client that garbles its token then reads stale data.
func parseToken(token string) uint64 {
	if len(token) != 16 {
		return 0
	}
	state, _ := strconv.ParseUint(token, 16, 64)
	return state
}
