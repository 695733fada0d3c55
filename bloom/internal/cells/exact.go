package cells

import "math"

// Two programs with the same Config must compute the same number of bits. So
// whatever decides a size is computed by + - * / alone, in one order on every
// platform: the functions of package math are assembly on some. A product is
// converted explicitly before it is added, which keeps compilers from fusing
// the two operations.

// expNeg returns e^-x for x from 0 up: the Taylor series of e^(x/16) and four
// squarings of its inverse.
func expNeg(x float64) float64 {
	y := x / 16
	t := 1.0
	for i := 40; i >= 1; i-- {
		t = 1 + float64(float64(y*t)/float64(i))
	}
	r := 1 / t
	for range 4 {
		r = float64(r * r)
	}
	return r
}

// ln returns ln x for x above 0, with an error of one or two units in the
// last place: x is f * 2^e, and ln f = 2 atanh((f-1)/(f+1)).
func ln(x float64) float64 {
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, e = 2*f, e-1
	}
	s := (f - 1) / (f + 1) // 0.172 at most
	square := float64(s * s)
	sum := 0.0
	for i := 27; i >= 1; i -= 2 {
		sum = 1/float64(i) + float64(square*sum)
	}
	return float64(float64(e)*math.Ln2) + float64(2*s*sum)
}
