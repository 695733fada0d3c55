package bloom_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// A scalable filter expires and is renamed and deleted as a plain one.
func ExampleScalable_Rename() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	f, err := bloom.NewScalable(client, "urls", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, "/a"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Expire(ctx, time.Hour))
	fmt.Println(f.Persist(ctx)) // it had a TTL

	fmt.Println(f.Rename(ctx, "urls:old"))
	old, err := bloom.OpenScalable(ctx, client, "urls:old")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(old.Delete(ctx))
	// Output:
	// true <nil>
	// true <nil>
	// <nil>
	// true <nil>
}

func ExampleCuckoo_Rename() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	cfg := bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01}
	g, err := cfg.Geometry() // without a request
	if err != nil {
		log.Fatal(err)
	}
	f, err := bloom.NewCuckoo(client, "names", cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, "alice"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Rename(ctx, "names:old"))
	old, err := bloom.OpenCuckoo(ctx, client, "names:old")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(old.Geometry() == g)
	fmt.Println(old.Delete(ctx))
	// Output:
	// <nil>
	// true
	// true <nil>
}

func ExampleWindow_Rename() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	cfg := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour}
	pane, err := cfg.Geometry() // without a request
	if err != nil {
		log.Fatal(err)
	}
	w, err := bloom.NewWindow(client, "seen", cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Add(ctx, "a"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Rename(ctx, "seen:old"))
	old, err := bloom.OpenWindow(ctx, client, "seen:old")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(old.Geometry() == pane)
	fmt.Println(old.Exists(ctx, "a"))
	// Output:
	// <nil>
	// true
	// true <nil>
}

// A sharded filter is loaded shard by shard: only one is in memory.
func ExampleSharded_LoadShard() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	cfg := bloom.ShardedConfig{Capacity: 10_000, FPRate: 0.01, Shards: 4}
	shard, err := cfg.Geometry() // without a request
	if err != nil {
		log.Fatal(err)
	}
	f, err := bloom.NewSharded([]*upstash.Client{client}, "pages", cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Create(ctx); err != nil {
		log.Fatal(err)
	}
	pages := []string{"/a", "/b", "/c", "/d", "/e"}
	var loaded uint64
	for i := range cfg.Shards {
		result, err := f.LoadShard(ctx, i, slices.Values(pages))
		if err != nil {
			log.Fatal(err)
		}
		loaded += result.Items
	}
	fmt.Println(f.Geometry() == shard, loaded)
	isNew, err := f.Add(ctx, "/f")
	fmt.Println("new:", isNew, err)
	fmt.Println(f.Cardinality(ctx))
	fmt.Println("in a shard:", f.ShardOf("/f") >= 0 && f.ShardOf("/f") < cfg.Shards)
	fmt.Println(f.Delete(ctx))
	// Output:
	// true 5
	// new: true <nil>
	// 6 <nil>
	// in a shard: true
	// true <nil>
}

// A filter in memory is copied, and kept in any store of bytes.
func ExampleLocal_MarshalBinary() {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01}
	g, err := cfg.Geometry()
	if err != nil {
		log.Fatal(err)
	}
	l := bloom.NewLocal(g)
	l.Add("a")
	before := l.Clone()
	l.Add("b")

	data, err := l.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	var back, again bloom.Local // of any geometry, without a seed
	if err := back.UnmarshalBinary(data); err != nil {
		log.Fatal(err)
	}
	if _, err := again.ReadFrom(bytes.NewReader(data)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(before.Exists("b"), back.Exists("b"), bytes.Equal(again.Bytes(), l.Bytes()))
	// Output: false true true
}

// A batch through a Mirror asks only for what its copy cannot prove.
func ExampleMirror_ExistsAll() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	f, err := bloom.New(client, "names", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.AddAll(ctx, []string{"ann", "bob", "ann"}))
	fmt.Println(m.ExistsAll(ctx, []string{"ann", "zoe"}))
	// Output:
	// [true true false] <nil>
	// [true false] <nil>
}
