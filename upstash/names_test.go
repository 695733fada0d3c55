package upstash

import (
	"encoding"
	"fmt"
	"testing"
)

// TestNamesInJSON: JSON and log/slog have the words of the commands, as fmt does.
func TestNamesInJSON(t *testing.T) {
	for want, v := range map[string]any{
		"BYTE": Byte, "BIT": Bit, "Unit(9)": Unit(9),
		"WRAP": Wrap, "SAT": Sat, "FAIL": Fail, "Overflow(9)": Overflow(9),
	} {
		m, ok := v.(encoding.TextMarshaler)
		if !ok {
			t.Errorf("%T has no MarshalText: JSON shows %d, want %q", v, v, want)
			continue
		}
		if got, err := m.MarshalText(); string(got) != want || fmt.Sprint(v) != want || err != nil {
			t.Errorf("%T is %q in JSON, %v, and %v in fmt, want %q", v, got, err, v, want)
		}
	}
}
