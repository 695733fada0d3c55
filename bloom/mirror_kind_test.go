package bloom

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// A timeServer answers each TIME with the second 1000000, or not at all.
type timeServer struct{ refuses, silent bool }

func (s *timeServer) RoundTrip(_ context.Context, _ *upstash.Request, resp *upstash.Response) error {
	switch {
	case s.silent:
		return errors.New("the connection broke")
	case s.refuses:
		resp.StatusCode, resp.Body = 400, []byte(`{"error":"NOPERM this user has no permissions to run the 'time' command"}`)
	default:
		resp.StatusCode, resp.Body = 200, []byte(`{"result":["1000000","0"]}`)
	}
	return nil
}

// Rule 14: neither clock of the process may make the earliest time too late, or the
// latest too early. A TIME that is refused says so, and one that is lost nothing.
func TestServerTimes(t *testing.T) {
	const hour = time.Hour
	for name, tt := range map[string]struct {
		wall, monotonic  time.Duration // what the clocks show of some time
		earliest, latest time.Duration
	}{
		"at once":                {0, 0, 0, 0},
		"right":                  {hour, hour, hour - hour/1000, hour + hour/1000},
		"the wall clock ahead":   {50 * hour, hour, hour - hour/1000, 50*hour + hour/20},
		"the wall clock back":    {-50 * hour, hour, hour - hour/1000, hour + hour/1000},
		"frozen, a clock stands": {hour, 0, 0, hour + hour/1000},
		"frozen, and set back":   {-hour, 0, 0, 0},
		"long after ten minutes": {1000 * hour, 1000 * hour, 999 * hour, 1001 * hour},
	} {
		t.Run(name, func(t *testing.T) {
			wall, elapsed := time.Unix(5, 0), time.Duration(0)
			server := new(timeServer)
			c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(server), upstash.WithRetry(0),
				door.WithClock(func() time.Time { return wall }, func() time.Duration { return elapsed }).(upstash.Option))
			if err != nil {
				t.Fatal(err)
			}
			p := paneAreas{client: c}
			learn := func(refuses, silent, known, denied bool) {
				t.Helper()
				server.refuses, server.silent = refuses, silent
				p.learnTime(t.Context())
				if _, _, ok := door.ServerTimeBounds(c); ok != known || p.denied.Load() != denied {
					t.Errorf("known: %t, refused: %t, want %t, %t", ok, p.denied.Load(), known, denied)
				}
			}
			learn(false, true, false, false)
			learn(true, false, false, true)
			learn(false, true, false, true) // it is lost: the token may have run it since, or not
			learn(false, false, true, false)
			wall, elapsed = wall.Add(tt.wall), elapsed+tt.monotonic
			earliest, latest, _ := door.ServerTimeBounds(c)
			learned := time.Unix(1_000_000, 0)
			if earliest.Sub(learned) != tt.earliest || latest.Sub(learned) != tt.latest {
				t.Errorf("from %v to %v after it was learned, want %v to %v",
					earliest.Sub(learned), latest.Sub(learned), tt.earliest, tt.latest)
			}
			if tt.wall != tt.monotonic {
				learn(true, false, true, true) // what was learned counts
			}
		})
	}
}
