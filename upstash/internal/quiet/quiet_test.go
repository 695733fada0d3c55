package quiet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

// What cannot be printed is escaped, and what was escaped before stays.
func TestEscape(t *testing.T) {
	const raw, want = "a\r\n\xff\u009b\x9b�é世\x1b[2J", `a\r\n\xff\u009b\x9b�é世\x1b[2J`
	if got := Escape(raw); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Escape(want); got != want {
		t.Errorf("escaped twice: got %s, want %s", got, want)
	}
}

// errors.Is finds what err wraps, and errors.As only a known error.
func TestErrorKeepsKnownErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: io.EOF}
	err := Error("sdk: dial tcp: EOF", fmt.Errorf("sdk: %w", errors.Join(io.ErrClosedPipe, refused)))
	if !errors.Is(err, io.EOF) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("errors.Is does not find the causes of %v", err)
	}
	if op := new(net.OpError); !errors.As(err, &op) || op != refused {
		t.Errorf("errors.As finds %v, want %v", op, refused)
	}
	if text := fmt.Sprintf("%v %#v", err, err); text != "sdk: dial tcp: EOF sdk: dial tcp: EOF" {
		t.Errorf("it prints as %s", text)
	}
}

// A known error that says more than the text is not kept.
func TestErrorDropsWhatSaysMore(t *testing.T) {
	quoting := &net.OpError{Op: "read", Net: "tcp", Err: errors.New(`malformed: "secret"`)}
	err := Error("read tcp: malformed: …", quoting)
	if op := new(net.OpError); errors.As(err, &op) {
		t.Errorf("errors.As finds %v", op)
	}
	if !errors.Is(err, quoting) {
		t.Error("errors.Is does not find it")
	}
}
