//go:build !race

// The race detector would need minutes for a million Adds, and nothing here runs
// concurrently.

package bloom

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// layered is a server in memory. It knows the commands of a Scalable's Adds: a
// BITFIELD, and the scripts that make the filter and let it grow.
type layered struct {
	t    *testing.T
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
	body := string(bytes.TrimSuffix(bytes.TrimPrefix(req.Body, []byte("[")), []byte("]")))
	if strings.HasPrefix(body, `"EVAL"`) { // the text of a script holds commas
		_, after, _ := strings.Cut(body[len(`"EVAL","`):], `","1","`)
		script := "make"
		if strings.Contains(body, "limit") {
			script = "grow"
		}
		body = `"` + script + `","","1","` + after
	}
	args := strings.Split(strings.ReplaceAll(body, `"`, ""), ",")
	resp.StatusCode = 200
	m.out = append(m.out[:0], `{"result":[`...)
	switch args[0] {
	case "BITFIELD":
		m.bitfield(args[2:])
	case "grow", "make", "EVALSHA":
		m.script(args[4:])
	default:
		m.t.Fatalf("command %s", args[0])
	}
	resp.Body = append(resp.Body, append(m.out[:len(m.out)-1], `]}`...)...)
	return nil
}

func (m *layered) answer(v uint64) { m.out = append(strconv.AppendUint(m.out, v, 10), ',') }

func (m *layered) bitfield(ops []string) {
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(ops[i], 10, 64)
		if err != nil {
			m.t.Fatal(err)
		}
		return n
	}
	for len(ops) > 0 {
		switch ops[0] {
		case "OVERFLOW":
			ops = ops[2:]
			continue
		case "INCRBY": // sets the word if it is zero
			if m.get(number(2), 53) == 0 {
				m.set(number(2), 53, number(3))
				m.answer(number(3))
			} else {
				m.out = append(m.out, "null,"...)
			}
			ops = ops[4:]
		case "GET":
			width, _ := strconv.Atoi(ops[1][1:])
			m.answer(m.get(number(2), width))
			ops = ops[3:]
		case "SET":
			m.answer(m.get(number(2), 1))
			m.set(number(2), 1, number(3))
			ops = ops[4:]
		default:
			m.t.Fatalf("operation %s", ops[0])
		}
	}
}

// script does what createScript does if there is no filter, and else
// growScript.
func (m *layered) script(args []string) {
	n := make([]int64, len(args)+1)
	for i, a := range args {
		n[i+1], _ = strconv.ParseInt(a, 10, 64)
	}
	header := m.get(0, 53)
	if header == 0 && len(args) != 5 {
		m.answer(0)
		return
	}
	if header == 0 {
		for at, v := range map[uint64]int64{0: n[1], 64: n[2], 128: n[5]} {
			m.set(at, 53, uint64(v))
		}
		m.answer(uint64(n[1]))
		m.answer(uint64(n[2]))
		m.answer(uint64(n[5]))
		return
	}
	newest := int64(m.get(129, 4))
	for newest < n[2] {
		first, last, most := n[3*newest], n[3*newest+1], n[3*newest+2]
		if most >= 0 && m.count(first, last) <= most {
			break
		}
		newest++
	}
	m.set(129, 4, uint64(newest))
	m.answer(header)
	m.answer(uint64(newest))
}

func (m *layered) count(first, last int64) (ones int64) {
	for i := first; i <= last && i < int64(len(m.data)); i++ {
		ones += int64(bits.OnesCount8(m.data[i]))
	}
	return ones
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
	old := lots.Float64
	t.Cleanup(func() { SetLot(old) })
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
			SetLot(rand.New(rand.NewPCG(1, uint64(c.batch))).Float64)
			measureScalable(t, c.rate, c.batch, c.layers, c.queries)
		})
	}
}

func measureScalable(t *testing.T, rate float64, batch, maxLayers, queries int) {
	m := &layered{t: t}
	c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(m))
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewScalable(c, "k", ScalableConfig{Capacity: 1000, FPRate: rate, BatchBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
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
				if err != nil {
					t.Fatal(err)
				}
				if !isNew {
					told++
				}
				continue
			}
			isNew, err := s.AddAll(t.Context(), items)
			if err != nil {
				t.Fatal(err)
			}
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
			n, m.get(129, 4), 100*got, 100*may, told, 100*float64(told)/float64(n))
		if got > 1.1*may || float64(told)/float64(n) > 1.1*may {
			t.Errorf("wrong %.3f%% of the time, and %.3f%% of new items seen, want %.3f%% at most", 100*got, 100*float64(told)/float64(n), 110*may)
		}
	}
}
