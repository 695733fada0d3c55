package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// No page is fetched twice, few are lost to false positives, and the filter
// grows on the way.
func TestEveryPageIsFetchedOnce(t *testing.T) {
	const pages = 3000
	var out bytes.Buffer
	c := &crawler{client: upstashtest.NewServer(t).Client(), out: &out}
	links := web(pages)
	fetched := map[string]int{}
	c.fetch = func(url string) []string {
		fetched[url]++
		return links(url)
	}
	if err := c.useFilter("crawler:visited", 1000); err != nil {
		t.Fatal(err)
	}
	if err := c.crawl(t.Context(), page(0)); err != nil {
		t.Fatal(err)
	}
	for url, n := range fetched {
		if n != 1 {
			t.Errorf("%s was fetched %d times", url, n)
		}
	}
	// A false positive costs the page and all pages that only it links to.
	if len(fetched) < pages*9/10 {
		t.Errorf("%d of %d pages were fetched", len(fetched), pages)
	}
	if !strings.Contains(out.String(), "a filter for") {
		t.Errorf("the filter did not grow: %q", &out)
	}
	keys, err := bloom.Inspect(t.Context(), c.client, "crawler:visited")
	if err == nil {
		t.Errorf("the small filter is still there: %v", keys)
	}
	found, err := c.seen.ExistsAll(t.Context(), c.visited)
	if err != nil || slices.Contains(found, false) {
		t.Errorf("the large filter has forgotten a page: %v", err)
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	err := run(context.Background(), &out, 100)
	if err != nil || !strings.Contains(out.String(), "100 of 100 pages") {
		t.Errorf("%q, %v", &out, err)
	}
}
