package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/upbloom/upbloom/internal/billing"
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

// A bill is a line of the picture: what look-ups cost by their number in a month.
type bill struct {
	name    string
	colour  string
	monthly func(lookups float64) float64 // US dollars
}

// bills computes the lines from the table's counted commands and the service's
// price. A Mirror that is asked often enough refreshes once each minute.
func bills(ink inks, ways []way) ([]bill, error) {
	price := billing.PayAsYouGo().Commands / 100_000
	commands := func(name string) (float64, error) {
		for _, w := range ways {
			if row, _, _ := strings.Cut(w.name, ","); row == name {
				return w.values[0], nil
			}
		}
		return 0, fmt.Errorf("the table has no row %q", name)
	}
	var all []bill
	for _, line := range []struct{ row, name, colour string }{
		{"a filter whose look-up is a script of 14 GETBITs", "a script that reads bits", ink.soft},
		{"Exists", "Exists, or SET NX EX", ink.blue},
		{"ExistsAll", "ExistsAll, or SMISMEMBER", ink.text},
		{"Mirror with MaxStale", "Mirror of one process", ink.accent},
	} {
		n, err := commands(line.row)
		if err != nil {
			return nil, err
		}
		monthly := func(lookups float64) float64 { return lookups / 1e6 * n * price }
		if line.row == "Mirror with MaxStale" {
			const minutes = 60 * 24 * billing.DaysAMonth
			monthly = func(lookups float64) float64 { return min(lookups, minutes) * n * price }
		}
		all = append(all, bill{line.name, line.colour, monthly})
	}
	return all, nil
}

// drawBills shows what look-ups cost in a month, on scales of powers of ten.
func drawBills(ink inks, ways []way) (string, error) {
	const width, height, left, right, top, bottom = 800, 330, 84, 206, 34, 46
	const leastLookups, mostLookups = 5.0, 9.0 // powers of ten
	const least, most = -4.0, 5.0
	lines, err := bills(ink, ways)
	if err != nil {
		return "", err
	}
	s := newSheet(ink, width, height, "What a month's look-ups cost, by their number")
	x := func(lookups float64) float64 {
		return left + (math.Log10(lookups)-leastLookups)/(mostLookups-leastLookups)*(width-left-right)
	}
	y := func(dollars float64) float64 {
		return top + (most-math.Log10(dollars))/(most-least)*(height-top-bottom)
	}
	for i, name := range []string{"1 cent", "1 $", "100 $", "10,000 $"} {
		at := y(math.Pow(10, float64(2*i-2)))
		s.rule(left, at, width-right, at, ink.line, "")
		s.words(left-8, at+4.5, "end", ink.soft, name)
	}
	for i, name := range []string{"100,000", "1 million", "10 million", "100 million", "1 billion"} {
		s.words(x(math.Pow(10, leastLookups+float64(i))), height-bottom+18, "middle", ink.soft, name)
	}
	s.words((left+width-right)/2, height-8, "middle", ink.soft, "look-ups a month")
	s.words(left, top-10, "start", ink.soft, "a month's commands, at 0.20 $ for 100,000")
	for _, line := range lines {
		var points [][2]float64
		for step := range 81 {
			lookups := math.Pow(10, leastLookups+float64(step)/80*(mostLookups-leastLookups))
			points = append(points, [2]float64{x(lookups), y(line.monthly(lookups))})
		}
		s.curve(points, line.colour)
		end := points[len(points)-1]
		s.words(end[0]+10, end[1]+4.5, "start", line.colour, "*"+line.name)
	}
	return s.end(), nil
}
