package upstashtest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// faketest.Run lends this Example a testing.TB. A test has its t.

func ExampleReplay() {
	faketest.Run(func(t testing.TB) {
		client := upstashtest.Replay(t, "testdata/webhooks.json")
		ctx := context.Background()

		_, err := client.Del(ctx, "seen:webhooks")
		if err != nil {
			t.Fatalf("emptying: %v", err)
		}
		handler, err := newWebhookHandler(client, func(id string) { fmt.Println("acting on", id) })
		if err != nil {
			t.Fatalf("making the handler: %v", err)
		}
		n, err := handler.Handle(ctx, webhookEvent{[]string{"evt_1", "evt_2"}})
		fmt.Println(n, err)
		n, err = handler.Handle(ctx, webhookEvent{[]string{"evt_2", "evt_3"}})
		fmt.Println(n, err)
	})
	// Output:
	// acting on evt_1
	// acting on evt_2
	// 2 <nil>
	// acting on evt_3
	// 1 <nil>
}

// A request fails the test if it was not recorded. So does a recorded request
// that is never made.
func ExampleReplay_difference() {
	test := faketest.Run(func(t testing.TB) {
		client := upstashtest.Replay(t, "testdata/counter.json")
		_, err := client.Do(context.Background(), upstash.Cmd("EXPIRE", "visits", "3600", "NX"))
		fmt.Println("the caller gets:", err)
	})
	test.Print(os.Stdout)
	// Output:
	// the caller gets: upstash: EXPIRE: ERR not in the recording: see the test's log (HTTP status 400)
	// upstashtest: testdata/counter.json: request 1 is not in the recording; the closest left is number 2:
	//     EXPIRE, argument 2
	//     want: "EXPIRE","visits","60","NX"
	//     got:  "EXPIRE","visits","3600","NX"
	//                             ^
	//     made by upstash.Client.Do at recording_example_test.go:47
	// upstashtest: testdata/counter.json: 2 of 2 recorded requests were never made, first number 1:
	//     POST /: "INCR","visits"
}

// A recording of the embedded server can be made anywhere. To record a live
// database, pass its URL and token.
func ExampleRecord() {
	dir, err := os.MkdirTemp("", "recordings")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := dir + "/counter.json"

	faketest.Run(func(t testing.TB) {
		server, err := upstashtest.Start()
		if err != nil {
			t.Fatalf("starting a server: %v", err)
		}
		t.Cleanup(server.Close)
		client := upstashtest.Record(t, file, server.URL, server.Token)
		ctx := context.Background()
		_, err = client.Do(ctx, upstash.Cmd("INCR", "visits"))
		fmt.Println(err)
		_, err = client.Do(ctx, upstash.Cmd("EXPIRE", "visits", "60", "NX"))
		fmt.Println(err)
	})
	data, err := os.ReadFile(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(data))
	// Output:
	// <nil>
	// <nil>
	// {
	//   "version": 1,
	//   "exchanges": [
	//     {
	//       "request": {
	//         "method": "POST",
	//         "path": "/",
	//         "body": ["INCR","visits"]
	//       },
	//       "response": {
	//         "status": 200,
	//         "contentType": "application/json",
	//         "body": {"result":1}
	//       }
	//     },
	//     {
	//       "request": {
	//         "method": "POST",
	//         "path": "/",
	//         "body": ["EXPIRE","visits","60","NX"]
	//       },
	//       "response": {
	//         "status": 200,
	//         "contentType": "application/json",
	//         "body": {"result":1}
	//       }
	//     }
	//   ]
	// }
}

// With UPBLOOM_RECORD=1 and the variables of a database, the test makes its
// recording. Otherwise it runs from it.
func ExampleRecorded() {
	test := faketest.Run(func(t testing.TB) {
		client := upstashtest.Recorded(t, "testdata/counter.json")
		ctx := context.Background()

		visits, err := client.Do(ctx, upstash.Cmd("INCR", "visits"))
		if err != nil {
			t.Fatalf("counting: %v", err)
		}
		n, err := visits.Int64()
		fmt.Println(n, err)
		_, err = client.Do(ctx, upstash.Cmd("EXPIRE", "visits", "60", "NX"))
		fmt.Println(err)
	})
	fmt.Println("failed:", test.Failed())
	// Output:
	// 1 <nil>
	// <nil>
	// failed: false
}
