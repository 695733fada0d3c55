package relay

import (
	"bytes"
	"fmt"
	"os/exec"
	"time"
)

// Start starts a program that relays over its standard input and output. The
// caller must call stop. It ends the program, and returns an error if the
// program printed anything or does not end by itself.
func Start(cmd *exec.Cmd) (t *Transport, stop func() error, err error) {
	var said bytes.Buffer // syscall/js reports late callbacks here
	cmd.Stderr = &said
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	t = New(to, from)
	return t, func() error {
		hung := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer hung.Stop()
		broken := t.End() // before Wait, which closes the pipe
		if err := cmd.Wait(); err != nil || said.Len() != 0 {
			return fmt.Errorf("%v, its last words: %v\n%.2000s", err, broken, said.Bytes())
		}
		return nil
	}, nil
}
