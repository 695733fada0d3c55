// Command pictures draws the picture of README.md:
//
//	cd internal/benchmarks && go run ./cmd/pictures
//
// It is made twice, for light and for dark pages, from a table of README.md. The
// same commit makes the same pictures.
package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/upbloom/upbloom/internal/billing"
)

// What is read and written, from the folder of this module.
const (
	readme = "../../README.md"
	folder = "../../.github/pictures"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := drawAll(readme)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// drawAll returns the files by their names.
func drawAll(readme string) (map[string]string, error) {
	commands, err := readCommands(readme)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for mode, ink := range map[string]inks{"light": light, "dark": dark} {
		if files["bill-"+mode+".svg"], err = drawBills(ink, commands); err != nil {
			return nil, err
		}
	}
	return files, nil
}

const tableHead = "| | requests | billed commands | MB sent | MB received | memory of Redis |"

// readCommands reads the README's table of a million checks: how many commands are
// billed, by the name of the row up to a comma.
func readCommands(file string) (map[string]float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	_, table, found := strings.Cut(string(text), tableHead+"\n")
	if !found {
		return nil, fmt.Errorf("%s has no table %q", file, tableHead)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	commands := map[string]float64{}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 6 {
			return nil, fmt.Errorf("%s: %q has %d cells", file, line, len(cells))
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(cells[2]), ",", ""), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		name, _, _ := strings.Cut(strings.ReplaceAll(cells[0], "`", ""), ",")
		commands[strings.TrimSpace(name)] = n
	}
	return commands, nil
}

// A bill is a line of the picture: what look-ups cost by their number in a month.
type bill struct {
	name    string
	colour  string
	monthly func(lookups float64) float64 // US dollars
}

// bills computes the lines from the table's counted commands and the service's
// price. A Mirror that is asked often enough refreshes once each minute. Others add,
// so that each refresh counts and downloads.
func bills(ink inks, commands map[string]float64) ([]bill, error) {
	price := billing.PayAsYouGo().Commands / 100_000
	var all []bill
	for _, line := range []struct{ row, name, colour string }{
		{"Exists", "Exists, or SET NX EX", ink.blue},
		{"ExistsAll", "ExistsAll, or SMISMEMBER", ink.text},
		{"Mirror", "Mirror of one process", ink.accent},
	} {
		n, ok := commands[line.row]
		if !ok {
			return nil, fmt.Errorf("the table has no row %q", line.row)
		}
		monthly := func(lookups float64) float64 { return lookups / 1e6 * n * price }
		if line.row == "Mirror" {
			const minutes = 60 * 24 * billing.DaysAMonth
			monthly = func(lookups float64) float64 { return min(lookups, minutes) * n * price }
		}
		all = append(all, bill{line.name, line.colour, monthly})
	}
	return all, nil
}

// drawBills shows what look-ups cost in a month, on scales of powers of ten.
func drawBills(ink inks, commands map[string]float64) (string, error) {
	const width, height, left, right, top, bottom = 800, 330, 84, 206, 34, 46
	const leastLookups, mostLookups = 5.0, 9.0 // powers of ten
	const least, most = -4.0, 5.0
	lines, err := bills(ink, commands)
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
		s.rule(left, at, width-right, at, ink.line)
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

// inks are the colours on one kind of page. The background is the page's.
type inks struct{ text, soft, line, accent, blue string }

var (
	light = inks{"#1f2328", "#59636e", "#d1d9e0", "#c63d06", "#1f5fbf"}
	dark  = inks{"#f0f6fc", "#9198a1", "#3d444d", "#ff8a57", "#7fb0ff"}
)

// A sheet is an unfinished SVG.
type sheet struct {
	strings.Builder
	inks
}

func newSheet(ink inks, width, height int, title string) *sheet {
	s := &sheet{inks: ink}
	s.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" role="img"`)
	s.WriteString(` font-family="-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"`)
	fmt.Fprintf(s, ` font-size="13" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", width, height, width, height)
	fmt.Fprintf(s, "<title>%s</title>\n", html.EscapeString(title))
	return s
}

func (s *sheet) end() string {
	s.WriteString("</svg>\n")
	return s.String()
}

// words writes a text; anchor is "start", "middle" or "end". Bold text begins
// with "*".
func (s *sheet) words(x, y float64, anchor, colour, text string) {
	weight := ""
	if bold, ok := strings.CutPrefix(text, "*"); ok {
		text, weight = bold, ` font-weight="600"`
	}
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s"%s>%s</text>`+"\n", x, y, anchor, colour,
		weight, html.EscapeString(text))
}

func (s *sheet) rule(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

func (s *sheet) curve(points [][2]float64, colour string) {
	s.WriteString(`<polyline fill="none" stroke-width="2" stroke="` + colour + `" points="`)
	for i, p := range points {
		if i > 0 {
			s.WriteByte(' ')
		}
		fmt.Fprintf(s, "%.1f,%.1f", p[0], p[1])
	}
	s.WriteString(`"/>` + "\n")
}
