package main

import (
	"io"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// relay passes connections on to a server, and counts their bytes.
func relay(t *testing.T, to string) (url string, sent, received *atomic.Int64) {
	t.Helper()
	sent, received = new(atomic.Int64), new(atomic.Int64)
	return "http://" + testenv.Serve(t, func(in net.Conn) {
		out, err := net.Dial("tcp", strings.TrimPrefix(to, "http://"))
		if err != nil {
			return
		}
		defer out.Close()
		go func() {
			_, _ = io.Copy(in, io.TeeReader(out, counter{received}))
			_ = in.Close()
		}()
		_, _ = io.Copy(out, io.TeeReader(in, counter{sent}))
	}), sent, received
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// The headers of a call are about as long as calc says. Those of the service may
// differ, but for the request's.
func TestCalcKnowsTheHeaders(t *testing.T) {
	s := upstashtest.NewServer(t)
	url, sent, received := relay(t, s.URL)
	client, err := upstash.New(url, s.Token)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	f, err := bloom.New(client, "key", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	s.ResetStats()
	sent.Store(0)
	received.Store(0)
	const calls = 20
	for range calls {
		if _, err := f.Exists(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	n := s.Stats()
	up, down := (sent.Load()-n.BytesIn)/calls, (received.Load()-n.BytesOut)/calls
	// The service's names and tokens are longer.
	more := int64(len("global-example-12345.upstash.io")-len(strings.TrimPrefix(url, "http://"))) + 60 - int64(len(s.Token))
	if sum := up + down + more; sum < 9*headers/10 || sum > 11*headers/10 {
		t.Errorf("the headers of a call have %d and %d bytes, and calc says %d", up, down, headers)
	}
}

// The bill of 50 million look-ups a day with two read regions: by the command, with
// ReadsNearest, in twenties, and by a fixed plan.
func TestCalcOfTheWholeBill(t *testing.T) {
	sh := newShell(t)
	_, ways := sh.calculated("-n 1M --lookups 1500M --regions 2")
	f, nearest := ways[plainKind], ways[nearestWay]
	if f.Money < 9000 || f.Money > 9030 || nearest.Money < 3000 || nearest.Money > 3030 || f.FixedPlan != "10 GB" || f.FixedMoney != 400 {
		t.Errorf("filter %+v, ReadsNearest %+v", f, nearest)
	}
	_, ways = sh.calculated("-n 1M --lookups 1500M --regions 2 --batch 20")
	if f, nearest := ways[plainKind], ways[nearestWay]; nearest.Money != 150 || f.FixedPlan != "5 GB" || f.FixedMoney != 200 {
		t.Errorf("in twenties: filter %+v, ReadsNearest %+v", f, nearest)
	}
	sh.want(0, "at the prices of 2026-09-20: set, keys with EX, $40.00 by the fixed plan of 1 GB. Of these", "",
		"calc", "-n", "1M", "--lookups", "1500M", "--regions", "2", "--batch", "20")
	sh.want(0, "commands a second that a database takes, at the peak: filter (28,935), ", "", "calc", "-n", "1M", "--lookups", "15G")
	sh.want(0, "Cheapest in this table, at the prices of 2026-09-20: filter, window, set, keys with EX, $2.00, pay as you go.", "",
		"calc", "-n", "1M", "--lookups", "1M", "--adds", "1k", "--batch", "1")
}

// The row of a Mirror: what it downloads if somebody adds in each MaxStale, of a
// million items and of five, in a tenth of the refreshes, and in two processes.
func TestCalcOfAMirror(t *testing.T) {
	sh := newShell(t)
	for flags, want := range map[string][2]float64{ // GB, refreshes
		"-n 1M --stale 1m":               {58, 43_200},
		"-n 5M --stale 1m":               {290, 43_200},
		"-n 5M --stale 10m":              {29, 4_320},
		"-n 5M --stale 1m --processes 2": {580, 86_400},
	} {
		// 10,000 adds an hour, so that nearly every refresh downloads, and weigh little.
		_, ways := sh.calculated("--lookups 50M --adds 1M " + flags)
		if m := ways[mirrorWay]; m.Refreshes != want[1] || m.TrafficGB < 0.98*want[0] || m.TrafficGB > 1.03*want[0]+1 {
			t.Errorf("%s: %+v, want %v GB and %v refreshes", flags, m, want[0], want[1])
		}
	}
	// Of a window the pane that changes is downloaded, and the other two once an hour:
	// 1.43 MB each. It is 2 commands more to find out which changed, and a TIME in ten
	// minutes.
	for flags, want := range map[string]cost{
		"--adds 1M": {Commands: 1e6 + 43_200*(3+5) + 2*720*3 + 4_320, TrafficGB: 43_200*1.43e-3 + 2*720*1.43e-3 + 0.9},
		"--adds 0":  {Commands: 43_200*3 + 720*5 + 2*720*3 + 4_320, TrafficGB: 3 * 720 * 1.43e-3},
	} {
		_, ways := sh.calculated("-n 1M --lookups 50M --stale 1m " + flags)
		if w := ways[mirrorWindowWay]; w.Commands != want.Commands || math.Abs(w.TrafficGB-want.TrafficGB) > 0.5 {
			t.Errorf("%s: %+v, want %+v", flags, w, want)
		}
	}
	// A Mirror whose MaxStale is the Span or more is refused.
	for stale, is := range map[string]bool{"86399s": true, "24h": false, "10000h": false} {
		out := sh.want(0, "Cheapest in this table", "", "calc", "-n", "1M", "--lookups", "1M", "--stale", stale)
		const says = "\nNo Mirror of a window has a MaxStale as long as its Span, which is 24h here."
		if strings.Contains(out, "\n"+mirrorWindowWay+" ") != is || strings.Contains(out, says) == is {
			t.Errorf("--stale %s, a row of a window's Mirror: want %v\n%s", stale, is, out)
		}
	}
	// Without its row the line of the cheapest says that there is one.
	const unseen = " A Mirror, which may cost less, is not in it: --stale 1m --processes N"
	sh.want(0, " never wrong."+unseen, "", "calc", "-n", "1M", "--lookups", "100M", "--adds", "1k", "--batch", "1k")
	for _, flags := range []string{"--lookups 100M --stale 1m", "--adds 1k"} {
		if out := sh.want(0, "Cheapest in this table", "", append([]string{"calc", "-n", "1M"}, strings.Fields(flags)...)...); strings.Contains(out, unseen) {
			t.Errorf("%s: %s", flags, out)
		}
	}
	sh.want(2, "--stale is the MaxStale of Mirrors", "", "calc", "-n", "1M", "--processes", "2")
	sh.want(2, "--stale is the MaxStale of Mirrors", "", "calc", "-n", "1M", "--stale", "10ms")
}
