package bloomtest

import (
	"log"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Database starts a database in this process, for an Example. With one of your
// own, call upstash.FromEnv.
func Database() (client *upstash.Client, stop func()) {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	client = server.Client(upstash.WithTimeout(time.Minute)) // on a busy machine its scripts take long
	return client, func() { _ = client.Close(); server.Close() }
}
