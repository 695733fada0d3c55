package main

import (
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// Limits of the pay-as-you-go plan, from its documents of billing.PricesOf.
const (
	commandsLimit = 10_000 // a second and database
	recordLimit   = 100_000_000
	freeDatabases = 10
	databasePrice = 0.50 // a month, beyond those
	hour          = 3600
)

// simulateScale prints the needs of a Sharded of a billion items, and how
// evenly its shards fill.
func simulateScale(a *arena, o options, r *report) error {
	items := uint64(1e9)
	if o.short() {
		items = 1e6
	}
	if err := r.balance(a, items); err != nil {
		return err
	}
	return r.cost(a, items)
}

// finest is the number of shards in which the items are counted. Shard s of n
// holds those of the finest that begin with it.
const finest = 256

// balance prints how evenly the items fill 2 to 256 shards.
func (r *report) balance(a *arena, items uint64) error {
	counts, err := shardCounts(a, items)
	if err != nil {
		return err
	}
	r.printf("**How evenly %s items fill the shards**: e-mail addresses, one run; a shard is made for the"+
		" mean and 3 times its square root.\n\n"+
		"| shards | mean | room for | fullest | emptiest | beyond its room | false positives in the fullest |\n"+
		"|---|---|---|---|---|---|---|\n", human.Count(items))
	for _, n := range []int{2, 4, 16, 64, finest} {
		least, most, beyond := uint64(math.MaxUint64), uint64(0), 0
		mean := (items + uint64(n) - 1) / uint64(n)
		room := mean + 3*uint64(math.Ceil(math.Sqrt(float64(mean))))
		for shard := range n {
			sum := uint64(0)
			for _, c := range counts[shard*finest/n : (shard+1)*finest/n] {
				sum += c
			}
			if least, most = min(least, sum), max(most, sum); sum > room {
				beyond++
			}
		}
		worst := "no such record"
		if g, err := (bloom.ShardedConfig{Capacity: items, FPRate: rate, Shards: n}).Geometry(); err == nil {
			worst = fmt.Sprintf("%.4f%%", 100*g.FalsePositiveRate(most))
		}
		off := func(x uint64) string { return fmt.Sprintf("%+.4f%%", 100*(float64(x)/float64(mean)-1)) }
		r.printf("| %d | %s | %s | %s | %s | %d of %d | %s |\n", n, human.Count(mean), off(room), off(most),
			off(least), beyond, n, worst)
	}
	r.printf("\n")
	return nil
}

// shardCounts adds no items. It counts to which shard each one would go.
func shardCounts(a *arena, items uint64) (sums [finest]uint64, err error) {
	c, err := a.client(a.url)
	if err != nil {
		return sums, err
	}
	s, err := bloom.NewSharded([]*upstash.Client{c}, "balance", bloom.ShardedConfig{
		Capacity: items, FPRate: rate, Shards: finest,
	})
	if err != nil {
		return sums, err
	}
	const workers = 8
	var counts [workers][finest]uint64
	var wg sync.WaitGroup
	for w := range uint64(workers) {
		wg.Go(func() {
			item := []byte("user-")
			for i := w; i < items; i += workers {
				name := append(strconv.AppendUint(item[:len("user-")], i, 10), "@example.com"...)
				counts[w][s.ShardOf(string(name))]++
			}
		})
	}
	wg.Wait()
	for _, of := range counts {
		for shard, n := range of {
			sums[shard] += n
		}
	}
	return sums, nil
}

// cost prints what the service bills and which limit is reached first.
func (r *report) cost(a *arena, items uint64) error {
	const asked = 100_000 // look-ups or Adds a second
	g, err := bloom.Config{Capacity: items, FPRate: rate}.Geometry()
	stored := 0.0
	if err == nil {
		stored = float64(g.Bytes(bloom.LayoutHeaded))
	} else { // more than one string holds
		half, err := bloom.ShardedConfig{Capacity: items, FPRate: rate, Shards: 16}.Geometry()
		if err != nil {
			return err
		}
		stored = 16 * float64(half.Bytes(bloom.LayoutHeaded))
	}
	shards := 1
	for stored/float64(shards) > recordLimit {
		shards *= 2
	}
	r.printf("**What %s items and %s look-ups or Adds a second take**, at the documented prices and limits of %s (pay as"+
		" you go: $0.20 for 100,000 commands, %s commands a second and database, records of 100 MB).\n\n"+
		"Stored: %.2f GB. One string holds at most 512 MiB and one record 100 MB, so that it takes %d shards or"+
		" more, of %.0f MB each: the first limit that is met.\n\n"+
		"| calls | commands a second | databases | commands a month | bytes an item | GB a month | money a month |\n"+
		"|---|---|---|---|---|---|---|\n",
		human.Count(items), human.Count(asked), billing.PricesOf, human.Count(commandsLimit),
		stored/1e9, shards, stored/float64(shards)/1e6)
	for _, use := range []struct {
		name     string
		commands float64 // a second
		size     int     // items a call
	}{
		{"Exists alone", asked, 1},
		{"nine Exists and one Add (of 3 commands)", asked * (0.9 + 0.1*3), 1},
		{"ExistsAll of 1,000 items", asked / 1000 * float64(shards), 1000},
	} {
		databases := int(math.Ceil(use.commands / commandsLimit))
		month := use.commands * 24 * hour * billing.DaysAMonth
		bytes, err := a.exchanged(shards, items, use.size)
		if err != nil {
			return err
		}
		traffic := asked * bytes * 24 * hour * billing.DaysAMonth / 1e9
		money := billing.Month{Commands: month, StoredGB: stored / 1e9, TrafficGB: traffic}.Money(billing.PayAsYouGo())
		total := money.Total + float64(max(databases-freeDatabases, 0))*databasePrice
		r.printf("| %s | %s | %d | %.3g | %.0f | %s | $%s |\n", use.name, human.Count(uint64(use.commands)), databases,
			month, bytes, human.Count(uint64(traffic)), human.Count(uint64(total)))
	}
	r.printf("\nThe rate of commands decides how many databases there are: the calls must be spread over them" +
		" by shard. Bytes are those of the bodies of a look-up's request and answer. HTTP's headers come on top.\n\n")
	return nil
}

// exchanged returns the bytes of the bodies of a look-up for each of size
// items, in both directions.
func (a *arena) exchanged(shards int, items uint64, size int) (float64, error) {
	t := newTap()
	c, err := a.client(a.url, upstash.WithTransport(t))
	if err != nil {
		return 0, err
	}
	s, err := bloom.NewSharded([]*upstash.Client{c}, a.key("exchanged"), bloom.ShardedConfig{
		Capacity: items, FPRate: rate, Shards: shards,
	})
	if err == nil {
		_, err = s.Create(a.ctx)
	}
	if err == nil {
		_, err = s.ExistsAll(a.ctx, members[:size])
	}
	if err != nil {
		return 0, err
	}
	bytes := float64(len(t.body)+len(t.reply)) / float64(size)
	_, err = s.Delete(a.ctx)
	return bytes, err
}
