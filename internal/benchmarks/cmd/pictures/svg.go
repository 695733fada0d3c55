package main

import (
	"fmt"
	"html"
	"strings"
)

// inks are the colours on one kind of page. The background is the page's.
type inks struct{ text, soft, line, accent, blue, pale string }

var (
	light = inks{"#1f2328", "#59636e", "#d1d9e0", "#c63d06", "#1f5fbf", "#fbe3d6"}
	dark  = inks{"#f0f6fc", "#9198a1", "#3d444d", "#ff8a57", "#7fb0ff", "#4a2c1f"}
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

func (s *sheet) rule(x1, y1, x2, y2 float64, colour, dash string) {
	if dash != "" {
		dash = ` stroke-dasharray="` + dash + `"`
	}
	fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"%s/>`+"\n", x1, y1, x2, y2, colour,
		dash)
}

func (s *sheet) box(x, y, w, h float64, fill, stroke string) {
	fmt.Fprintf(s, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" stroke="%s"/>`+"\n", x, y, w, h,
		fill, stroke)
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
