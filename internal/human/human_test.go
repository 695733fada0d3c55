package human

import (
	"math"
	"testing"
	"time"
)

// check compares what a function says of each value.
func check[T comparable](t *testing.T, says func(T) string, want map[T]string) {
	t.Helper()
	for v, want := range want {
		if got := says(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	check(t, Count, map[uint64]string{
		0: "0", 999: "999", 1000: "1,000", 47926: "47,926",
		math.MaxUint64: "18,446,744,073,709,551,615",
	})
}

func TestCounted(t *testing.T) {
	for want, n := range map[string]uint64{"0 processes": 0, "1 process": 1, "10 processes": 10} {
		if got := Counted(n, "process"); got != want {
			t.Errorf("Counted(%d) = %q, want %q", n, got, want)
		}
	}
	if got := Counted(2000, "item"); got != "2,000 items" {
		t.Errorf("%q", got)
	}
}

func TestBytes(t *testing.T) {
	check(t, Bytes, map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 11980: "11.7 KiB", 1 << 29: "512.0 MiB",
		1<<20 - 1: "1.0 MiB", 1<<20 - 53: "1023.9 KiB", 1<<30 - 1: "1.0 GiB",
		math.MaxUint64: "16.0 EiB",
	})
}

func TestSpan(t *testing.T) {
	check(t, Span, map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1.5s", 59*time.Second + 999*time.Millisecond: "59.999s",
		time.Minute: "1m", 90 * time.Second: "1m30s", 10*time.Minute + 10*time.Second: "10m10s", 20 * time.Minute: "20m",
		time.Hour - time.Second: "59m59s", time.Hour - 1: "1h", 26 * time.Hour: "26h",
		48*time.Hour - time.Hour/2 - 1: "47h30m", 48*time.Hour - time.Hour/2: "2d",
		53 * time.Hour: "2d5h", 720 * time.Hour: "30d",
	})
}

func TestExact(t *testing.T) {
	check(t, Exact, map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1.5s", time.Minute: "1m", 42 * time.Second: "42s",
		time.Hour + time.Second: "1h1s", 24*time.Hour + 4*time.Second: "24h4s", 48*time.Hour - 1: "47h59m59.999999999s",
		48 * time.Hour: "2d", 72*time.Hour + 12*time.Second: "3d12s", 280*time.Hour + 10*time.Second: "11d16h10s",
		90*24*time.Hour + 5*time.Minute: "90d5m",
	})
}

func TestAtLeast(t *testing.T) {
	check(t, AtLeast, map[float64]string{0: "none", 0.01: "at least 1 in 100", 1e-20: "not known"})
}

func TestOneIn(t *testing.T) {
	check(t, OneIn, map[float64]string{
		0: "none", 1: "100 in 100", 0.996: "99.6 in 100", 0.96: "96 in 100", 0.95: "1 in 1.1", 0.5: "1 in 2.0", 0.01: "1 in 100", 0.0099: "1 in 101",
		1e-9: "1 in 1,000,000,000", 1e-20: "less than 1 in a billion",
	})
}
