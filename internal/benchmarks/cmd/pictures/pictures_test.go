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

func TestReadWays(t *testing.T) {
	ways, err := readWays("../../" + readme)
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, w := range ways {
		if colourOf(light, w) == light.accent {
			ours++
		}
		for i, v := range w.values {
			if v <= 0 {
				t.Errorf("%s: value %d is %v, which has no place on a scale of powers of ten", w.name, i, v)
			}
		}
	}
	if len(ways) < 6 || ours != 3 {
		t.Errorf("%d rows, %d of them ours", len(ways), ours)
	}
	file := filepath.Join(t.TempDir(), "table.md")
	for _, text := range []string{
		"no table", waysHead + "\n|---|\n| a | 1 | 2 |\n",
		waysHead + "\n|---|\n| a | 1 | 2 | x | 4 | 5 |\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readWays(file); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{
		6: "6", 1000: "1000", 1e6: "1M", 10_100_000: "10.1M", 20_000: "20k", 1.3007: "1.3", 0.04: "0.04",
	} {
		if got := short(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
