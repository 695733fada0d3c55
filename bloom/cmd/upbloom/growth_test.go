package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
)

// calc says to how many layers a filter grows, and to how many if layers are
// left early. A server has no more.
func TestCalcOfLayersLeftEarly(t *testing.T) {
	const items = 21_000 // three layers are for so many
	sh := newShell(t)
	for _, c := range []struct {
		batch  int
		opened bool
		most   int // of layers
	}{
		{1, false, 4}, {1, true, 4}, {700, false, 4}, {700, true, 4}, {6000, false, 4},
	} {
		name := fmt.Sprintf("batch %d, opened %v", c.batch, c.opened)
		key := strings.ReplaceAll(name, " ", "-")
		s, err := bloom.NewScalable(sh.s.Client(), key, bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
		if err == nil {
			_, err = s.Create(t.Context())
		}
		if err == nil && c.opened {
			s, err = bloom.OpenScalable(t.Context(), sh.s.Client(), key)
		}
		if err != nil {
			t.Fatal(err)
		}
		for batch := range slices.Chunk(strings.Fields(numbered("a", items)), c.batch) {
			if _, err := s.AddAll(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		stats, err := s.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Month month }
		args := []string{"calc", "-n", "1k", "--scalable", "--monthly", "--adds", fmt.Sprint(items), "--batch", fmt.Sprint(c.batch)}
		if err := decodeSome(sh.want(0, "", "", append([]string{"--json"}, args...)...), &p); err != nil {
			t.Fatal(err)
		}
		if n := len(stats.Layers); p.Month.Layers != 3 || p.Month.LayersAtMost != c.most || n > c.most ||
			(c.opened || c.batch > 1) && n != c.most {
			t.Errorf("%s: %d layers, and calc says %d, or %d", name, n, p.Month.Layers, p.Month.LayersAtMost)
		}
		if c.opened || c.batch > 1 {
			if want := float64(stats.Bytes) / 1e9; p.Month.StoredAtMost != want {
				t.Errorf("%s: %v GB, and calc says %v", name, want, p.Month.StoredAtMost)
			}
		}
		says := "or to 4 layers and 0.000148 GB: upbloom add"
		if c.batch > 1 {
			says = "or to 4 layers and 0.000148 GB: large AddAlls, upbloom add"
		}
		sh.want(0, says, "", args...)
	}
	sh.want(0, "to 3 layers; it is stored so\n  not in it ", "", "calc", "-n", "1k", "--scalable", "--monthly", "--adds", "15k")
}
