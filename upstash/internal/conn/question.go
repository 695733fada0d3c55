package conn

import (
	"errors"
	"fmt"
)

// Questions for the reader of an error, if no connection was made. The
// transport over fetch has them too.
const (
	NoHost   = "is the URL right, does the database still exist?"
	NoServer = "is the URL right, does the server run?"
)

// ErrSilentHandshake is returned if an attempt ends in a TLS handshake.
var ErrSilentHandshake = errors.New("the server did not complete the TLS handshake")

// SilentHandshake returns the error of an attempt that ended so.
func SilentHandshake(ended error) error { return fmt.Errorf("%w: %w", ErrSilentHandshake, ended) }
