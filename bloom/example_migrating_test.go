package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// oldFilter stands for the program's own BF.ADD and BF.EXISTS.
type oldFilter map[string]bool

func (f oldFilter) Add(_ context.Context, item string) (bool, error) {
	isNew := !f[item]
	f[item] = true
	return isNew, nil
}

func (f oldFilter) Exists(_ context.Context, item string) (bool, error) { return f[item], nil }

// From RedisBloom: both are written, the old one answers, and the new one is
// watched until it knows as much.
func Example_migrateRedisBloom() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	before := oldFilter{"a": true, "b": true} // there are no items to load from

	after, err := bloom.New(client, "seen", bloom.Config{Capacity: 100_000, FPRate: 0.001})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := after.Create(ctx); err != nil {
		log.Fatal(err)
	}

	// Step 1, dual writes: the old filter decides what is new, and is asked first.
	add := func(item string) (bool, error) {
		isNew, err := before.Add(ctx, item)
		if err != nil {
			return isNew, err
		}
		if _, err := after.Add(ctx, item); err != nil {
			log.Println("the new filter:", err) // it may lack the item: see step 2
		}
		return isNew, nil
	}

	// Shadow reads: the old filter answers, and disagreement is counted.
	var asked, lacks, extra int
	exists := func(item string) (bool, error) {
		was, err := before.Exists(ctx, item)
		if err != nil {
			return false, err
		}
		if is, err := after.Exists(ctx, item); err == nil {
			asked++
			switch {
			case was && !is:
				lacks++ // not moved yet, or a false positive of the old one
			case is && !was:
				extra++ // a false positive of the new one
			}
		}
		return was, nil
	}

	// Step 3: the new filter decides. The old one learns, for processes at step 1.
	addNewFirst := func(item string) (bool, error) {
		isNew, err := after.Add(ctx, item)
		if err != nil {
			return isNew, err
		}
		if _, err := before.Add(ctx, item); err != nil {
			log.Println("the old filter:", err) // a process at step 1 may call it new again
		}
		return isNew, nil
	}

	// If items matter for ever: for those the new one lacks, the old one is asked.
	either := func(item string) (bool, error) {
		if is, err := after.Exists(ctx, item); err != nil || is {
			return is, err
		}
		was, err := before.Exists(ctx, item)
		if err == nil && was {
			_, err = after.Add(ctx, item) // the next time the old one is not asked
		}
		return was, err
	}

	fmt.Println(add("c"))
	for _, item := range []string{"a", "c", "z"} {
		if _, err := exists(item); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("asked", asked, "lacks", lacks, "extra", extra)
	fmt.Println(addNewFirst("d"))
	fmt.Println(add("d")) // a process at step 1 knows it
	fmt.Println(either("a"))
	fmt.Println(after.Exists(ctx, "a"))
	// Output:
	// true <nil>
	// asked 3 lacks 1 extra 0
	// true <nil>
	// false <nil>
	// true <nil>
	// true <nil>
}

// From the article's TypeScript filter: the string is used as it is, and then
// gets a header, without its items.
func Example_migrateTypeScript() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	// The string of the TypeScript program: 9,600 bits, 7 hashes.
	shared, err := bloom.New(client, "bloom:emails", bloom.Config{
		Bits: 9600, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := shared.Add(ctx, "ann@example.com"); err != nil { // or the TypeScript program did
		log.Fatal(err)
	}

	// A copy with a header, at a key of its own.
	own, err := bloom.New(client, "emails", bloom.Config{
		Bits: 9600, Hashes: 7, Scheme: bloom.SchemeFNV1a, TTL: 90 * 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	bits, err := shared.Snapshot(ctx)
	if err != nil {
		log.Fatal(err)
	}
	result, err := own.Merge(ctx, bits) // again, once the last TypeScript writer has stopped
	if err != nil {
		log.Fatal(err)
	}
	found, err := own.Exists(ctx, "ann@example.com")
	fmt.Println(result.Created, found, err)
	// Output: true true <nil>
}

// From SET NX EX: for one lifetime both are written. Then both decide, and then the
// window alone. The keys are gone by themselves.
func Example_migrateSetNX() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	const lifetime = 24 * time.Hour
	seen, err := bloom.NewWindow(client, "seen", bloom.WindowConfig{
		Capacity: 1_000_000, FPRate: 0.001, Span: lifetime,
	})
	if err != nil {
		log.Fatal(err)
	}

	// The old way: one key for each item.
	setNX := func(id string) (isNew bool, err error) {
		reply, err := client.Do(ctx, upstash.Cmd("SET", "seen:"+id, "1", "NX", "EX", "86400"))
		return err == nil && !reply.IsNil(), err
	}

	// Step 1, for 24 hours: the keys decide, and the window learns what is new.
	keysDecide := func(id string) (isNew bool, err error) {
		if isNew, err = setNX(id); err != nil || !isNew {
			return false, err
		}
		if _, err := seen.Add(ctx, id); err != nil {
			log.Println("the window:", err) // it may lack the id: 24 hours more
		}
		return true, nil
	}

	// Step 2: the window decides about ids that have no key.
	bothDecide := func(id string) (isNew bool, err error) {
		if isNew, err = setNX(id); err != nil || !isNew {
			return false, err
		}
		if isNew, err = seen.Add(ctx, id); err != nil {
			log.Println("the window:", err)
			return true, nil // it has its key now, and would never be new again
		}
		return isNew, nil
	}

	fmt.Println(setNX("evt_1")) // before
	fmt.Println(keysDecide("evt_1"))
	fmt.Println(keysDecide("evt_2"))
	fmt.Println(bothDecide("evt_2"))
	fmt.Println(bothDecide("evt_3"))
	fmt.Println(keysDecide("evt_3"))    // a process at step 1 knows it
	fmt.Println(seen.Add(ctx, "evt_3")) // step 3: the window alone
	fmt.Println(seen.Add(ctx, "evt_4"))
	fmt.Println(bothDecide("evt_4")) // a process at step 2 knows it
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
	// false <nil>
	// true <nil>
	// false <nil>
	// false <nil>
	// true <nil>
	// false <nil>
}

// The BF commands, in the order of REDISBLOOM.md.
func Example_redisBloomBF() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, err := bloom.New(client, "bf", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	created, err := f.Create(ctx)
	fmt.Println("RESERVE", created, err)
	isNew, err := f.Add(ctx, "a")
	fmt.Println("ADD", isNew, err)
	areNew, err := f.AddAll(ctx, []string{"a", "b"})
	fmt.Println("MADD", areNew, err)
	found, err := f.Exists(ctx, "a")
	fmt.Println("EXISTS", found, err)
	areIn, err := f.ExistsAll(ctx, []string{"b", "c"})
	fmt.Println("MEXISTS", areIn, err)
	n, err := f.Cardinality(ctx)
	fmt.Println("CARD", n, err)
	stats, err := f.Stats(ctx)
	fmt.Println("INFO", stats.Items, "of", stats.Capacity, err)

	var file bytes.Buffer
	backup, err := bloom.TakeBackup(ctx, client, "bf")
	if err != nil {
		log.Fatal(err)
	}
	_, err = backup.WriteTo(&file)
	fmt.Println("SCANDUMP", file.Len() > 0, err)
	saved, err := bloom.ReadBackup(&file)
	if err != nil {
		log.Fatal(err)
	}
	result, err := saved.Restore(ctx, client, "copy", 0)
	fmt.Println("LOADCHUNK", result.Created, err)
	is, err := f.Expire(ctx, time.Hour)
	fmt.Println("EXPIRE", is, err)
	was, err := f.Delete(ctx)
	fmt.Println("DEL", was, err)
	// Output:
	// RESERVE true <nil>
	// ADD true <nil>
	// MADD [false true] <nil>
	// EXISTS true <nil>
	// MEXISTS [true false] <nil>
	// CARD 2 <nil>
	// INFO 2 of 1000 <nil>
	// SCANDUMP true <nil>
	// LOADCHUNK true <nil>
	// EXPIRE true <nil>
	// DEL true <nil>
}

// BF.INSERT with and without NOCREATE, and BF.RESERVE with EXPANSION.
func Example_redisBloomInsert() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, err := bloom.New(client, "bf", bloom.Config{Capacity: 1000, FPRate: 0.01, MustExist: true})
	if err != nil {
		log.Fatal(err)
	}
	_, err = f.AddAll(ctx, []string{"a", "b"})
	fmt.Println("NOCREATE", errors.Is(err, bloom.ErrNotFound))

	s, err := bloom.NewScalable(client, "grows", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	areNew, err := s.AddAll(ctx, []string{"a", "b"})
	fmt.Println("INSERT", areNew, err)
	// Output:
	// NOCREATE true
	// INSERT [true true] <nil>
}

// The CF commands.
func Example_redisBloomCF() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	c, err := bloom.NewCuckoo(client, "cf", bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	created, err := c.Create(ctx)
	fmt.Println("RESERVE", created, err)
	isNew, err := c.Add(ctx, "a")
	fmt.Println("ADD", isNew, err)
	areNew, err := c.AddAll(ctx, []string{"a", "b"})
	fmt.Println("INSERT", areNew, err)
	removed, err := c.Remove(ctx, "a")
	fmt.Println("DEL", removed, err)
	found, err := c.Exists(ctx, "a")
	fmt.Println("EXISTS", found, err)
	areIn, err := c.ExistsAll(ctx, []string{"b", "c"})
	fmt.Println("MEXISTS", areIn, err)
	stats, err := c.Stats(ctx)
	fmt.Println("INFO", stats.Items, stats.Damaged, err)
	// Output:
	// RESERVE true <nil>
	// ADD true <nil>
	// INSERT [false true] <nil>
	// DEL true <nil>
	// EXISTS true <nil>
	// MEXISTS [true false] <nil>
	// INFO 2 false <nil>
}

// TestRedisBloomTable holds REDISBLOOM.md to the Examples above: every code of
// its tables stands in them, and every command has a row, with code or with the
// words that it is not offered.
func TestRedisBloomTable(t *testing.T) {
	page, err := os.ReadFile("REDISBLOOM.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_migrating_test.go")
	if err != nil {
		t.Fatal(err)
	}
	examples, _, _ := strings.Cut(string(source), "// TestRedisBloomTable")
	rows := map[string]string{}
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for _, command := range regexp.MustCompile(`(BF|CF)\.[A-Z]+`).FindAllString(cells[1], -1) {
			rows[command] = cells[2]
		}
		code := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1)
		if len(code) == 0 && !strings.Contains(cells[2], "not offered") {
			t.Errorf("no code: %s", line)
		}
		for _, c := range code {
			if !strings.Contains(examples, c[1]) {
				t.Errorf("no Example has %s", c[1])
			}
		}
	}
	for _, command := range strings.Fields("BF.RESERVE BF.ADD BF.MADD BF.EXISTS BF.MEXISTS " +
		"BF.CARD BF.INFO BF.INSERT BF.SCANDUMP BF.LOADCHUNK CF.RESERVE CF.ADD CF.ADDNX CF.INSERT " +
		"CF.INSERTNX CF.DEL CF.COUNT CF.EXISTS CF.MEXISTS CF.INFO CF.SCANDUMP CF.LOADCHUNK") {
		if rows[command] == "" {
			t.Errorf("%s has no row", command)
		}
	}
}
