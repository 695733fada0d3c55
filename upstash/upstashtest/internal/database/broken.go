package database

import (
	"fmt"
	"strings"
)

// guarded runs a command of the engine and recovers from its panic. The engine
// panics with its lock held and its data perhaps half changed, so it is not
// used again. A script's pcall must not see the panic: it would take it for an
// error of the command.
func (d *Memory) guarded(args []string, run func() Reply) (r Reply) {
	defer func() {
		if p := recover(); p != nil {
			d.broken = Lost(fmt.Sprintf("ERR the database is lost: %s made the engine panic: %s",
				strings.ToUpper(args[0]), oneLine(fmt.Sprint(p))))
			r = d.broken
		}
	}()
	return run()
}

// Broken returns why the database is lost, or nil.
func (d *Memory) Broken() error {
	if d.broken == "" {
		return nil
	}
	return d.broken
}
