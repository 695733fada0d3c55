package conn

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
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

// MaxSilence is how long a peer's system may take to confirm bytes: time for
// four repetitions of a packet.
const MaxSilence = 3 * time.Second

// IsSilence reports whether err says that a limit ended the wait, that the system
// had no word from the peer, or only that no way leads there.
func IsSilence(err error) bool {
	return slices.ContainsFunc([]error{
		os.ErrDeadlineExceeded, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	}, func(silence error) bool { return errors.Is(err, silence) })
}
