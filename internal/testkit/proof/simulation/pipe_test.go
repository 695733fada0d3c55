package simulation

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// join makes a pipe whose stream to the client is cut.
func join(c cut) (client, server *end) {
	p := newPipe(newNetwork(fates{seed: 1}, nil, 1), 0)
	p.ends[0].in.cut = c
	return p.ends[0], p.ends[1]
}

// TestPipeCuts cuts a connection after three bytes of "answer". It checks what
// the client reads, and the error of the server's write.
func TestPipeCuts(t *testing.T) {
	for _, tt := range []struct {
		cut      cut
		read     string
		err      error
		writeErr error
	}{
		{cut{}, "answer", os.ErrDeadlineExceeded, nil},
		{cut{how: hangUp, at: 3}, "ans", nil, nil}, // io.ReadAll returns no error at EOF
		{cut{how: refuse, at: 3}, "ans", nil, syscall.EPIPE},
		{cut{how: reset, at: 3}, "", syscall.ECONNRESET, nil},
		{cut{how: swallow, at: 3}, "ans", os.ErrDeadlineExceeded, nil},
		{cut{how: freeze, at: 3, pause: time.Second}, "answer", os.ErrDeadlineExceeded, nil},
		{cut{how: freeze, at: 3, pause: time.Hour}, "ans", os.ErrDeadlineExceeded, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := join(tt.cut)
			if _, err := io.WriteString(server, "answer"); !errors.Is(err, tt.writeErr) {
				t.Errorf("%+v: the server is told %v, want %v", tt.cut, err, tt.writeErr)
			}
			_ = client.SetReadDeadline(time.Now().Add(time.Minute))
			got, err := io.ReadAll(client)
			if string(got) != tt.read || !errors.Is(err, tt.err) {
				t.Errorf("%+v: read %q, %v, want %q, %v", tt.cut, got, err, tt.read, tt.err)
			}
		})
	}
}

// TestPipeClose: both ends see a Close, and TryRead does not wait.
func TestPipeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := join(cut{})
		if n, err := client.TryRead(make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("looking at a new pipe: %d, %v", n, err)
		}
		_ = server.Close()
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("reading: %v, want EOF", err)
		}
		if _, err := client.TryRead(make([]byte, 1)); err != io.EOF {
			t.Errorf("looking: %v, want EOF", err)
		}
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the closed end: %v", err)
		}
	})
}

// TestStrays: an answer without a request arrives before the next request, or
// never.
func TestStrays(t *testing.T) {
	for _, waits := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			client, server := join(cut{})
			_, _ = io.WriteString(client, "request")
			server.answered()
			server.stray([]byte("stray"), time.Second)
			if waits {
				time.Sleep(time.Minute)
			}
			_, _ = io.WriteString(client, "request")
			time.Sleep(time.Minute)
			n, err := client.TryRead(make([]byte, 10))
			if got := n > 0; got != waits || err != nil {
				t.Errorf("a stray that the client waits for: %v; it arrived: %v, %v", waits, got, err)
			}
			server.stray([]byte("stray"), 0) // while a request is under way
			time.Sleep(time.Minute)
			if n, _ := client.TryRead(make([]byte, 10)); n > 0 {
				t.Error("a stray came in place of the answer")
			}
		})
	}
}

// No stray comes after lost bytes: a client could take it for the rest of an
// answer.
func TestStrayAfterACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := join(cut{how: swallow, at: 4})
		_, _ = io.WriteString(client, "request")
		_, _ = io.WriteString(server, "answer")
		server.answered()
		server.stray([]byte("stray"), 0)
		time.Sleep(time.Minute)
		b := make([]byte, 20)
		if n, err := client.TryRead(b); string(b[:n]) != "answ" || err != nil {
			t.Errorf("%q, %v, want the 4 bytes before the cut", b[:n], err)
		}
	})
}
