//go:build !race

// The race detector would need minutes for a million Adds, and nothing here runs
// concurrently.

package bloom

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// layered is a server in memory. It knows one command, the script of a
// Scalable's Adds.
type layered struct {
	t    *testing.T
	mu   sync.Mutex // a script is one step
	data []byte
	out  []byte
}

func (m *layered) bit(at uint64) *byte {
	for uint64(len(m.data)) <= at/8 {
		m.data = append(m.data, make([]byte, max(len(m.data), 4096))...)
	}
	return &m.data[at/8]
}

func (m *layered) get(at uint64, width int) (v uint64) {
	for i := range uint64(width) {
		v = v<<1 | uint64(*m.bit(at + i)>>(7-(at+i)%8)&1)
	}
	return v
}

func (m *layered) set(at uint64, width int, v uint64) {
	for i := range uint64(width) {
		b, shift := m.bit(at+i), 7-(at+i)%8
		*b = *b&^(1<<shift) | byte(v>>(uint64(width)-1-i)&1)<<shift
	}
}

func (m *layered) RoundTrip(_ context.Context, req *upstash.Request, resp *upstash.Response) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	body := string(bytes.TrimSuffix(bytes.TrimPrefix(req.Body, []byte("[")), []byte("]")))
	if !strings.HasPrefix(body, `"EVAL`) {
		m.t.Fatalf("command %.40s", body)
	}
	_, after, _ := strings.Cut(body, `","1","k","`) // the text of a script holds commas
	resp.StatusCode = 200
	m.out = append(m.out[:0], `{"result":[`...)
	m.add(strings.Split(strings.TrimSuffix(after, `"`), `","`))
	resp.Body = append(resp.Body, append(m.out[:len(m.out)-1], `]}`...)...)
	return nil
}

func (m *layered) answer(v uint64) { m.out = append(strconv.AppendUint(m.out, v, 10), ',') }

// add does what scalableAddScript does.
func (m *layered) add(args []string) {
	n := make([]uint64, len(args)+1)
	for i, a := range args {
		v, err := strconv.ParseUint(a, 10, 64)
		if err != nil {
			m.t.Fatal(err)
		}
		n[i+1] = v
	}
	header, birth, word, limit := n[1], n[2], n[3], int(n[5])
	if m.get(0, 53) == 0 {
		m.set(0, 53, header)
		m.set(64, 53, birth)
		m.set(128, 53, word)
	}
	areas, z := layerAreas(header&(1<<32-1)), int(header>>hashesShift&63)/2
	capacity, layers, taken := layersIn(int64(m.get(128, 53)))
	// bits calls do for the item's bits in a layer, until it returns false.
	bits := func(item []uint64, layer int, do func(at uint64) bool) bool {
		for _, v := range item[layer*z : (layer+1)*z] {
			at := areas[layer].offset + v/2809*53
			if !do(at+v/53%53) || !do(at+v%53) {
				return false
			}
		}
		return true
	}
	isSet := func(at uint64) bool { return m.get(at, 1) == 1 }
	var answers []uint64
	for items := n[6:]; len(items) > 0; items = items[z*len(areas):] {
		seen := false
		for layer := range layers {
			seen = seen || bits(items, layer, isSet)
		}
		if seen {
			answers = append(answers, 0)
			continue
		}
		if taken >= capacity<<(2*(layers-1)) && layers < limit {
			layers, taken = layers+1, 0
		}
		taken++
		bits(items, layers-1, func(at uint64) bool { m.set(at, 1, 1); return true })
		answers = append(answers, 1)
	}
	m.set(128, 53, uint64(layersWord(capacity, layers))+taken)
	for _, v := range append([]uint64{header, 0, m.get(64, 53), m.get(128, 53)}, answers...) {
		m.answer(v)
	}
}

// has looks an item up in all layers.
func (m *layered) has(areas []area, g Geometry, item string, pos []uint64) bool {
	for _, a := range areas {
		g.Bits = a.words * wordBits
		all := true
		for _, p := range g.Positions(pos[:0], item) {
			all = all && *m.bit(a.offset + p)>>(7-(a.offset+p)%8)&1 == 1
		}
		if all {
			return true
		}
	}
	return false
}

// At the capacity of each number of layers, up to 341 times Capacity, the
// measured false positive rate is at most a tenth above its bound of FPRate/5 a
// layer. So is the share of new items reported as seen. The short form ends at
// 21 times Capacity.
func TestMeasuredRatesOfScalable(t *testing.T) {
	for _, c := range []struct {
		rate    float64
		batch   int
		layers  int
		queries int
	}{
		{0.01, 1, 5, 300_000},
		{0.01, 100, 5, 300_000},
		{0.01, 1000, 5, 300_000},
		{0.01, 20_000, 5, 300_000},
		{0.001, 1, 3, 1_000_000},
	} {
		if !testenv.Long() {
			if c.batch == 100 || c.batch == 1000 || c.rate != 0.01 {
				continue
			}
			c.layers, c.queries = 3, 100_000
		}
		t.Run(fmt.Sprintf("FPRate=%v/batch=%d", c.rate, c.batch), func(t *testing.T) {
			measureScalable(t, c.rate, c.batch, c.layers, c.queries)
		})
	}
}

func measureScalable(t *testing.T, rate float64, batch, maxLayers, queries int) {
	m := &layered{t: t}
	c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(m))
	noError(t, err)
	s, err := NewScalable(c, "k", ScalableConfig{Capacity: 1000, FPRate: rate, BatchBytes: 8 << 20})
	noError(t, err)
	n, told := 0, 0
	pos := make([]uint64, 0, maxHashes)
	for layers, capacity := range []int{1000, 5000, 21_000, 85_000, 341_000}[:maxLayers] {
		before := n
		for n < capacity {
			items := make([]string, min(batch, capacity-n))
			for i := range items {
				items[i] = "item-" + strconv.Itoa(n+i)
			}
			n += len(items)
			if batch == 1 {
				isNew, err := s.Add(t.Context(), items[0])
				noError(t, err)
				if !isNew {
					told++
				}
				continue
			}
			isNew, err := s.AddAll(t.Context(), items)
			noError(t, err)
			for _, b := range isNew {
				if !b {
					told++
				}
			}
		}
		for i := before; i < n; i += 1 + n/10_000 {
			if !m.has(s.layers.areas, s.rec.geo, "item-"+strconv.Itoa(i), pos) {
				t.Fatalf("item %d is not found", i)
			}
		}
		found := 0
		for i := range queries {
			if m.has(s.layers.areas, s.rec.geo, "guest-"+strconv.Itoa(i), pos) {
				found++
			}
		}
		got, may := float64(found)/float64(queries), rate*float64(layers+1)/layerShare
		t.Logf("%d items, %d layers: wrong %.3f%% of the time, may %.3f%%; %d new ones were told seen, %.3f%%",
			n, m.get(145, 4), 100*got, 100*may, told, 100*float64(told)/float64(n))
		if got > 1.1*may || float64(told)/float64(n) > 1.1*may {
			t.Errorf("wrong %.3f%% of the time, and %.3f%% of new items seen, want %.3f%% at most", 100*got, 100*float64(told)/float64(n), 110*may)
		}
	}
}
