package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestMain makes the clients trust the server of the simulated runs. Without an
// option of the client, this takes a file of the system's roots.
func TestMain(m *testing.M) { os.Exit(withRoot(m)) }

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
	config, text, err := newCertificate()
	file := filepath.Join(dir, "root.pem")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err == nil {
		err = os.Setenv("SSL_CERT_FILE", file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	serverTLS = config
	return m.Run()
}
