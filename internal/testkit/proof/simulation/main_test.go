package simulation

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestMain makes the clients trust the server of the simulated runs. Without an
// option of the client, this takes a file of the system's roots. On a virtual clock,
// a user's limits hold.
func TestMain(m *testing.M) {
	door.Patience = 0
	testenv.CollectLess()
	os.Exit(proof.Texts.Run(suite{m}))
}

// A suite fails if the text of an error of a simulated call is wrong.
type suite struct{ *testing.M }

func (s suite) Run() int { return withRoot(s.M) }

func withRoot(m *testing.M) int {
	if runtime.GOOS != "linux" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "simulation")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	file := filepath.Join(dir, "root.pem")
	if err := errors.Join(os.WriteFile(file, text, 0o600), os.Setenv("SSL_CERT_FILE", file)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	serverTLS = s.TLS
	return m.Run()
}
