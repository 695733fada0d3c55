package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// The scripts hand the words of a command line over as they stand there, as
// arguments of one call with completeVariable: no shell runs, expands or redirects
// anything. They leave redirections out.
//
//go:embed completion
var completionScripts embed.FS

var completionShells = []string{"bash", "zsh", "fish", "pwsh"}

// completeVariable asks for completions, by the name of the shell. No argument
// does: it may be an item.
const completeVariable = "UPBLOOM_COMPLETE"

func (a *app) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script with which a shell completes commands and flags",
		ArgsUsage: "bash|zsh|fish|pwsh",
		Action: a.taking(0, 1, func(_ context.Context, _ *cli.Command, args []string) error {
			if len(args) == 0 || !slices.Contains(completionShells, args[0]) {
				return usagef("name a shell: upbloom completion bash, zsh, fish or pwsh")
			}
			script, err := completionScripts.ReadFile("completion/" + args[0])
			if err != nil {
				return err
			}
			_, err = a.out.Write(script)
			return err
		}),
	}
}

// complete prints what may stand in place of the last word, if the environment asks
// for it. Nothing is sent, and that is an error: the variable may have been left
// set. The scripts drop it.
func (a *app) complete(root *cli.Command, words []string) error {
	shell := os.Getenv(completeVariable)
	if !slices.Contains(completionShells, shell) {
		return nil
	}
	for _, c := range completions(root, words) {
		switch shell {
		case "zsh":
			fmt.Fprintf(a.out, "%s:%s\n", c.word, c.usage)
		case "fish":
			fmt.Fprintf(a.out, "%s\t%s\n", c.word, c.usage)
		default:
			fmt.Fprintln(a.out, c.word)
		}
	}
	return usagef("%s is set, so this lists completions and does nothing else: unset it", completeVariable)
}

// A completion is a word, and what it means.
type completion struct{ word, usage string }

// completions returns the commands or the flags that begin as the last of the words
// behind the program's name does. There are none for what is a file or an item.
func completions(root *cli.Command, words []string) (list []completion) {
	if len(words) == 0 {
		return nil
	}
	last := strings.Trim(words[len(words)-1], `'"`)
	offer := func(word, usage string) {
		if strings.HasPrefix(word, last) {
			usage, _, _ = strings.Cut(usage, "\n")
			list = append(list, completion{word, usage})
		}
	}
	command := root
	for i, word := range words[:len(words)-1] {
		if word == "--" {
			return nil
		}
		if command != root || strings.HasPrefix(word, "-") { // the flags of root take no value
			continue
		}
		command = root.Command(word)
		if command == nil {
			return nil
		}
		if command.Name == "completion" && i == len(words)-2 {
			for _, shell := range completionShells {
				offer(shell, "")
			}
		}
	}
	if strings.HasPrefix(last, "-") {
		flags := command.Flags
		if command != root {
			flags = slices.Concat(flags, root.Flags)
		}
		for _, f := range flags {
			offer("--"+f.Names()[0], f.(cli.DocGenerationFlag).GetUsage())
		}
		offer("--help", "show help")
		if command == root {
			offer("--version", "print the version")
		}
		return list
	}
	if command == root || command.Name == "help" {
		for _, sub := range root.Commands {
			offer(sub.Name, sub.Usage)
		}
	}
	return list
}
