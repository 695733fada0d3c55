//go:build js && wasm

// Command wasm runs in the page of the playground: it answers the calls of
// page.js with package engine. A call has a name, one argument in JSON, and a
// function to take the answer in JSON. Calls are answered in order.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"syscall/js"
	"time"

	"github.com/upbloom/upbloom/examples/playground/engine"
)

type call struct {
	name, argument string
	done           js.Value
}

func main() {
	calls := make(chan call, 64)
	js.Global().Set("upbloom", js.FuncOf(func(_ js.Value, args []js.Value) any {
		c := call{args[0].String(), args[1].String(), args[2]}
		go func() { calls <- c }()
		return nil
	}))
	var p page
	for c := range calls {
		answer, err := p.answer(c)
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		text, err := json.Marshal(answer)
		if err != nil {
			panic(err) // an answer is plain data
		}
		c.done.Invoke(string(text))
	}
}

// A page has what the reader plays with.
type page struct {
	table  *engine.Table
	over   *engine.Overfill
	window *engine.Window
}

func (p *page) answer(c call) (any, error) {
	ctx := context.Background()
	switch c.name {
	case "table.new":
		return do(c, func(oneIn float64) (_ engine.View, err error) {
			if p.table, err = engine.NewTable(1 / oneIn); err != nil {
				return engine.View{}, err
			}
			return p.table.View(), nil
		})
	case "table.add":
		return do(c, sure(p.table.Add))
	case "table.addAll":
		return do(c, sure(p.table.AddAll))
	case "table.addMade":
		return do(c, sure(p.table.AddMade))
	case "table.ask":
		return do(c, sure(p.table.Ask))
	case "table.show":
		return do(c, sure(p.table.Show))
	case "table.findFalse":
		return p.table.FindFalse(), nil
	case "over.new":
		var err error
		if p.over, err = engine.NewOverfill(); err != nil {
			return nil, err
		}
		return p.over.View(), nil
	case "over.step":
		return p.over.Step(), nil
	case "prices":
		return engine.DocumentedPrices(), nil
	case "plan":
		return do(c, engine.Wish.Plan)
	case "window.new":
		return do(c, func(panes int) (_ engine.WindowView, err error) {
			if p.window != nil {
				p.window.Close()
			}
			if p.window, err = engine.NewWindow(ctx, panes); err != nil {
				return engine.WindowView{}, err
			}
			return p.window.View(ctx)
		})
	case "window.add":
		return do(c, with(ctx, p.window.Add))
	case "window.addMade":
		return do(c, with(ctx, p.window.AddMade))
	case "window.ask":
		return do(c, with(ctx, p.window.Ask))
	case "window.askCopy":
		return do(c, with(ctx, p.window.AskCopy))
	case "window.later":
		return do(c, func(hours int) (engine.WindowView, error) {
			return p.window.Later(ctx, time.Duration(hours)*time.Hour)
		})
	}
	return nil, fmt.Errorf("there is no call %s", c.name)
}

// do answers a call with a function of its argument.
func do[A, V any](c call, f func(A) (V, error)) (any, error) {
	var argument A
	if err := json.Unmarshal([]byte(c.argument), &argument); err != nil {
		return nil, err
	}
	return f(argument)
}

func sure[A, V any](f func(A) V) func(A) (V, error) {
	return func(a A) (V, error) { return f(a), nil }
}

func with[A, V any](ctx context.Context, f func(context.Context, A) (V, error)) func(A) (V, error) {
	return func(a A) (V, error) { return f(ctx, a) }
}
