package upstashtest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

const (
	textRateLimit = "ERR too many commands in this second"
	textNotJSON   = "error code: 1016"
	pageGateway   = "<html>\n<head><title>502 Bad Gateway</title></head>\n" +
		"<body><center><h1>502 Bad Gateway</h1></center></body>\n</html>\n"
)

// reply sends the answer a, distorted by the fault f if there is one. a is empty
// if the fault executes nothing.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, q request, f Fault, a answer) {
	plain := wire.Encoding{}
	switch f.kind {
	case kindDrop, kindLost:
		panic(http.ErrAbortHandler) // net/http closes the connection
	case kindStall:
		select {
		case <-r.Context().Done(): // the client has hung up
		case <-s.closing:
		}
		panic(http.ErrAbortHandler)
	case kindCut:
		s.cut(w, a, f.n)
	case kindRate, kindRateAfter:
		if f.wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.wait.Seconds()))))
		}
		s.write(w, *refuse(plain, http.StatusTooManyRequests, textRateLimit))
	case kindInternal:
		s.write(w, *refuse(plain, http.StatusInternalServerError, "ERR internal error"))
	case kindGateway:
		s.write(w, answer{status: http.StatusBadGateway, contentType: "text/html", body: []byte(pageGateway)})
	case kindError:
		s.write(w, *refuse(plain, http.StatusOK, f.text))
	case kindNotJSON:
		s.write(w, answer{status: http.StatusOK, contentType: "text/plain", body: []byte(textNotJSON)})
	case kindHuge:
		s.huge(w, r, a, f.n)
	case kindRedirect:
		w.Header().Set("Location", f.text)
		s.write(w, answer{status: http.StatusTemporaryRedirect, contentType: wire.TypeJSON})
	case kindTrickle:
		s.trickle(w, r, a, f.wait)
	case kindCommand:
		s.write(w, answerAll(q.enc, q.Batch, f.text))
	case kindInterim:
		for range f.n {
			w.WriteHeader(http.StatusEarlyHints)
		}
		s.write(w, a)
	case kindTwice, kindTwiceLate:
		s.twice(w, a, f.wait)
	case kindCloses:
		s.closes(w, a, f.text)
	case kindLate:
		s.pause(r.Context(), f.wait)
		s.write(w, a)
	case kindLateExec:
		s.lateExec(w, q, f.wait)
	default: // other faults are in the replies already: see execute
		s.write(w, a)
	}
}

// pause waits for d, or until ctx ends or the server closes.
func (s *Server) pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.closing:
	}
}

// answerAll returns an answer in which each command fails with text.
func answerAll(e wire.Encoding, b wire.Batch, text string) answer {
	a := answer{status: http.StatusOK, contentType: e.ContentType()}
	if b.Form == wire.Command {
		a.status = http.StatusBadRequest
	}
	replies := make(database.Array, len(b.Cmds))
	for i := range replies {
		replies[i] = database.Failure(text)
	}
	a.body = e.Answer(b.Form, replies)
	return a
}

// cut announces the whole length and hangs up before the end. The client can
// then notice.
func (s *Server) cut(w http.ResponseWriter, a answer, n int64) {
	s.writeHeader(w, a)
	_, _ = w.Write(a.body[:max(0, min(n, int64(len(a.body))-1))])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// huge sends the body in chunks, without its length. It holds 64 KiB in memory
// however long the body is, and stops when the client hangs up.
func (s *Server) huge(w http.ResponseWriter, r *http.Request, a answer, n int64) {
	w.Header().Set("Content-Type", wire.TypeJSON)
	w.Header().Set(wire.HeaderSyncToken, a.syncToken)
	w.WriteHeader(http.StatusOK)
	send := func(b []byte) bool {
		m, err := w.Write(b)
		s.count.bytesOut.Add(int64(m))
		return err == nil && r.Context().Err() == nil
	}
	block := bytes.Repeat([]byte{'x'}, 64<<10)
	ok := send([]byte(`{"result":"`))
	for ; ok && n > 0; n -= int64(len(block)) {
		ok = send(block[:min(n, int64(len(block)))])
	}
	if ok {
		send([]byte(`"}`))
	}
}

// trickle sends each byte alone.
func (s *Server) trickle(w http.ResponseWriter, r *http.Request, a answer, pause time.Duration) {
	s.writeHeader(w, a)
	out := http.NewResponseController(w)
	timer := time.NewTicker(max(pause, time.Nanosecond))
	defer timer.Stop()
	for i := range a.body {
		select {
		case <-timer.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.closing:
			panic(http.ErrAbortHandler)
		}
		if _, err := w.Write(a.body[i : i+1]); err != nil || out.Flush() != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// bend changes the replies as the fault says.
func (f Fault) bend(form wire.Form, replies database.Array) database.Array {
	resize := shorter
	if f.kind == kindLong || f.kind == kindMore {
		resize = longer
	}
	switch f.kind {
	case kindType:
		return mapReplies(replies, otherType)
	case kindShort, kindLong:
		return resizeResults(replies, resize)
	case kindFewer, kindMore:
		if form == wire.Command {
			return resizeResults(replies, resize)
		}
		return resize(replies)
	}
	return replies
}

// otherType returns a result of another type than r.
func otherType(r database.Reply) database.Reply {
	switch r := r.(type) {
	case database.Failure:
		return r
	case int64:
		return database.Bulk(fmt.Sprint(r))
	case database.Array:
		return int64(len(r))
	}
	return database.Array{r}
}

// shorter and longer do not change their argument, which the database may hold.
func shorter(a database.Array) database.Array { return a[:max(0, len(a)-1)] }

func longer(a database.Array) database.Array {
	if len(a) == 0 {
		return database.Array{int64(0)}
	}
	return append(a[:len(a):len(a)], a[len(a)-1])
}

// resizeResults resizes the arrays among the results. If there is none, it
// makes an array of each result.
func resizeResults(replies database.Array, resize func(database.Array) database.Array) database.Array {
	arrays := false
	for _, r := range replies {
		_, is := r.(database.Array)
		arrays = arrays || is
	}
	return mapReplies(replies, func(r database.Reply) database.Reply {
		switch r := r.(type) {
		case database.Failure:
			return r
		case database.Array:
			return resize(r)
		}
		if arrays {
			return r
		}
		return resize(database.Array{r})
	})
}

func mapReplies(in database.Array, f func(database.Reply) database.Reply) database.Array {
	out := make(database.Array, len(in))
	for i, r := range in {
		out[i] = f(r)
	}
	return out
}

// The faults of this file break HTTP in ways net/http does not allow. They take
// the connection from it.

// seize takes the connection from net/http. It ends the handler if that fails.
// In the end the caller closes the connection and tells conns.track, or leaves
// both to holdSocket.
func (s *Server) seize(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}

// holdSocket waits until the client closes the connection or sends something,
// or the server closes. Then it closes the connection.
func (s *Server) holdSocket(conn net.Conn) {
	defer s.conns.track(conn, http.StateClosed)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.closing:
		case <-over:
		}
		_ = conn.Close()
	}()
	_, _ = conn.Read(make([]byte, 1))
	close(over)
	<-ended
}

// onWire returns the bytes of an answer, with more header lines, and counts it
// as sent.
func (s *Server) onWire(a answer, more string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s",
		a.status, http.StatusText(a.status), a.contentType, len(a.body), more)
	if a.syncToken != "" {
		fmt.Fprintf(&b, "%s: %s\r\n", wire.HeaderSyncToken, a.syncToken)
	}
	b.WriteString("\r\n")
	b.Write(a.body)
	s.count.bytesOut.Add(int64(len(a.body)))
	return b.Bytes()
}

// twice sends the answer two times, in one packet or with a pause between.
func (s *Server) twice(w http.ResponseWriter, a answer, later time.Duration) {
	text := s.onWire(a, "")
	conn := s.seize(w)
	defer s.holdSocket(conn)
	release := func() {}
	if later == 0 {
		release = holdBack(conn)
	}
	_, _ = conn.Write(text)
	s.pause(context.Background(), later)
	_, _ = conn.Write(text)
	release()
}

// closes announces the end of the connection with this Connection header.
func (s *Server) closes(w http.ResponseWriter, a answer, connection string) {
	text := s.onWire(a, "Connection: "+connection+"\r\n")
	conn := s.seize(w)
	_, _ = conn.Write(text)
	s.holdSocket(conn)
}

// lateExec hangs up, waits and runs the commands.
func (s *Server) lateExec(w http.ResponseWriter, q request, by time.Duration) {
	conn := s.seize(w)
	defer s.conns.track(conn, http.StateClosed)
	_ = conn.Close()
	s.pause(context.Background(), by)
	_, _ = s.run(context.Background(), q, Fault{})
}

// refuseEarly answers while the client may still send the body. It does not
// read, so it cannot see the client hang up. It holds the connection until the
// server closes.
func (s *Server) refuseEarly(w http.ResponseWriter) {
	text := s.onWire(*refuse(wire.Encoding{}, http.StatusRequestEntityTooLarge,
		tooLarge(s.cfg.maxRequest, s.cfg.maxRequest+1)), "Connection: close\r\n")
	conn := s.seize(w)
	defer s.conns.track(conn, http.StateClosed)
	defer conn.Close()
	_, _ = conn.Write(text)
	<-s.closing
}
