package json

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/internal/json/scan"
)

// FuzzAgainstScan compares the native library with the reader that wasm uses,
// because the platforms must not differ. The latter is compared with
// encoding/json.
func FuzzAgainstScan(f *testing.F) {
	for _, s := range []string{
		`{"result":null}`, `[{"result":1}]`, `"a\ud83d\ude00"`, `null`, `{"a":1,"a":2}`, `[1,]`, ` "x" y`,
		"\"\xff\"", `{"result":[1,2`, `[01]`, `[tru]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object, err := Object(data)
		wantObject, wantErr := scan.Object(data)
		if (err == nil) != (wantErr == nil) || err == nil && !maps.EqualFunc(object, wantObject, sameJSON) {
			t.Fatalf("Object(%q) = %s, %v, want %s, %v", data, object, err, wantObject, wantErr)
		}
		array, err := Array(data)
		wantArray, wantErr := scan.Array(data)
		if (err == nil) != (wantErr == nil) || err == nil && !slices.EqualFunc(array, wantArray, sameJSON) {
			t.Fatalf("Array(%q) = %s, %v, want %s, %v", data, array, err, wantArray, wantErr)
		}
		text, err := String(data)
		wantText, wantErr := scan.String(data)
		if (err == nil) != (wantErr == nil) || err == nil && text != wantText {
			t.Fatalf("String(%q) = %q, %v, want %q, %v", data, text, err, wantText, wantErr)
		}
	})
}

// sameJSON compares raw values; the libraries may differ in the white space
// that they leave around them.
func sameJSON(a RawMessage, b []byte) bool {
	return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}
