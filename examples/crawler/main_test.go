package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	_ "github.com/upbloom/upbloom/internal/testkit/testenv" // its clients are patient
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// No page is fetched twice, few are lost to false positives, and the filter
// grows on the way.
func TestEveryPageIsFetchedOnce(t *testing.T) {
	const pages = 1200
	seen, err := newSeen(upstashtest.NewServer(t).Client(), 0)
	if err != nil {
		t.Fatal(err)
	}
	links := web(pages)
	fetched := map[string]int{}
	c := &crawler{seen: seen, fetch: func(url string) []string {
		fetched[url]++
		return links(url)
	}, full: func(st bloom.Stats) {
		t.Errorf("the filter says that it is full: %v, want it to grow", st)
	}}
	if err := c.crawl(t.Context(), page(0)); err != nil {
		t.Fatal(err)
	}
	for url, n := range fetched {
		if n != 1 {
			t.Errorf("%s was fetched %d times, want once", url, n)
		}
	}
	// A false positive costs the page and all pages linked from it alone.
	if len(fetched) < pages*9/10 {
		t.Errorf("%d of %d pages were fetched, want nine in ten", len(fetched), pages)
	}
	st, err := seen.Stats(t.Context())
	if err != nil || len(st.Parts) < 2 {
		t.Errorf("Stats: %v, %v, want two layers or more", st, err)
	}
	found, err := seen.ExistsAll(t.Context(), slices.Collect(maps.Keys(fetched)))
	if err != nil || slices.Contains(found, false) {
		t.Errorf("ExistsAll of the fetched pages: one is missing, %v, want all", err)
	}
}

// TestFullIsNoticed crawls with a filter that may not grow.
func TestFullIsNoticed(t *testing.T) {
	seen, err := bloom.NewScalable(upstashtest.NewServer(t).Client(), "small",
		bloom.ScalableConfig{Capacity: 1000, FPRate: 0.001, MissingIsEmpty: true, MaxBytes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	full := 0
	c := &crawler{seen: seen, fetch: web(3000), full: func(bloom.Stats) { full++ }}
	if err := c.crawl(t.Context(), page(0)); err != nil || full == 0 {
		t.Errorf("a crawl of 3,000 pages, with room for 1,000: told %d times that it is full, %v", full, err)
	}
}

// TestLookFirst is the order of the command's doc. Work that fails is done when
// its item comes again.
func TestLookFirst(t *testing.T) {
	ctx, works, fails := t.Context(), 0, true
	handle := func(string) error {
		works++
		if fails {
			return errors.New("no room on the disk")
		}
		return nil
	}
	done, err := bloom.NewScalable(upstashtest.NewServer(t).Client(), "done",
		bloom.ScalableConfig{Capacity: 1000, FPRate: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	visit := func(id string) error {
		_, err := done.Create(ctx)
		if err != nil {
			return err
		}
		seen, err := done.Exists(ctx, id)
		if err != nil || seen {
			return err
		}
		err = handle(id)
		if err != nil {
			return err
		}
		_, err = done.Add(ctx, id)
		return err
	}
	if err := visit("page"); err == nil || works != 1 {
		t.Errorf("visit: %v after %d works, want the error of the first", err, works)
	}
	fails = false
	for range 2 {
		if err := visit("page"); err != nil || works != 2 {
			t.Errorf("visit: %v after %d works, want the second to be the last", err, works)
		}
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	err := run(context.Background(), &out, 100)
	if err != nil || !strings.Contains(out.String(), "100 of 100 pages") {
		t.Errorf("run printed %q, %v, want \"100 of 100 pages\"", &out, err)
	}
}
