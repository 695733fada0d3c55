//go:build !wasm

package systemtest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/proof"
)

// childEnv makes a test binary serve calls instead of running tests.
const childEnv = "UPBLOOM_PROOF_CHILD"

// A process is a second process of this test binary, which makes calls. It
// takes orders and returns results as JSON documents on its standard streams.
// It is safe for concurrent use.
type process struct {
	cmd *exec.Cmd
	in  io.Closer

	mu      sync.Mutex
	out     *json.Encoder
	next    int
	pending map[int]chan proof.Result
}

// order tells a process to make a call on a target. An order without a verb
// closes the target's handle.
type order struct {
	ID     int
	Target target
	Worker string
	Call   proof.Call
}

type outcome struct {
	ID     int
	Result proof.Result
}

func startProcess() (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, in: in, out: json.NewEncoder(in), pending: make(map[int]chan proof.Result)}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.receive(json.NewDecoder(out))
	return p, nil
}

// receive passes the results on. When the process ends, waiting calls get a
// Result that says so.
func (p *process) receive(answers *json.Decoder) {
	for {
		var o outcome
		if answers.Decode(&o) != nil {
			break
		}
		p.mu.Lock()
		waiting := p.pending[o.ID]
		delete(p.pending, o.ID)
		p.mu.Unlock()
		waiting <- o.Result
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, waiting := range p.pending {
		waiting <- proof.Result{End: proof.Unknown, Lost: true, Err: "the process has ended"}
	}
	p.pending = nil
}

// do sends an order and returns its result.
func (p *process) do(o order) proof.Result {
	waiting := make(chan proof.Result, 1)
	p.mu.Lock()
	if p.pending == nil {
		p.mu.Unlock()
		return proof.Result{End: proof.NotRun, Lost: true, Err: "the process has ended"}
	}
	p.next++
	o.ID = p.next
	p.pending[o.ID] = waiting
	err := p.out.Encode(o)
	p.mu.Unlock()
	if err != nil {
		return proof.Result{End: proof.Unknown, Lost: true, Err: err.Error()}
	}
	return <-waiting
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}

// serve takes orders until its input ends.
func serve(in io.Reader, out io.Writer) error {
	s := server{handles: make(map[string]*handle), out: json.NewEncoder(out)}
	orders := json.NewDecoder(in)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		var o order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.start(&running, o); err != nil {
			return err
		}
	}
}

// server is the part of a process that takes orders.
type server struct {
	handles map[string]*handle

	mu  sync.Mutex
	out *json.Encoder
}

func (s *server) start(running *sync.WaitGroup, o order) error {
	name := o.Target.Key + " " + o.Worker
	h := s.handles[name]
	if o.Call.Verb == "" {
		if h != nil {
			h.close()
			delete(s.handles, name)
		}
		return s.answer(outcome{ID: o.ID})
	}
	if h == nil {
		var err error
		if h, err = open(o.Target); err != nil {
			return fmt.Errorf("opening a handle: %w", err)
		}
		s.handles[name] = h
	}
	running.Go(func() { _ = s.answer(outcome{o.ID, h.run(o.Call)}) })
	return nil
}

func (s *server) answer(o outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(o)
}

// A proxy passes bytes between clients and a server. It cuts, delays and resets
// connections at randomly drawn bytes.
type proxy struct {
	l    net.Listener
	addr string // of the server
	seed uint64

	mu    sync.Mutex
	calm  bool
	count uint64
	open  map[net.Conn]bool

	running sync.WaitGroup
}

func newProxy(addr string, seed uint64) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, addr: addr, seed: seed, open: make(map[net.Conn]bool)}
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) url() string { return "http://" + p.l.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.join(client) })
	}
}

// join passes bytes in both directions until one side ends, or the drawn fate
// strikes.
func (p *proxy) join(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.addr)
	if err != nil {
		return
	}
	defer server.Close()
	there, back, ok := p.enter(client, server)
	if !ok {
		return
	}
	defer p.leave(client, server)
	var ways sync.WaitGroup
	ways.Go(func() { there.carry(client, server) })
	ways.Go(func() { back.carry(server, client) })
	ways.Wait()
}

// enter adds a pair of connections and draws the fates of both directions.
func (p *proxy) enter(a, b net.Conn) (there, back fate, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return there, back, false
	}
	p.open[a], p.open[b] = true, true
	p.count++
	rng := rand.New(rand.NewPCG(p.seed, p.count))
	if !p.calm && rng.IntN(3) == 0 {
		if rng.IntN(2) == 0 {
			there = drawFate(rng)
		} else {
			back = drawFate(rng)
		}
	}
	return there, back, true
}

func (p *proxy) leave(a, b net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, a)
	delete(p.open, b)
}

// joined returns how many connections there have been.
func (p *proxy) joined() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// heal ends all connections. Nothing happens to new ones.
func (p *proxy) heal(linger int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calm = true
	for c := range p.open {
		_ = c.(*net.TCPConn).SetLinger(linger)
	}
	for c := range p.open {
		_ = c.Close()
	}
}

// How Close ends a connection: with a FIN, or with a RST, which it sends at once.
const fin, rst = -1, 0

func (p *proxy) close() {
	_ = p.l.Close()
	p.heal(fin)
	p.mu.Lock()
	p.open = nil
	p.mu.Unlock()
	p.running.Wait()
}

// fate is what happens to one direction of a connection. The zero value means
// nothing.
type fate struct {
	how   blow
	at    int           // bytes that pass before it
	delay time.Duration // of each piece
}

type blow uint8

const (
	none blow = iota
	cut
	reset
	slow
)

func drawFate(rng *rand.Rand) fate {
	return fate{
		how: cut + blow(rng.IntN(3)), at: rng.IntN(3000),
		delay: time.Duration(rng.IntN(int(8 * time.Millisecond))),
	}
}

// carry copies from one side to the other, and closes both in the end.
func (f fate) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 4096)
	for carried := 0; ; {
		n, err := from.Read(buf)
		if f.how == slow {
			time.Sleep(f.delay)
		}
		if (f.how == cut || f.how == reset) && carried+n > f.at {
			_, _ = to.Write(buf[:f.at-carried])
			if f.how == reset {
				_ = from.(*net.TCPConn).SetLinger(rst)
				_ = to.(*net.TCPConn).SetLinger(rst)
			}
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
		carried += n
	}
}
