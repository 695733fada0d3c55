package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// Keys, items, file names and a server's texts may hold characters that control
// a terminal or forge a line. None of them is printed unescaped.

// printable quotes a key, an item or a file's name if it holds more than
// letters, marks, digits, punctuation and spaces.
func printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// beginning is printable of an item, cut if it is long.
func beginning(item string) string {
	const most = 60 // runes
	for i := range item {
		if utf8.RuneCountInString(item[:i]) == most {
			return printable(item[:i]) + " ..."
		}
	}
	return printable(item)
}

// rounded returns x with two digits that count.
func rounded(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'e', 1, 64), 64)
	return x
}

// twice returns twice a number as people write a flag, rounded up to two digits:
// 250k.
func twice(n uint64) string {
	f, letter := 2*float64(n), ""
	step := math.Pow(10, max(0, math.Floor(math.Log10(f))-1))
	f = math.Ceil(f/step) * step
	for _, next := range []string{"k", "M", "G"} {
		if f >= 1000 {
			f, letter = f/1000, next
		}
	}
	return strconv.FormatFloat(f, 'f', -1, 64) + letter
}

// oneLine escapes the characters that do not belong in a line of text.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := fmt.Sprintf("%+q", string(r))
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// harmless escapes each line of a text with oneLine.
func harmless(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = oneLine(line)
	}
	return strings.Join(lines, "\n")
}

// escapeJSON writes each unprintable character of a JSON text as \u and four
// digits. A JSON encoder leaves many of them as they are, such as DEL, U+009B
// and U+202E. The only one outside of strings is the line break at the end.
func escapeJSON(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// table draws rows whose cells are divided by tabs.
func table(rows ...string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush()
	return strings.TrimRight(b.String(), "\n")
}

// ttl formats a time to live in a few characters; none is "never".
func ttl(d time.Duration) string {
	if d <= 0 {
		return "never"
	}
	return human.Span(d)
}

func expiry(d time.Duration) string {
	if d <= 0 {
		return "no expiry"
	}
	return "expires in " + ttl(d)
}

func expires(left time.Duration) string {
	if left <= 0 {
		return "does not expire"
	}
	return expiry(left)
}

// falsePositives says a rate. That of fnv1a is only a lower bound.
func falsePositives(scheme bloom.Scheme, rate float64) string {
	if rate == 0 {
		return "no false positives"
	}
	if text := rateOfScheme(scheme, rate); text != human.Unknown {
		return text + " false positives"
	}
	return "false positives " + human.Unknown
}

func rateOfScheme(scheme bloom.Scheme, rate float64) string {
	if scheme == bloom.SchemeFNV1a {
		return human.AtLeast(rate)
	}
	return human.OneIn(rate)
}

// estimated returns "about 2,000 items". If every cell is set, nobody knows how
// many more there are. The estimate for fnv1a is too low. A cuckoo filter counts.
func estimated(scheme bloom.Scheme, items uint64, saturated bool) string {
	if saturated {
		return "more than " + human.Counted(items, "item")
	}
	if scheme == bloom.SchemeCuckoo {
		return human.Counted(items, "item")
	}
	if scheme == bloom.SchemeFNV1a {
		return "about " + human.Counted(items, "item") + " or more"
	}
	return "about " + human.Counted(items, "item")
}
