package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// database starts a database in this process. With one of your own, call upstash.FromEnv.
func database() (client *upstash.Client, stop func()) {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	client = server.Client()
	return client, func() { _ = client.Close(); server.Close() }
}

// A webhook is delivered at least once; handle it once.
func Example() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	seen, err := bloom.New(client, "seen:webhooks", bloom.Config{
		Capacity: 100_000, FPRate: 0.001, TTL: 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"evt_1", "evt_2", "evt_1"} {
		added, err := seen.Add(ctx, id)
		switch {
		case errors.Is(err, bloom.ErrUncertain):
			fmt.Println(id, "may have been handled: look it up in the database")
		case err != nil:
			log.Fatal(err)
		case added:
			fmt.Println(id, "is new")
		default:
			fmt.Println(id, "was seen before")
		}
	}
	// Output:
	// evt_1 is new
	// evt_2 is new
	// evt_1 was seen before
}
