package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// report is the output of a run. If there is a folder, each part is also a file
// there, next to the plots.
type report struct {
	out    io.Writer
	folder string
	text   bytes.Buffer
	err    error // of the output

	targets []target // the measured ones
	facts   []string // for the first screen of a README
}

// printf prints. If it fails, the part's end returns the error.
func (r *report) printf(format string, args ...any) {
	fmt.Fprintf(&r.text, format, args...)
	if _, err := fmt.Fprintf(r.out, format, args...); err != nil {
		r.err = err
	}
}

// begin starts a part, and writes where and when it was measured.
func (r *report) begin(o options) {
	r.text.Reset()
	turns := ""
	if o.turn > 0 {
		turns = fmt.Sprintf("; %d rounds, turns of %v", o.rounds, o.turn)
	}
	r.printf("%s, %s; load before %s%s.\n\n",
		machine(), time.Now().UTC().Format("2006-01-02 15:04 MST"), load(), turns)
}

func machine() string {
	return fmt.Sprintf("%s, %d CPUs, %s %s/%s",
		processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// end writes how busy the machine was, and then the part's file.
func (r *report) end(part string) error {
	r.printf("Load after: %s.\n\n", load())
	if r.err != nil || r.folder == "" {
		return r.err
	}
	text := append(bytes.TrimRight(r.text.Bytes(), "\n"), '\n')
	return os.WriteFile(filepath.Join(r.folder, part+".md"), text, 0o644)
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(text), "model name\t: ")
	if name, _, ok := strings.Cut(rest, "\n"); ok {
		return name
	}
	return "unknown processor"
}

// load returns the load averages of 1, 5 and 15 minutes.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}

// play plays the contests and prints their tables.
func (r *report) play(a *arena, o options, contests []*contest) error {
	for _, c := range contests {
		if err := c.play(a.ctx, o.settings); err != nil {
			return err
		}
		r.judge(c)
		r.learn(c)
		r.printf("%s\n", c.table())
	}
	return nil
}

// table returns a contest as Markdown: how much each contestant did, the cost
// in the client's CPU, and how many times as fast ours, the first one, is.
func (c *contest) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n", c.name)
	fmt.Fprintln(&b, "| | items/s | client CPU a call, µs | upbloom against it |")
	fmt.Fprintln(&b, "|---|---|---|---|")
	ours := c.contestants[0]
	for _, one := range c.contestants {
		ratio := "1"
		if one != ours {
			ratio = ours.ratio(one).String()
		}
		cpu := "-"
		if m := one.cpu().median; m > 0 && !one.foreign {
			cpu = figure(m)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", one.name, figure(one.perSecond().median), cpu, ratio)
	}
	return b.String()
}

// String returns the median, and the quartiles in brackets.
func (s spread) String() string {
	return fmt.Sprintf("%s (%s to %s)", ratioText(s.median), ratioText(s.low), ratioText(s.high))
}

func ratioText(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// figure rounds to three digits.
func figure(x float64) string {
	if x < 100 {
		return fmt.Sprintf("%.3g", x)
	}
	digits := fmt.Sprintf("%.0f", x)
	if n := len(digits) - 3; n > 0 {
		unit := 1.0
		for range n {
			unit *= 10
		}
		digits = fmt.Sprintf("%.0f", float64(int64(x/unit+0.5))*unit)
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

type point struct{ x, y float64 }

// line is one series. Its label stands at its end. A series with a formula is
// drawn as dots on the formula's line.
type line struct {
	name            string
	points, formula []point
}

type chart struct {
	file, title, x, y string
	logX, logY        bool
	lines             []line // at most five, so that each has a colour of its own
}

// ink is for text and axes, and inks for lines. All are legible on white and on
// black, because the page sets the background.
var (
	ink  = color.RGBA{0x80, 0x80, 0x80, 0xff}
	inks = []color.Color{
		color.RGBA{0xd9, 0x48, 0x1c, 0xff},
		color.RGBA{0x2f, 0x81, 0xf7, 0xff},
		color.RGBA{0x2e, 0xa0, 0x43, 0xff},
		color.RGBA{0xa3, 0x71, 0xf7, 0xff},
		color.RGBA{0xbf, 0x87, 0x00, 0xff},
	}
)

// The labels stand beside the plot, each at the end of its line.
const (
	width      = 23 * vg.Centimeter
	height     = 11 * vg.Centimeter
	labelWidth = 5.5 * vg.Centimeter
	labelSize  = vg.Length(11)
)

// plot writes the chart into the folder, if there is one.
func (r *report) plot(c chart) error {
	if r.folder == "" {
		return nil
	}
	if len(c.lines) > len(inks) {
		return fmt.Errorf("%s: %d lines, and colours for %d", c.file, len(c.lines), len(inks))
	}
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Label.TextStyle.Color = ink, ink
		axis.Tick.Color, axis.Tick.Label.Color = ink, ink
	}
	p.Title.TextStyle.Color, p.Title.Padding = ink, vg.Points(8)
	if c.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, wholeTicks{}
	}
	if c.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, wholeTicks{}
	}
	for i, l := range c.lines {
		if err := addLine(p, inks[i], l); err != nil {
			return err
		}
	}
	svg := vgsvg.New(width, height)
	page := draw.Crop(draw.New(svg), vg.Points(4), -vg.Points(4), vg.Points(4), -vg.Points(6))
	inner := draw.Crop(page, 0, -labelWidth, 0, 0)
	p.Draw(inner)
	drawLabels(p, inner, c.lines)
	var text bytes.Buffer
	if _, err := svg.WriteTo(&text); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.folder, c.file+".svg"), text.Bytes(), 0o644)
}

// wholeTicks writes 1,000,000 at a logarithmic axis, and not 1e+06. Of more than
// five labels it writes every second one.
type wholeTicks struct{}

func (wholeTicks) Ticks(from, to float64) []plot.Tick {
	ticks := plot.LogTicks{Prec: -1}.Ticks(from, to)
	var labelled []*plot.Tick
	for i := range ticks {
		if ticks[i].Label != "" {
			labelled = append(labelled, &ticks[i])
		}
	}
	for i, tick := range labelled {
		if tick.Label = grouped(tick.Value); len(labelled) > 5 && i%2 == 1 {
			tick.Label = ""
		}
	}
	return ticks
}

// grouped writes a number with a comma between thousands.
func grouped(x float64) string {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	for at := len(text) - 3; at > 0 && x >= 1000; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func addLine(p *plot.Plot, ink color.Color, l line) error {
	dots, err := plotter.NewScatter(plotted(l.points))
	if err != nil {
		return err
	}
	along := l.points
	if l.formula != nil {
		along = l.formula
	}
	drawn, err := plotter.NewLine(plotted(along))
	if err != nil {
		return err
	}
	drawn.Color, drawn.Width = ink, vg.Points(1.5)
	dots.Color, dots.Shape, dots.Radius = ink, draw.CircleGlyph{}, vg.Points(2.5)
	p.Add(drawn, dots)
	return nil
}

func plotted(points []point) plotter.XYs {
	all := make(plotter.XYs, len(points))
	for i, at := range points {
		all[i].X, all[i].Y = at.x, at.y
	}
	return all
}

// drawLabels writes each line's name at its end, above a line that ends within the
// plot. Labels that would overlap move apart.
func drawLabels(p *plot.Plot, page draw.Canvas, lines []line) {
	data := p.DataCanvas(page)
	x, y := p.Transforms(&data)
	type label struct {
		line int
		y    vg.Length
	}
	labels := make([]label, len(lines))
	for i, l := range lines {
		end := l.points[len(l.points)-1]
		if labels[i] = (label{i, y(end.y)}); end.x < p.X.Max {
			labels[i].y += labelSize
		}
	}
	slices.SortFunc(labels, func(a, b label) int { return int(a.y*100) - int(b.y*100) })
	for i := 1; i < len(labels); i++ {
		labels[i].y = max(labels[i].y, labels[i-1].y+labelSize*1.3)
	}
	for _, at := range labels {
		l := lines[at.line]
		style := p.X.Label.TextStyle
		style.Color, style.Font.Size, style.YAlign = inks[at.line], labelSize, draw.YCenter
		style.XAlign = draw.XLeft
		end := l.points[len(l.points)-1]
		page.FillText(style, vg.Point{X: x(end.x) + vg.Points(8), Y: at.y}, l.name)
	}
}
