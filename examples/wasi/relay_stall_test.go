package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Over HTTP/2 too, if an answer begins early and stalls, it ends with its
// context. The server takes no more of the request, so its writer waits.
func TestRelayOfAnEarlyAnswerEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "abc")
		_ = http.NewResponseController(w).Flush()
		time.AfterFunc(10*time.Millisecond, cancel) // most often the answer has begun by then
		<-r.Context().Done()
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	transport := &http.Transport{Protocols: server.Config.Protocols}
	defer transport.CloseIdleConnections()
	r := relay{base: baseOf(server.URL), transport: transport}
	message := fmt.Sprintf("%s/\n\n%s", server.URL, strings.Repeat("x", 24<<20))
	answer := string(r.answer(ctx, []byte(message), 1<<20))
	if !strings.HasPrefix(answer, "canceled: ") {
		t.Errorf("the relay's answer: %.200q, want \"canceled: …\"", answer)
	}
}
