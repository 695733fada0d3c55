//go:build unix

package systemtest

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// anotherProcess is a command that runs the test in another process, for a database.
func anotherProcess(t *testing.T, url, token string, env ...string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run", "^"+name+"$")
	cmd.Env = append(append(os.Environ(), "UPBLOOM_TEST_URL="+url, "UPBLOOM_TEST_TOKEN="+token), env...)
	in, err := cmd.StdinPipe()
	bloomtest.NoError(t, err)
	return cmd, in
}

// inAnotherProcess reports whether this is such a process, and returns its client.
func inAnotherProcess(t *testing.T, opts ...upstash.Option) (*upstash.Client, bool) {
	t.Helper()
	url := os.Getenv("UPBLOOM_TEST_URL")
	if url == "" {
		return nil, false
	}
	c, err := upstash.New(url, os.Getenv("UPBLOOM_TEST_TOKEN"), opts...)
	bloomtest.NoError(t, err)
	return c, true
}

// What a process prints that is going to be killed.
const (
	killReady = "ready"
	killDone  = "done"
)

// A death is when a process is killed. The zero value is never: after it is done.
type death struct {
	at    string // one of those below, or ""
	nth   int    // which request or answer, from 1
	after time.Duration
}

const (
	arrives  = "the request arrives" // and does not run
	ran      = "the request ran"     // and is not answered
	answered = "the answer was sent"
	anyTime  = "some time after it began"
)

// A killer is a database of processes that it kills. It sees their requests as they
// arrive and their answers as they leave.
type killer struct {
	net.Listener
	server *upstashtest.Server
	client *upstash.Client // of the test. It keeps no connection

	mu      sync.Mutex
	less    sync.Cond // open is less
	open    int       // connections
	answers int
	reached func(at string, nth int)
}

// eachKiller runs a test with the database in memory and with a Redis.
func eachKiller(t *testing.T, test func(t *testing.T, k *killer)) {
	t.Run("embedded", func(t *testing.T) { test(t, newKiller(t)) })
	t.Run("redis", func(t *testing.T) {
		test(t, newKiller(t, upstashtest.WithRedis(testenv.Redis(t))))
	})
}

func newKiller(t *testing.T, opts ...upstashtest.Option) *killer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	bloomtest.NoError(t, err)
	k := &killer{Listener: l, reached: func(string, int) {}}
	k.less.L = &k.mu
	k.server = upstashtest.NewServer(t, append(opts, upstashtest.WithListener(k))...)
	over := httptransport.New(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	k.client = k.server.Client(upstash.WithTransport(over), upstash.WithTimeout(time.Hour))
	return k
}

// Accept counts the open connections.
func (k *killer) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open++
	return &seenConn{Conn: c, k: k}, nil
}

// seenConn is a connection of a killer's server.
type seenConn struct {
	net.Conn
	k    *killer
	once sync.Once
}

// Write sends an answer, or a part of one if it is long.
func (c *seenConn) Write(p []byte) (int, error) {
	c.k.mu.Lock()
	c.k.answers++
	n, reached := c.k.answers, c.k.reached
	c.k.mu.Unlock()
	reached(ran, n)
	defer reached(answered, n)
	return c.Conn.Write(p)
}

func (c *seenConn) Close() error {
	c.once.Do(func() {
		c.k.mu.Lock()
		defer c.k.mu.Unlock()
		c.k.open--
		c.k.less.Broadcast()
	})
	return c.Conn.Close()
}

// watch has reached called at each request and answer from now on, counted from 1.
// It returns how many there were since the last call.
func (k *killer) watch(reached func(at string, nth int)) (answers int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	answers, k.answers, k.reached = k.answers, 0, reached
	return answers
}

// A life is what a process did.
type life struct {
	requests, answers int
	took              time.Duration // from ready to its end
}

// kill starts a process that does what, and kills it then. It returns when none of
// its requests is left.
func (k *killer) kill(t *testing.T, what string, then death) (l life) {
	t.Helper()
	cmd, living := anotherProcess(t, k.server.URL, k.server.Token, "UPBLOOM_KILL_WHAT="+what)
	defer living.Close()

	var state *os.ProcessState
	started, killed := make(chan struct{}), make(chan struct{})
	kill := sync.OnceFunc(func() {
		<-started // its request may come sooner
		_ = cmd.Process.Kill()
		state, _ = cmd.Process.Wait()
		close(killed)
	})
	k.watch(func(at string, nth int) {
		if at == then.at && nth == then.nth {
			kill()
		}
	})
	k.server.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		l.requests = int(n)
		if then.at == arrives && l.requests == then.nth {
			kill()
			return upstashtest.Drop(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	lines := testenv.Lines(t, cmd)
	close(started)
	if line := <-lines; line != killReady {
		t.Fatalf("the process says %q", line)
	}
	began := time.Now()
	var late <-chan time.Time
	if then.at == anyTime {
		late = time.After(then.after)
	}
	select {
	case <-late:
	case line := <-lines: // "" when it ends
		if l.took = time.Since(began); line != killDone && line != "" {
			t.Errorf("the process says %q", line)
		}
	}
	kill()
	<-killed
	for range lines { // what it said before its death
	}
	_ = cmd.Wait() // closes the pipes
	if state.Exited() {
		t.Fatalf("the process ended by itself: %v", state)
	}
	k.server.InjectFunc(nil)
	l.answers = k.watch(func(string, int) {})
	k.drain(t)
	return l
}

// drain waits until the connections of a dead process are closed. Those that still
// wait for Accept do so before that of PING.
func (k *killer) drain(t *testing.T) {
	t.Helper()
	bloomtest.NoError(t, bloomtest.ErrorOf(k.client.Do(t.Context(), upstash.Cmd("PING"))))
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.open > 0 {
		k.less.Wait()
	}
}

// deaths kills processes that do what: three at each request, and UPBLOOM_KILLS
// within the time that one needs, at random. Without the variable it kills a few.
// Before each it calls begin, and afterwards complete, which checks what is left
// and reports whether all was done.
func (k *killer) deaths(t *testing.T, what string, begin func(), complete func() bool) {
	t.Helper()
	killed, done := 0, 0
	try := func(then death) (l life, was bool) {
		begin()
		l = k.kill(t, what, then)
		if was = complete(); was {
			done++
		}
		killed++
		return l, was
	}
	full, was := try(death{})
	if !was {
		t.Errorf("a %s that was done is not complete", what)
	}
	if _, was = try(death{at: arrives, nth: 1}); was {
		t.Errorf("a %s is complete before its first request", what)
	}
	if _, was = try(death{at: answered, nth: full.answers}); !was {
		t.Errorf("a %s is not complete after its last answer", what)
	}
	random, err := strconv.Atoi(os.Getenv("UPBLOOM_KILLS"))
	few := err != nil
	if few {
		random = 2
	}
	moments := []string{arrives, ran, answered}
	for n := range 3 * full.requests {
		if !few || n%4 == 3 {
			try(death{at: moments[n%3], nth: 1 + n/3})
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range random {
		try(death{at: anyTime, after: time.Duration(rng.Int64N(int64(full.took)))})
	}
	t.Logf("%s, %d requests in %v: %d of %d had done it", what, full.requests, full.took, done, killed)
}
