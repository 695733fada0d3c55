package recording_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

// TestRawCommandsAreToldApart replays one raw command in place of another. Only
// their paths differ, which hold all arguments but the last. The path of the
// database's URL is not part of them.
func TestRawCommandsAreToldApart(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":"OK"}`)
	}))
	defer server.Close()
	var files [][]byte
	for _, base := range []string{"", "/data%2Fbase/x//"} {
		file := t.TempDir() + "/recording.json"
		send := func(c *upstash.Client, command string) {
			_, _ = c.Do(t.Context(), upstash.RawCmd(command, []byte("x"), "a key"))
		}
		faketest.Run(func(tb testing.TB) {
			send(recording.Record(tb, file, server.URL+base, "token-secret"), "SET")
		}).WantFailures(t)
		faketest.Run(func(tb testing.TB) { send(recording.Replay(tb, file), "SET") }).WantFailures(t)
		other := faketest.Run(func(tb testing.TB) { send(recording.Replay(tb, file), "APPEND") })
		if !strings.Contains(strings.Join(other.Failures, "\n"), "is not in the recording") {
			t.Errorf("base %q: APPEND in place of SET: failures %q, want \"is not in the recording\"", base, other.Failures)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Errorf("recordings of two paths of the database's URL differ, want equal ones:\n%s\n%s", files[0], files[1])
	}
}
