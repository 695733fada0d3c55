package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upbloom/upbloom/bloom"
)

// A crawler visits each URL once; in doubt it visits a URL twice.
func Example() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	visited, err := bloom.New(client, "crawler:visited", bloom.Config{
		Capacity: 1_000_000, FPRate: 0.01,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, url := range []string{"https://a.example/", "https://b.example/", "https://a.example/"} {
		isNew, err := visited.Add(ctx, url)
		switch {
		case errors.Is(err, bloom.ErrUncertain):
			fmt.Println("fetch", url, "which may have been fetched before")
		case err != nil:
			log.Fatal(err)
		case isNew:
			fmt.Println("fetch", url)
		default:
			fmt.Println("skip", url)
		}
	}
	// Output:
	// fetch https://a.example/
	// fetch https://b.example/
	// skip https://a.example/
}
