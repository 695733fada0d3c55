package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// A way is a row of the README's table of a million checks.
type way struct {
	name   string
	values [3]float64 // billed commands, MB that travel, MB in Redis
}

const waysHead = "| | requests | billed commands | MB sent | MB received | memory of Redis |"

// readWays reads the table.
func readWays(file string) ([]way, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	_, table, found := strings.Cut(string(text), waysHead+"\n")
	if !found {
		return nil, fmt.Errorf("%s has no table %q", file, waysHead)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var ways []way
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 6 {
			return nil, fmt.Errorf("%s: %q has %d cells", file, line, len(cells))
		}
		var v [5]float64
		for i := range v {
			number := strings.NewReplacer(",", "", " MB", "").Replace(strings.TrimSpace(cells[i+1]))
			if v[i], err = strconv.ParseFloat(number, 64); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", file, line, err)
			}
		}
		name := strings.ReplaceAll(strings.TrimSpace(cells[0]), "`", "")
		ways = append(ways, way{name, [3]float64{v[1], v[2] + v[3], v[4]}})
	}
	return ways, nil
}

// drawWays has a column for each value, on a scale of powers of ten.
func drawWays(ink inks, ways []way) string {
	const width, row, top, names = 880, 28, 50, 334
	const column = (width - names) / 3
	s := newSheet(ink, width, top+row*len(ways)+30, "What a million checks cost: commands, bytes and memory")
	for i, head := range [3]string{"billed commands", "MB there and back", "MB in Redis"} {
		low, high := math.Inf(1), math.Inf(-1)
		for _, w := range ways {
			low, high = min(low, w.values[i]), max(high, w.values[i])
		}
		low, high = math.Floor(math.Log10(low)+1e-9), math.Ceil(math.Log10(high)-1e-9)
		left := float64(names + i*column)
		x := func(v float64) float64 { return left + 8 + (math.Log10(v)-low)/(high-low)*(column-64) }
		s.words(left+8, 22, "start", ink.text, "*"+head)
		for power := low; power <= high; power++ {
			at := x(math.Pow(10, power))
			s.rule(at, 34, at, float64(top+row*len(ways)-8), ink.line, "")
		}
		for j, w := range ways {
			at := float64(top + row*j + 8)
			s.dot(x(w.values[i]), at, colourOf(ink, w))
			s.words(x(w.values[i])+8, at+4.5, "start", ink.text, short(w.values[i]))
		}
	}
	for j, w := range ways {
		s.words(0, float64(top+row*j)+12.5, "start", colourOf(ink, w), w.name)
	}
	s.words(0, float64(top+row*len(ways)+20), "start", ink.soft,
		"A million checks, among a million members. From one grey line to the next it is ten times as much.")
	return s.end()
}

// colourOf marks the ways of this module.
func colourOf(ink inks, w way) string {
	for _, ours := range []string{"Mirror", "ExistsAll", "Exists"} {
		if strings.HasPrefix(w.name, ours) {
			return ink.accent
		}
	}
	return ink.blue
}

// short writes a number in three digits.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	case v >= 1e3:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
