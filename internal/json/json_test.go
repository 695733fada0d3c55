package json

import (
	"testing"

	"github.com/upbloom/upbloom/internal/json/scan"
)

// FuzzAgainstScan compares the native library with the reader for wasm, because
// the platforms must not differ. That reader's own tests compare it with
// encoding/json.
func FuzzAgainstScan(f *testing.F) {
	for _, s := range []string{
		`{"result":null}`, `[{"result":1}]`, `"a\ud83d\ude00"`, `null`, `{"a":1,"a":2}`, `[1,]`, ` "x" y`,
		"\"\xff\"", `{"result":[1,2`, `[01]`, `[tru]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := String(data)
		wantText, wantErr := scan.String(data)
		if (err == nil) != (wantErr == nil) || err == nil && text != wantText {
			t.Fatalf("String(%q) = %q, %v, want %q, %v", data, text, err, wantText, wantErr)
		}
	})
}
