package proof

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A Type is a type of filter: a Subject, with the means to make histories. It is
// plain data and travels to other processes as JSON.
type Type interface {
	Subject
	Base() *Common
	Databases() int
	Pane() time.Duration
	Gap() time.Duration
	// Draw draws the calls a client makes without a rest, or a change from
	// outside. Outside makes such a change.
	Draw(rng *rand.Rand) []Call
	Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result
	// last returns the last calls of a history, which has n calls.
	last(n int) []Call
}

// Common is what all types have: of the Config of their handles, and of what
// befalls them.
type Common struct {
	TTL            time.Duration
	MustExist      bool
	MissingIsEmpty bool
	Seed           uint64
	ReadsNearest   bool
	// Parallel is how many requests of a batch are under way at once, 1 or 2. Two
	// begin at one instant, and nothing says which is the first. Of two writes at
	// once a client keeps one sync token, so a region may lack the other one: for
	// the model a client reads all of its writes, and those near a region make one
	// at a time.
	Parallel int
	// Lag lets a region lag behind the primary. Tokens makes the clients send
	// sync tokens, so that each sees its own writes.
	Lag, Tokens bool
	// Second is true if the filter is renamed, so there may be two.
	Second bool
	// Losses brings older states of the filter back. Causes ends contexts with
	// the errors of other calls. OldServer makes the server refuse the flags of
	// scripts.
	Losses, Causes, OldServer bool
	// Silences is true if the server can fall silent.
	Silences bool `json:"-"`
	// Backups is set if clients restore a Backup.
	Backups *Backups `json:"-"`
}

// Base returns the common part of a type.
func (b *Common) Base() *Common { return b }

// Describe returns nothing.
func (b *Common) Describe(string) string { return "" }

func (b *Common) items(c Call) []string { return c.Items }

// Staleness is how old the answers of a type's Mirrors may be.
type Staleness struct {
	// MaxTrust and MaxCopy follow from MaxStale: see limit.
	MaxStale, MaxTrust, MaxCopy, StaleIfError time.Duration
	// Outages has the server fall silent, and the callers of a Mirror leave.
	Outages bool
}

func (s Staleness) mirrorConfig() bloom.MirrorConfig {
	return bloom.MirrorConfig{MaxStale: s.MaxStale, StaleIfError: s.StaleIfError}
}

// limit sets for how long a Mirror's "yes" counts, and its copy after a download.
func (s *Staleness) limit() {
	s.MaxTrust = cmp.Or(s.MaxStale, time.Minute)
	s.MaxCopy = max(time.Hour, s.MaxStale) + s.MaxStale
}

// Databases is how many databases there are.
func (b *Common) Databases() int { return 1 }

// Pane is the unit of time of a type that depends on clocks, or 0. Each client of
// such a type has its own clocks, which may be wrong.
func (b *Common) Pane() time.Duration { return 0 }

// Gap is the length of the pause in the middle of the history of such a type, when
// nobody does anything.
func (b *Common) Gap() time.Duration { return 0 }

// drawRegion draws a region that stays behind, once in four.
func (b *Common) drawRegion(rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		b.Lag, b.ReadsNearest = true, rng.IntN(2) == 0
	}
}

// secretSeed is the seed of the handles that have one.
const secretSeed = 0x5eed5eed5eed5eed

// drawSeed draws the seed of a history's handles.
func (b *Common) drawSeed(rng *rand.Rand) {
	if rng.IntN(3) == 0 {
		b.Seed = secretSeed
	}
}

// seedTag returns the seed's tag in a header, by the documentation of the
// format.
func seedTag(seed uint64) int64 {
	if seed == 0 {
		return 0
	}
	return int64(1 + xxh3.Hash(binary.LittleEndian.AppendUint64(nil, seed))%127)
}

// geometries holds what geometryOf computed: a history asks often for few.
var geometries sync.Map

// geometryOf returns the geometry of a Config whose sizes are constants.
func geometryOf(cfg interface {
	Geometry() (bloom.Geometry, error)
},
) bloom.Geometry {
	if g, ok := geometries.Load(cfg); ok {
		return g.(bloom.Geometry)
	}
	g, err := cfg.Geometry()
	if err != nil {
		panic(fmt.Sprint("proof: ", err))
	}
	geometries.Store(cfg, g)
	return g
}
