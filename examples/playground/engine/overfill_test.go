package engine

import (
	"math"
	"testing"
)

// Measured rates follow the formula, within four standard deviations of the
// sample and 5% for the filter itself.
func TestOverfill(t *testing.T) {
	o, err := NewOverfill()
	if err != nil {
		t.Fatal(err)
	}
	var v OverView
	for range overSteps {
		v = o.Step()
	}
	if !v.Done || len(v.Lines[0].Measured) != overSteps {
		t.Fatalf("done %v after %d points, want true after %d", v.Done, len(v.Lines[0].Measured), overSteps)
	}
	for _, line := range v.Lines {
		for i, m := range line.Measured {
			want := line.Formula[i+1].Y
			spread := 100 * 4 * math.Sqrt(want/100/overStrangers)
			if math.Abs(m.Y-want) > spread+0.05*want {
				t.Errorf("%s at %v: %v%%, formula %v%%", line.Name, m.X, m.Y, want)
			}
		}
	}
	wantText(t, v.Text, "6,000 items, 3.0 times", "Of 50,000 strangers")
	if again := o.Step(); len(again.Lines[0].Measured) != overSteps {
		t.Errorf("Step after the end: %d points, want %d", len(again.Lines[0].Measured), overSteps)
	}
}
