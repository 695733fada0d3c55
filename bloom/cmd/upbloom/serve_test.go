//go:build unix

// These tests interrupt a process, which package os cannot on Windows.

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// started runs serve until it has printed its three lines.
func started(t *testing.T, args ...string) (
	cmd *exec.Cmd, out io.Reader, text string, errOut *strings.Builder,
) {
	t.Helper()
	cmd = newShell(t).command(append([]string{"serve"}, args...)...)
	errOut = new(strings.Builder)
	cmd.Stderr = errOut
	pipe := testenv.Start(t, cmd)
	chunk := make([]byte, 200)
	for strings.Count(text, "\n") < 3 {
		n, err := pipe.Read(chunk)
		if text += string(chunk[:n]); err != nil {
			t.Fatalf("%q, %v", text, err)
		}
	}
	return cmd, pipe, text, errOut
}

// finished interrupts serve, which then ends without an error.
func finished(t *testing.T, cmd *exec.Cmd, out io.Reader) {
	t.Helper()
	interrupt(t, cmd, os.Interrupt)
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// serve prints what a program needs, and ends with an interrupt.
func TestServe(t *testing.T) {
	cmd, out, text, errOut := started(t, "--addr", "127.0.0.1:0")
	client := (&shell{t: t}).command("ls")
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		client.Env = append(client.Env, setIn(line))
	}
	if got, err := client.CombinedOutput(); err != nil || string(got) != "no filters\n" {
		t.Errorf("a client of it prints %q, %v", got, err)
	}
	if finished(t, cmd, out); errOut.Len() != 0 {
		t.Errorf("it says %q", errOut)
	}
}

// serve says so if other machines can reach it.
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

// serve uses the requested token. The one for reads is then the same in each
// run, too.
func TestServeWithToken(t *testing.T) {
	const token = "a-token_of/our.own+1="
	var reads []string
	for range 2 {
		cmd, out, text, _ := started(t, "--addr", "127.0.0.1:0", "--token", token)
		finished(t, cmd, out)
		if !strings.Contains(text, "_TOKEN='"+token+"'\n") {
			t.Errorf("it prints %q", text)
		}
		_, read, _ := strings.Cut(text, "READONLY_TOKEN=")
		reads = append(reads, read)
	}
	if reads[0] != reads[1] || len(reads[0]) < 20 || strings.Contains(reads[0], token) {
		t.Errorf("the tokens for reads are %q, want the same, and another than %s", reads, token)
	}
	sh := newShell(t)
	for _, bad := range []string{"", "it's", "two words", "new\nline"} {
		sh.want(exitUsage, "--token is empty, or holds more than", "", "serve", "--token", bad)
	}
	sh.want(exitUsage, "--redis is empty: is a variable of the shell not set?", "", "serve", "--redis", "")
}

// An interrupt ends serve while a client is sending a request, and another
// keeps its connection.
func TestServeEndsWithClients(t *testing.T) {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd, out, text, errOut := started(t, "--addr", "127.0.0.1:0", "--token", "t")
		_, rest, _ := strings.Cut(text, "http://")
		addr, _, _ := strings.Cut(rest, "'")
		ask := func(body string, length int) *bufio.Reader {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nExpect: 100-continue\r\n"+
				"Content-Length: %d\r\n\r\n%s", length, body)
			return bufio.NewReader(conn)
		}
		line, err := ask("", 100).ReadString('\n') // the server waits for the body now
		if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if _, err := http.ReadResponse(ask(`["PING"]`, 8), nil); err != nil {
			t.Fatal(err)
		}
		interrupt(t, cmd, s)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil || errOut.Len() != 0 {
			t.Errorf("%v: it ends with %v, and says %q", s, err, errOut)
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
