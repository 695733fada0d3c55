//go:build !wasm && !race

package upstash

import (
	"context"
	"testing"
	"time"
)

// TestAllocationsOfAnExchange counts the allocations of a whole call over a
// socket: those its reply keeps, and two to watch a context that can end.
func TestAllocationsOfAnExchange(t *testing.T) {
	c, err := New(memoryServer(t), testToken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	cmd := buildAdd(NewBitField("k"), "k", 1<<52)
	for name, tt := range map[string]struct {
		ctx  context.Context
		want float64
	}{
		"no deadline": {context.Background(), 1},
		"a deadline":  {ctx, 3},
	} {
		n := testing.AllocsPerRun(200, func() {
			if _, err := c.Do(tt.ctx, cmd); err != nil {
				t.Error(err)
			}
		})
		if n > tt.want {
			t.Errorf("%s: %v allocations, want at most %v", name, n, tt.want)
		}
	}
}
