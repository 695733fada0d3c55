package upstashtest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// Region is a read region of a global database.
type Region struct {
	// Name is the argument of RegionURL and RegionClient.
	Name string
	// Latency is the round trip between the region and the primary. It is added
	// to each answer of the primary to a client of the region.
	Latency time.Duration
	// Lag is how many writes the region stays behind the primary. With
	// math.MaxInt it applies no write until CatchUp.
	Lag int
}

// WithRegions makes the database a global one. The server's URL is near the
// primary, and each region has its own URL. It needs the database in memory.
//
// A region answers a request without a write. All other requests go to the
// primary. A BITFIELD counts as a write even if it only reads. The primary also
// answers if the request's upstash-sync-token names a state the region has not
// reached. The token of an answer names a state at least as new as that of the
// request.
//
// A script with writes runs again in every region. If it uses random numbers,
// the regions differ from the primary.
func WithRegions(regions ...Region) Option {
	return func(c *config) { c.regions = append(c.regions, regions...) }
}

// region is a Region of a running Server.
type region struct {
	Region
	replica
	url string // of the region; "" for the one near the server's own URL
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
	copied := replica{db: primary.Copy(1 + len(s.regions)), state: s.state}
	s.regions = append(s.regions, &region{Region: r, replica: copied})
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

// RegionURL returns the URL for clients near a region of WithRegions. An
// unknown name ends the test.
func (s *Server) RegionURL(name string) string {
	r := s.region(name)
	if r == nil || name == "" {
		s.fatal("there is no region %q: name it with WithRegions", name)
		return ""
	}
	return r.url
}

// RegionClient is Client for a client near a region of WithRegions.
func (s *Server) RegionClient(name string, opts ...upstash.Option) *upstash.Client {
	return s.client(s.RegionURL(name), s.Token, opts)
}

// SetReplicaLag puts a region near the clients of the server's own URL. It
// stays this number of writes behind the primary. With math.MaxInt it applies
// no write until CatchUp. 0, the default, removes the region. WithRegions says
// what a region answers. With WithRedis, SetReplicaLag ends the test.
func (s *Server) SetReplicaLag(writes int) {
	s.alone("making a replica", func() error {
		last := len(s.regions) - 1
		near := last >= 0 && s.regions[last].url == ""
		switch {
		case writes <= 0 && near:
			s.regions = s.regions[:last]
		case writes <= 0:
		case !near:
			return s.openRegion(Region{Lag: writes})
		default:
			s.regions[last].Lag = writes
			s.regions[last].apply(writes)
		}
		return nil
	})
}

// CatchUp makes each region apply all writes of the primary.
func (s *Server) CatchUp() {
	s.alone("catching up", func() error {
		for _, r := range s.regions {
			r.apply(0)
		}
		return nil
	})
}

// choose returns the database to answer a request, and its state. The request
// arrived at the region r, and its sync token names the state seen.
func (s *Server) choose(r *region, b wire.Batch, seen uint64) (database.DB, uint64) {
	if r == nil || seen > r.state || slices.ContainsFunc(b.Cmds, s.db.Table().IsWrite) {
		return s.db, s.state
	}
	return r.db, r.state
}
