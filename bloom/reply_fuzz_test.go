package bloom

import (
	"encoding/json"
	"fmt"
	"testing"
)

// FuzzExistsReply gives Exists any response body. If it accepts one, another
// JSON reader must find the same in it: the header, and k bits of 0 or 1.
func FuzzExistsReply(f *testing.F) {
	header := newWireFilter(f, SchemeXXH3, nil).rec.Header
	for _, result := range []string{
		"[%d,1,1,1,1,1,1,1]", "[%d,0,1,1,1,1,1,1]", "[%d,1,1,1,1,1,1]", "[%d,1,1,1,1,1,1,1,1]",
		"[%d,null,1,1,1,1,1,1]", "[ %d , 1,1,1,1,1,1,0 ]", "[%d.0,0,0,0,0,0,0,0]", "[0,0,0,0,0,0,0,0]",
	} {
		f.Add(`{"result":` + fmt.Sprintf(result, header) + `}`)
		f.Add(`{"error":null,"result":` + fmt.Sprintf(result, header) + `}`)
	}
	f.Add(`{"error":"ERR no"}`)
	f.Fuzz(func(t *testing.T, body string) {
		filter := newWireFilter(t, SchemeXXH3, always(body))
		found, err := filter.Exists(t.Context(), "user-123@example.com")
		if err != nil {
			if found {
				t.Fatalf("found, with %v", err)
			}
			return
		}
		var members map[string]json.RawMessage
		var result []*int64
		if err := json.Unmarshal([]byte(body), &members); err != nil {
			t.Fatalf("an answer from something that is not JSON: %v", err)
		}
		if err := json.Unmarshal(members["result"], &result); err != nil {
			t.Fatalf("an answer from something that is not an array of integers: %v", err)
		}
		if len(result) != 1+filter.rec.geo.Hashes || result[0] == nil || *result[0] != filter.rec.Header {
			t.Fatalf("an answer from %d elements, or another header", len(result))
		}
		all := true
		for _, bit := range result[1:] {
			if bit == nil || *bit != 0 && *bit != 1 {
				t.Fatal("an answer from something that is not a bit")
			}
			all = all && *bit == 1
		}
		if found != all {
			t.Fatalf("Exists = %v, want %v", found, all)
		}
	})
}
