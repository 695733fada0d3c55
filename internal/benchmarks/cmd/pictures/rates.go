package main

import (
	"fmt"
	"math"

	"github.com/upbloom/upbloom/bloom"
)

// The measurement: a filter for this many items, asked for this many strangers
// at each step, up to twice its capacity.
const (
	rateCapacity  = 20_000
	rateStrangers = 200_000
	rateSteps     = 16 // an eighth of the capacity each
)

// A rateLine is one scheme: the rate at each step, in items over capacity.
type rateLine struct {
	name     string
	geometry bloom.Geometry
	measured [][2]float64
}

func measureRates() ([]rateLine, error) {
	strangers := make([]string, rateStrangers)
	for i := range strangers {
		strangers[i] = fmt.Sprintf("stranger-%d@example.com", i)
	}
	var lines []rateLine
	for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3} {
		g, err := bloom.Config{Capacity: rateCapacity, FPRate: 0.01, Scheme: scheme}.Geometry()
		if err != nil {
			return nil, err
		}
		l, line := bloom.NewLocal(g), rateLine{name: "classic, xxh3", geometry: g}
		if scheme == bloom.SchemeBlocked {
			line.name = "blocked"
		}
		for n := range rateSteps * rateCapacity / 8 {
			l.Add(fmt.Sprintf("member-%d@example.com", n))
			if (n+1)%(rateCapacity/8) != 0 {
				continue
			}
			found := 0
			for _, item := range strangers {
				if l.Exists(item) {
					found++
				}
			}
			line.measured = append(line.measured,
				[2]float64{float64(n+1) / rateCapacity, float64(found) / rateStrangers})
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func drawRates(ink inks, lines []rateLine) string {
	const width, height, left, right, top, bottom = 800, 330, 104, 112, 34, 46
	const lowest, highest = -5.0, 0.0 // powers of ten
	s := newSheet(ink, width, height,
		"False positive rate by how full a filter for 1 in 100 is: measured, and by the formula")
	x := func(v float64) float64 { return left + v/2*(width-left-right) }
	y := func(rate float64) float64 {
		return top + (highest-math.Log10(rate))/(highest-lowest)*(height-top-bottom)
	}
	for power, name := range []string{
		"every one", "1 in 10", "1 in 100", "1 in 1,000", "1 in 10,000", "1 in 100,000",
	} {
		at := y(math.Pow(10, -float64(power)))
		s.rule(left, at, width-right, at, ink.line, "")
		s.words(left-8, at+4.5, "end", ink.soft, name)
	}
	for v := 0.0; v <= 2; v += 0.5 {
		s.words(x(v), height-bottom+18, "middle", ink.soft, fmt.Sprint(v))
	}
	s.rule(x(1), top, x(1), height-bottom, ink.soft, "3 4")
	s.words(x(1), top-10, "middle", ink.soft, "the capacity it was made for")
	s.words(x(1), height-8, "middle", ink.soft, "items, in capacities")
	s.words(left, top-10, "start", ink.soft, "strangers found")
	for i, line := range lines {
		colour := []string{ink.accent, ink.blue}[i]
		var points [][2]float64
		for step := 1; step <= 200; step++ {
			v := float64(step) / 100
			rate := line.geometry.FalsePositiveRate(uint64(math.Round(v * rateCapacity)))
			if math.Log10(rate) >= lowest {
				points = append(points, [2]float64{x(v), y(rate)})
			}
		}
		s.curve(points, colour)
		for _, p := range line.measured {
			if p[1] > 0 && math.Log10(p[1]) >= lowest {
				s.dot(x(p[0]), y(p[1]), colour)
			}
		}
		end := points[len(points)-1]
		s.words(end[0]+10, end[1]+[]float64{10, 0}[i], "start", colour, "*"+line.name)
	}
	s.words(x(2), height-bottom-26, "end", ink.soft, "dots: measured, 200,000 strangers each")
	s.words(x(2), height-bottom-9, "end", ink.soft, "lines: the formula")
	return s.end()
}
