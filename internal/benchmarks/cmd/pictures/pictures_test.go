package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed pictures are those that the command draws from this commit.
func TestPicturesAreUpToDate(t *testing.T) {
	files, err := drawAll("../../" + readme)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("../..", folder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(files) {
		t.Errorf("%s has %d files, and the command draws %d", dir, len(entries), len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if string(got) != want {
			t.Errorf("%s is not what the command draws: run it", name)
		}
		for d := xml.NewDecoder(strings.NewReader(want)); err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadCommands(t *testing.T) {
	commands, err := readCommands("../../" + readme)
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) != 6 {
		t.Errorf("%d rows, want 6", len(commands))
	}
	if _, err := bills(light, nil); err == nil {
		t.Error("a bill without its row is no error")
	}
	lines, err := bills(light, commands)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		few, many := line.monthly(1e6), line.monthly(1e9)
		if few <= 0 || many < few {
			t.Errorf("%s: %g $ for a million look-ups, %g $ for a billion", line.name, few, many)
		}
	}
	file := filepath.Join(t.TempDir(), "table.md")
	for _, text := range []string{
		"no table", tableHead + "\n|---|\n| a | 1 | 2 |\n",
		tableHead + "\n|---|\n| a | 1 | x | 3 | 4 | 5 |\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readCommands(file); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}
