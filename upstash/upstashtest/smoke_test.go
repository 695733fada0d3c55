package upstashtest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestSmoke(t *testing.T) {
	s := NewServer(t)
	for _, b := range []string{`["SET","a","b"]`, `["BITFIELD","k","SET","u1","9","1","GET","u8","1"]`,
		`["EVAL","return redis.call('BITFIELD',KEYS[1],'GET','u8','8')","1","k"]`, `["NOPE"]`,
		`["GETBIT","k",4294967295]`} {
		req, _ := http.NewRequest("POST", s.URL, strings.NewReader(b))
		req.Header.Set("Authorization", "Bearer "+s.Token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		t.Log(resp.StatusCode, string(body), resp.Header)
	}
	t.Log(s.Stats())
}
