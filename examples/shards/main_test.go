package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	_ "github.com/upbloom/upbloom/internal/testkit/testenv" // its clients are patient
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestEveryPageIsFetchedOnce(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	var up, down, back, waiting, left int
	_, err := fmt.Sscanf(out.String(),
		"both are up: %d pages to fetch, 0 wait\none is down: %d pages to fetch, %d wait\nit is back: %d pages to fetch, %d wait\n",
		&up, &down, &waiting, &back, &left)
	if err != nil || up != 1000 || down == 0 || back == 0 || down+back != 500 || waiting < 400 || left != 0 {
		t.Errorf("%v, want 1,000, then 500 in two parts, 400 or more that wait, and none left:\n%s", err, &out)
	}
}

// A page whose answer was lost is fetched, possibly twice.
func TestAPageIsNotForgotten(t *testing.T) {
	s := upstashtest.NewServer(t)
	pages, err := bloom.NewSharded([]*upstash.Client{s.Client(upstash.WithRetry(0))}, "pages",
		bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pages.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := &queue{pages: pages}
	s.Inject(upstashtest.Fault{}, upstashtest.Drop(upstashtest.AfterExec)) // the answer to AddAll
	if err := q.offer(t.Context(), []string{"https://example.com/"}); err != nil || q.fetched != 1 || len(q.later) != 1 {
		t.Errorf("%v, %d fetched, %d wait, want 1 and 1", err, q.fetched, len(q.later))
	}
	if err := q.offer(t.Context(), nil); err != nil || q.fetched != 1 || len(q.later) != 0 {
		t.Errorf("%v, %d fetched, %d wait, want 1 and 0", err, q.fetched, len(q.later))
	}
}
