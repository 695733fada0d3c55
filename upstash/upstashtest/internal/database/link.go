package database

import (
	"bufio"
	"net"
	"strconv"
	"time"
)

const (
	// linkBuffer is how many bytes a link sends or reads at once.
	linkBuffer = 64 << 10
	// shortArg is the length of the longest argument that is copied once.
	shortArg = 256
)

// link is a connection to a Redis.
type link struct {
	conn    net.Conn
	r       *bufio.Reader
	w       *bufio.Writer
	timeout time.Duration // of writing a command, and of a reply
	err     error         // why the connection is lost
}

func newLink(conn net.Conn, timeout time.Duration) *link {
	return &link{
		conn: conn, timeout: timeout,
		r: bufio.NewReaderSize(conn, linkBuffer), w: bufio.NewWriterSize(conn, linkBuffer),
	}
}

// write begins to send a command. flush sends the rest.
func (l *link) write(args []string) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.timeout)); err != nil {
		return l.lose(err)
	}
	_, err := l.w.Write(appendLength(l.w.AvailableBuffer(), '*', len(args)))
	for _, a := range args {
		b := appendLength(l.w.AvailableBuffer(), '$', len(a))
		if len(a) <= shortArg {
			_, err = l.w.Write(append(append(b, a...), "\r\n"...))
			continue
		}
		_, _ = l.w.Write(b)
		_, _ = l.w.WriteString(a)
		_, err = l.w.WriteString("\r\n") // the first error stays
	}
	return l.lose(err)
}

func (l *link) flush() error { return l.lose(l.w.Flush()) }

// read waits for a reply.
func (l *link) read(timeout time.Duration) (Reply, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, l.lose(err)
	}
	r, err := readReply(l.r)
	return r, l.lose(err)
}

// do sends a command and waits for its reply.
func (l *link) do(timeout time.Duration, args ...string) (Reply, error) {
	if err := l.write(args); err != nil {
		return nil, err
	}
	if err := l.flush(); err != nil {
		return nil, err
	}
	return l.read(timeout)
}

// lose notes the loss of the connection if there is an error.
func (l *link) lose(err error) error {
	if l.err == nil {
		l.err = err
	}
	return err
}

// appendLength appends the line before an array or a string.
func appendLength(dst []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, kind), int64(n), 10), "\r\n"...)
}
