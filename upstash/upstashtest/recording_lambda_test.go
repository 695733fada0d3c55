package upstashtest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The code before the tests is a Lambda function, which could be a package of
// its own. With github.com/aws/aws-lambda-go the event would be an
// events.SQSEvent, and main would call lambda.Start(handler.Handle).

// webhookEvent is a batch of deliveries.
type webhookEvent struct {
	Deliveries []string // their ids
}

// webhookHandler acts on each delivery once, however often it comes.
type webhookHandler struct {
	seen *bloom.Filter
	act  func(id string)
}

func newWebhookHandler(client *upstash.Client, act func(id string)) (*webhookHandler, error) {
	seen, err := bloom.New(client, "seen:webhooks", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		return nil, err
	}
	return &webhookHandler{seen: seen, act: act}, nil
}

// Handle returns how many deliveries were new.
func (h *webhookHandler) Handle(ctx context.Context, event webhookEvent) (int, error) {
	added, err := h.seen.AddAll(ctx, event.Deliveries)
	if err != nil {
		return 0, fmt.Errorf("deliveries are not marked as seen: %w", err)
	}
	n := 0
	for i, isNew := range added {
		if isNew {
			n++
			h.act(event.Deliveries[i])
		}
	}
	return n, nil
}

// webhookRecording is the recording of TestWebhookRecordingIsCurrent.
const webhookRecording = "testdata/webhooks.json"

// A usual test runs from the recording, without a database. With
// UPBLOOM_RECORD=1 and the variables of a database it makes the recording
// again.
func TestWebhookHandler(t *testing.T) {
	client := upstashtest.Recorded(t, webhookRecording)
	testWebhookHandler(t, client)
}

func testWebhookHandler(t testing.TB, client *upstash.Client) {
	t.Helper()
	ctx := context.Background()
	if _, err := client.Del(ctx, "seen:webhooks"); err != nil { // a live database may have it
		t.Fatalf("emptying: %v", err)
	}
	var acted []string
	h, err := newWebhookHandler(client, func(id string) { acted = append(acted, id) })
	if err != nil {
		t.Fatalf("making the handler: %v", err)
	}
	for _, step := range []struct {
		event   webhookEvent
		wantNew int
	}{
		{webhookEvent{[]string{"evt_1", "evt_2"}}, 2},
		{webhookEvent{[]string{"evt_2", "evt_3"}}, 1}, // evt_2 for the second time
	} {
		n, err := h.Handle(ctx, step.event)
		if err != nil || n != step.wantNew {
			t.Errorf("Handle(%v) = %d, %v; want %d", step.event, n, err, step.wantNew)
		}
	}
	if got := fmt.Sprint(acted); got != "[evt_1 evt_2 evt_3]" {
		t.Errorf("acted on %s", got)
	}
}

// TestWebhookRecordingIsCurrent records from the embedded server, beside the test as
// the doc of Record does, and compares the file with the committed one. Recordings
// are therefore stable, and this server still answers as it did when the file was
// made.
func TestWebhookRecordingIsCurrent(t *testing.T) {
	want, err := os.ReadFile(webhookRecording)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	recorded := t.Run("record", func(t *testing.T) {
		server := upstashtest.NewServer(t)
		client := upstashtest.Record(t, "testdata/webhooks.json", server.URL, server.Token)
		testWebhookHandler(t, client)
	})
	if !recorded {
		return
	}
	got, err := os.ReadFile(webhookRecording)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: %s is not what is recorded now:\n%s", err, webhookRecording, got)
	}
	t.Run("replay", func(t *testing.T) { testWebhookHandler(t, upstashtest.Replay(t, webhookRecording)) })
}

// A recording of a window's look-up replays on any later day.
func TestReplayLater(t *testing.T) {
	s := upstashtest.NewServer(t)
	exists := func(t *testing.T, c *upstash.Client) {
		w, err := bloom.NewWindow(c, "seen", bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		found, err := w.Exists(t.Context(), "a")
		if !found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
	}
	w, err := bloom.NewWindow(s.Client(), "seen", bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "look.json")
	t.Run("record", func(t *testing.T) { exists(t, upstashtest.Record(t, file, s.URL, s.Token)) })
	// A bubble's clock begins in the year 2000.
	t.Run("replay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { exists(t, upstashtest.Replay(t, file)) })
	})
}
