//go:build !race

package systemtest

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// heapMeter answers every request of a batch, and now and then measures the
// heap.
type heapMeter struct {
	header string

	mu       sync.Mutex
	requests int
	most     uint64
}

func (m *heapMeter) RoundTrip(_ context.Context, req *upstash.Request, resp *upstash.Response) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests++; m.requests%100 == 50 {
		m.most = max(m.most, heap())
	}
	resp.StatusCode = 200
	resp.Body = append(resp.Body, `{"result":[`...)
	if bytes.Contains(req.Body, []byte("INCRBY")) {
		resp.Body = append(resp.Body, "null,"+m.header+",null,4503599627370497"...)
		resp.Body = append(resp.Body, strings.Repeat(",0", bytes.Count(req.Body, []byte(`"SET"`)))...)
	} else {
		resp.Body = append(resp.Body, m.header...)
		resp.Body = append(resp.Body, strings.Repeat(",0", bytes.Count(req.Body, []byte(`"GET"`))-1)...)
	}
	resp.Body = append(resp.Body, "]}"...)
	return nil
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Besides the items and the requests under way, a batch of any length needs two
// bytes an item.
func TestBatchMemoryIsBounded(t *testing.T) {
	items := 200_000
	if testenv.Long() {
		items = 400_000
	}
	many := bloomtest.Numbered("item", items)
	cfg := bloomtest.Sparse()
	for name, call := range map[string]func(*bloom.Filter, context.Context, []string) ([]bool, error){
		"AddAll": (*bloom.Filter).AddAll, "ExistsAll": (*bloom.Filter).ExistsAll,
	} {
		m := &heapMeter{header: bloomtest.HeaderWordOf(cfg)}
		c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(m))
		bloomtest.NoError(t, err)
		before := heap()
		got, err := call(bloomtest.Batched(bloomtest.Handle(t, c, cfg), 64<<10, 0), t.Context(), many)
		if err != nil || len(got) != items {
			t.Fatalf("%s: %d answers, want %d: %v", name, len(got), items, err)
		}
		const underWay = 8 << 20
		if m.most == 0 || m.most > before+uint64(2*items+underWay) {
			t.Errorf("%s: %d requests, the heap grew by %d bytes, want at most %d",
				name, m.requests, int64(m.most-before), 2*items+underWay)
		}
		t.Logf("%s: %d requests, the heap grew by %d bytes", name, m.requests, int64(m.most)-int64(before))
	}
}
