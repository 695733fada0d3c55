package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// asProgram in the environment makes the test binary run as quickstart.
const asProgram = "UPBLOOM_QUICKSTART"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		program(upstash.WithTimeout(testenv.Patience))
		return
	}
	os.Exit(m.Run())
}

// command returns the command to run quickstart against s.
func command(t *testing.T, s *upstashtest.Server) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), asProgram+"=1",
		"UPSTASH_REDIS_REST_URL="+s.URL, "UPSTASH_REDIS_REST_TOKEN="+s.Token)
	return cmd
}

func wantNoKeys(t *testing.T, s *upstashtest.Server) {
	t.Helper()
	if n, err := s.Exec("DBSIZE"); err != nil || n != int64(0) {
		t.Errorf("DBSIZE afterwards: %v, %v, want 0", n, err)
	}
}

func TestItCleansUp(t *testing.T) {
	s := upstashtest.NewServer(t)
	out, err := command(t, s).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0 false negatives") {
		t.Errorf("the program ended with %v, want 0 false negatives:\n%s", err, out)
	}
	wantNoKeys(t, s)
}

func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	defer full.Close()
	s := upstashtest.NewServer(t)
	cmd := command(t, s)
	cmd.Stdout = full
	if err := cmd.Run(); err == nil {
		t.Error("with a full disk the status is 0, want another")
	}
	wantNoKeys(t, s)
}
