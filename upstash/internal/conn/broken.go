//go:build !wasm

package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// brokenError is the error of a connection that broke while it was made.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// during returns err. If the connection broke, it says in which step of its
// making, and who closed it.
func during(step, peer string, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &brokenError{fmt.Errorf("%s closed the connection %s: %w", peer, step, err)}
	case hasOp(err, "read"), hasOp(err, "write"):
		return &brokenError{fmt.Errorf("the connection broke %s: %w", step, err)}
	}
	return err
}

// hasOp reports whether err is, or wraps, the error of this operation of
// package net.
func hasOp(err error, name string) bool {
	for op := new(net.OpError); errors.As(err, &op); err = op.Err {
		if op.Op == name {
			return true
		}
	}
	return false
}
