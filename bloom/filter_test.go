package bloom_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	srv := upstashtest.NewServer(t)
	c := srv.Client()
	f, err := bloom.New(c, "k", bloom.Config{Capacity: 5000, FPRate: 0.01, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 3; i++ {
		fmt.Println(f.Add(ctx, "a"))
		fmt.Println(srv.Stats())
		srv.ResetStats()
	}
	fmt.Println(f.Exists(ctx, "a"))
	fmt.Println(f.Exists(ctx, "b"))
	items := make([]string, 5000)
	for i := range items {
		items[i] = fmt.Sprint("item", i)
	}
	srv.ResetStats()
	start := time.Now()
	got, err := f.AddAll(ctx, items)
	n := 0
	for _, g := range got {
		if g {
			n++
		}
	}
	fmt.Println(n, err, srv.Stats(), time.Since(start))
	start = time.Now()
	got, err = f.ExistsAll(ctx, items)
	n = 0
	for _, g := range got {
		if g {
			n++
		}
	}
	fmt.Println(n, err, srv.Stats(), time.Since(start))
	st, err := f.Stats(ctx)
	fmt.Println(st, err)
	fmt.Println(f.Cardinality(ctx))
	g, err := bloom.New(c, "k", bloom.Config{Capacity: 1000, FPRate: 0.01, TTL: time.Hour})
	fmt.Println(g.Add(ctx, "x"))
	fmt.Println(g.Add(ctx, "x"))
	fmt.Println(g.Create(ctx))
	o, err := bloom.Open(ctx, c, "k")
	fmt.Println(o, err)
	fmt.Println(o.Exists(ctx, "a"))
	fmt.Println(o.Rename(ctx, "k2"))
	fmt.Println(o.Exists(ctx, "a"))
	fmt.Println(o.Create(ctx))
	fmt.Println(o.Stats(ctx))
	fmt.Println(o.Delete(ctx))
	start = time.Now()
	for i := 0; i < 1000; i++ {
		f.Add(ctx, items[i])
	}
	fmt.Println(time.Since(start) / 1000)
}
