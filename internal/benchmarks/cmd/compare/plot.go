package main

import (
	"bytes"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

type point struct{ x, y float64 }

// line is one series, drawn as a line or, with dots, as dots of its own.
type line struct {
	name   string
	dots   bool
	points []point
}

type chart struct {
	file, title, x, y string
	logX, logY        bool
	lines             []line
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
		color.RGBA{0xdb, 0x61, 0xa2, 0xff},
		color.RGBA{0x1b, 0x9e, 0x9e, 0xff},
		color.RGBA{0x80, 0x80, 0x80, 0xff},
	}
	dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}}
)

// The legend stands beside the plot, where it covers no line.
const (
	width       = 23 * vg.Centimeter
	height      = 11 * vg.Centimeter
	legendWidth = 7.5 * vg.Centimeter
)

// plot writes the chart into the folder, if there is one.
func (r *report) plot(c chart) error {
	if r.folder == "" {
		return nil
	}
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Label.TextStyle.Color = ink, ink
		axis.Tick.Color, axis.Tick.Label.Color = ink, ink
	}
	p.Title.TextStyle.Color, p.Title.Padding = ink, vg.Points(8)
	legend := plot.NewLegend()
	legend.TextStyle.Color, legend.Top, legend.Left = ink, true, true
	legend.TextStyle.Font.Size, legend.Padding = vg.Points(10), vg.Points(3)
	if c.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if c.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for i, l := range c.lines {
		if err := addLine(p, &legend, i, l, c.paired()); err != nil {
			return err
		}
	}
	svg := vgsvg.New(width, height)
	page := draw.Crop(draw.New(svg), vg.Points(4), -vg.Points(4), vg.Points(4), -vg.Points(6))
	p.Draw(draw.Crop(page, 0, -legendWidth, 0, 0))
	legend.Draw(draw.Crop(page, width-legendWidth+vg.Points(12), 0, 0, -vg.Points(20)))
	var text bytes.Buffer
	if _, err := svg.WriteTo(&text); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.folder, c.file+".svg"), text.Bytes(), 0o644)
}

// paired reports whether dots and lines alternate, two of one colour.
func (c chart) paired() bool { return c.lines[0].dots }

func addLine(p *plot.Plot, legend *plot.Legend, i int, l line, paired bool) error {
	points := make(plotter.XYs, len(l.points))
	for j, at := range l.points {
		points[j].X, points[j].Y = at.x, at.y
	}
	n := i
	if paired {
		n = i / 2
	}
	ink := inks[n%len(inks)]
	drawn, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	drawn.Color, drawn.Width = ink, vg.Points(1.5)
	drawn.Dashes = dashes[n/len(inks)%len(dashes)]
	dots.Color, dots.Shape, dots.Radius = ink, draw.CircleGlyph{}, vg.Points(2.5)
	switch {
	case l.dots:
		p.Add(dots)
		legend.Add(l.name, dots)
	case paired:
		p.Add(drawn)
		legend.Add(l.name, drawn)
	default:
		p.Add(drawn, dots)
		legend.Add(l.name, drawn, dots)
	}
	return nil
}
