package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// calc says how many requests a load takes.
func TestCalcCountsTheRequestsOfALoad(t *testing.T) {
	sh := newShell(t)
	for _, n := range []string{"1000", "1000000"} {
		var p plan
		decode(t, sh.want(0, "", "", "--json", "calc", "-n", n), &p)
		var m moved
		decode(t, sh.want(0, "", "a\n", "--json", "load", "-n", n, "key"+n), &m)
		if int64(p.RequestsToLoad) != m.Requests {
			t.Errorf("%s items: calc says %d requests, a load took %d", n, p.RequestsToLoad, m.Requests)
		}
	}
}

// started runs serve until it has printed its two lines.
func started(t *testing.T, args ...string) (
	cmd *exec.Cmd, out io.Reader, text string, errOut *strings.Builder,
) {
	t.Helper()
	cmd = newShell(t).command(append([]string{"serve"}, args...)...)
	errOut = new(strings.Builder)
	cmd.Stderr = errOut
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 200)
	for strings.Count(text, "\n") < 2 {
		n, err := pipe.Read(chunk)
		if text += string(chunk[:n]); err != nil {
			t.Fatalf("%q, %v", text, err)
		}
	}
	return cmd, pipe, text, errOut
}

// finished interrupts serve, which then ends well.
func finished(t *testing.T, cmd *exec.Cmd, out io.Reader) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// serve prints what a program needs, and ends with an interrupt.
func TestServe(t *testing.T) {
	cmd, out, text, errOut := started(t, "--addr", "127.0.0.1:0")
	client := exec.Command(tool, "ls")
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		client.Env = append(client.Env, strings.ReplaceAll(strings.TrimPrefix(line, "export "), "'", ""))
	}
	if got, err := client.CombinedOutput(); err != nil || string(got) != "no filters\n" {
		t.Errorf("a client of it prints %q, %v", got, err)
	}
	if finished(t, cmd, out); errOut.Len() != 0 {
		t.Errorf("it says %q", errOut)
	}
}

// A server that other machines reach says so.
func TestServeOnAllAddresses(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0"} {
		cmd, out, text, errOut := started(t, "--addr", addr)
		finished(t, cmd, out)
		if !strings.Contains(errOut.String(), "other machines can reach this server") {
			t.Errorf("%s: it says %q", addr, errOut)
		}
		if strings.Contains(text, "other machines") {
			t.Errorf("%s: a shell cannot read %q", addr, text)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:8079": true, "127.1.2.3:0": true, "localhost:1": true, "[::1]:8079": true,
		"0.0.0.0:8079": false, ":8079": false, "[::]:0": false, "10.0.0.1:1": false, "example.com:1": false,
	} {
		if got := isLoopback(addr); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}
