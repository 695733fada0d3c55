package linear

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

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
