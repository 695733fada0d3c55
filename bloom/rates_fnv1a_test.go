//go:build !race

package bloom

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

func looksRandom(i int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(i)))
	return hex.EncodeToString(sum[:12])
}

// SchemeFNV1a documents its price, which depends on the number of bits. It must
// not have false negatives. How bad the hash is depends on the items.
func TestMeasuredRatesFNV1a(t *testing.T) {
	for _, c := range []struct {
		item        func(i int) string
		bits        uint64
		items       int
		least, most float64 // times the formula's rate
		low         float64 // times the live rate, at least
	}{
		{looksRandom, 9600, 1000, 3.5, 6, 5},
		{looksRandom, 9600, 500, 8, 16, 8},
		{looksRandom, 10240, 509, 8, 16, 8},
		{looksRandom, 9601, 1000, 0.9, 1.2, 0.9}, // a prime
		{strconv.Itoa, 9600, 1000, 1.2, 1.5, 3},
		{strconv.Itoa, 9600, 500, 2, 3, 5},
	} {
		l := NewLocal(Geometry{Bits: c.bits, Hashes: 7, Scheme: SchemeFNV1a})
		for i := range c.items {
			l.Add(c.item(i))
		}
		for i := range c.items {
			if !l.Exists(c.item(i)) {
				t.Errorf("%v: a false negative", l.Geometry())
			}
		}
		found := 0
		const asked = 400_000
		for i := range asked {
			if l.Exists(c.item(-1 - i)) {
				found++
			}
		}
		rate, live := float64(found)/asked, l.Stats().LiveFPRate
		times := rate / l.Geometry().FalsePositiveRate(uint64(c.items))
		t.Logf("%v, %d items: %.2f times the formula's rate, %.2f times the live one", l.Geometry(), c.items, times, rate/live)
		if times < c.least || times > c.most || rate < c.low*live || rate > 23*live {
			t.Errorf("%v, %d items: %.2f times the formula's rate, want %v to %v; %.2f times the live one, want %v to 23",
				l.Geometry(), c.items, times, c.least, c.most, rate/live, c.low)
		}
	}
	at := Stats{Geometry: Geometry{Bits: 9600, Hashes: 7, Scheme: SchemeFNV1a}, LiveFPRate: 0.01, Items: 789}
	for _, want := range []string{"at least 1 in 100 now", "about 789 or more\n"} {
		if text := at.String(); !strings.Contains(text, want) {
			t.Errorf("%q is missing where the numbers are too low:\n%s", want, text)
		}
	}
}

// fnvBounds are the factors in the doc of SchemeFNV1a, for the rates there: how
// many times the formula's and the live rate the rate is at most.
var fnvBounds = []struct {
	of            string // the number of bits
	formula, live [4]float64
}{
	{"odd", [4]float64{1.1, 1.1, 1.3, 2}, [4]float64{1.7, 1.5, 1.6, 3.5}},
	{"even", [4]float64{1.3, 3, 8, 15}, [4]float64{1.7, 4, 15, 35}},
	{"a multiple of 4", [4]float64{1.7, 6, 25, 65}, [4]float64{2.2, 11, 80, 200}},
}

// The factors hold for sizes and items of many kinds, and are no larger than
// they must be. So do the doc's words on estimates. The items are fixed, and so
// is the outcome.
func TestBoundsOfFNV1a(t *testing.T) {
	source, err := os.ReadFile("scheme.go")
	if err != nil {
		t.Fatal(err)
	}
	const asked = 300_000
	capacities := []int{1000, 1139} // the second leads to 2^14 bits
	if testenv.Long() {
		capacities = append(capacities, 2000, 10_000, 13_674) // and to 2^17
	}
	var most [3][4][2]float64
	for name, item := range map[string]func(i int) string{
		"random": looksRandom, "decimal": strconv.Itoa,
		"padded": func(i int) string { return fmt.Sprintf("%08d", i) },
		"e-mail": func(i int) string { return fmt.Sprintf("user%d@example.com", i) },
	} {
		items := make([]string, asked+capacities[len(capacities)-1])
		for i := range items {
			items[i] = item(i)
		}
		for _, n := range capacities {
			for col, p := range []float64{0.1, 0.01, 0.001, 0.0001} {
				m := OptimalBits(uint64(n), p)
				up := func(to uint64) uint64 { return (m + to - 1) / to * to }
				for _, size := range []uint64{m | 1, up(210) + 105, up(4) + 2, up(8) + 4, up(32), up(1024)} {
					row := min(bits.TrailingZeros64(size), 2)
					g := Geometry{Bits: size, Hashes: OptimalHashes(m, uint64(n)), Scheme: SchemeFNV1a}
					formula, live, estimate := fnvFactors(g, items[:n], items[n:n+asked])
					for i, times := range []float64{formula, live} {
						most[row][col][i] = max(most[row][col][i], times)
					}
					if formula > fnvBounds[row].formula[col] || live > fnvBounds[row].live[col] ||
						estimate < 0.6 || estimate > 1.05 || row == 0 && name == "random" && estimate < 0.95 {
						t.Errorf("%v, %s items: %.2f times the formula's rate, %.2f times the live one, %.2f times"+
							" the items", g, name, formula, live, estimate)
					}
				}
			}
		}
	}
	for row, b := range fnvBounds {
		line := fmt.Sprintf("\t//\t%-18s", b.of)
		for col := range 4 {
			got := most[row][col]
			line += fmt.Sprintf(" %-11s", fmt.Sprintf("%v, %v", b.formula[col], b.live[col]))
			t.Logf("%s, column %d: up to %.2f and %.2f times", b.of, col, got[0], got[1])
			if got[0] < 0.6*b.formula[col] || got[1] < 0.6*b.live[col] {
				t.Errorf("%s, column %d: the rate is up to %.2f and %.2f times the others, and the doc says %v and %v",
					b.of, col, got[0], got[1], b.formula[col], b.live[col])
			}
		}
		if line = strings.TrimRight(line, " "); !strings.Contains(string(source), line+"\n") {
			t.Errorf("the doc has no line %q", line)
		}
	}
}

// fnvFactors adds the items in and asks for those out. It returns how many times
// the formula's and the live rate the measured one is, and the estimate how many
// times the number of items.
func fnvFactors(g Geometry, in, out []string) (formula, live, estimate float64) {
	l := NewLocal(g)
	for _, item := range in {
		l.Add(item)
	}
	found := 0
	for _, item := range out {
		if l.Exists(item) {
			found++
		}
	}
	rate := float64(found) / float64(len(out))
	s := l.Stats()
	return rate / g.FalsePositiveRate(uint64(len(in))), rate / s.LiveFPRate, float64(s.Items) / float64(len(in))
}
