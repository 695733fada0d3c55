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
)

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
	err = f.Save(ctx, &file)
	fmt.Println("SCANDUMP", file.Len() > 0, err)
	loaded, err := bloom.New(client, "copy", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	result, err := loaded.Restore(ctx, &file)
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
	source, err := os.ReadFile("example_redisbloom_test.go")
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
