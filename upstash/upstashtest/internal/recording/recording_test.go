package recording

import (
	"bytes"
	"encoding/json" // the reader that go-json is compared with
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/upbloom/upbloom/internal/lots"
)

func FuzzParseRecording(f *testing.F) {
	request := `"request": {"method": "POST", "path": "/pipeline", "encoding": "base64",
		"body": [["GET", "a"], []]}`
	for _, seed := range []string{
		`{"version": 1, "exchanges": []}`,
		`{"version": 1, "exchanges": [{` + request + `, "response": {"failure": "no answer"}}]}`,
		`{"version": 1, "exchanges": [{` + request + `,
			"response": {"status": 200, "body": [{"result": 1.50}, null]}}]}`,
		`{"version": 1, "exchanges": [{` + request + `, "response": {"status": 503, "text": "<b>\u2028"}}]}`,
		`{"version": 1, "exchanges": [{` + request + `, "response": {"status": 200, "base64": "gA=="}}]}`,
		`{"version": 1, "exchanges": [{` + request + `,
			"response": {"status": 200, "body": null, "base64": ""}}]}`,
	} {
		f.Add([]byte(seed))
	}
	for _, file := range []string{"../../testdata/webhooks.json", "../../testdata/counter.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := parseRecording(data)
		if err != nil {
			return
		}
		once := rec.layout()
		again, err := parseRecording(once)
		if err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, once)
		}
		if twice := again.layout(); !bytes.Equal(once, twice) {
			t.Errorf("written, read and written again, it is\n%s\nnot\n%s", twice, once)
		}
		for i := range rec.Exchanges {
			want, got := rec.Exchanges[i], again.Exchanges[i]
			if want.Request.key() != got.Request.key() ||
				!bytes.Equal(want.Response.bytes(), got.Response.bytes()) {
				t.Errorf("exchange %d is another:\n%s", i+1, once)
			}
		}
	})
}

func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[1, 9223372036854775807]", "{\"a\" : \"\xff\"}", "+OK\r\n", "\x00\xfe",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p := newPayload(body)
		want := body
		if valid := json.Valid(body) && utf8.Valid(body); valid != (p.JSON != nil) {
			t.Errorf("%q is JSON: %v, want %v", body, !valid, valid)
		} else if valid {
			var compact bytes.Buffer
			_ = json.Compact(&compact, body)
			want = compact.Bytes()
		}
		if got := p.bytes(); !bytes.Equal(got, want) {
			t.Errorf("%q became %q", body, got)
		}
	})
}

func FuzzDifference(f *testing.F) {
	f.Add(`["GET","a"]`, `["GET","b"]`)
	f.Add(`[["GET","a"],["GET"]]`, `[["GET","a"],[]]`)
	f.Add(`[["a"]]`, `["a"]`)
	f.Add(`[["a","b"],[]]`, `[["a","b"]]`)
	f.Add(`["SET","`+strings.Repeat("é", 100)+`"]`, `["SET","`+strings.Repeat("é", 99)+`"]`)
	f.Add(`[["a"]]`, `[["a"],["b"]]`)
	f.Add("", "[1]")
	f.Add("[1]", "[]")
	f.Add("[[1]]", "[[]]")
	f.Add("[[]]", "[[[]]]")
	f.Fuzz(func(t *testing.T, a, b string) {
		want := recordedRequest{Method: "POST", Path: "/", payload: newPayload([]byte(a))}
		got := recordedRequest{Method: "POST", Path: "/", payload: newPayload([]byte(b))}
		if want.key() == got.key() {
			return
		}
		text := difference(want, got)
		if line := summary(got); !strings.HasPrefix(line, "POST /") {
			t.Errorf("the summary of %q is %q", b, line)
		}
		if !strings.Contains(text, "want: ") || !strings.Contains(text, "\ngot:  ") {
			t.Fatalf("of %q and %q it shows %q", a, b, text)
		}
		if want.JSON == nil || got.JSON == nil {
			return // no client sends such a body
		}
		_, sides, _ := strings.Cut(text, "want: ")
		w, g, _ := strings.Cut(sides, "\ngot:  ")
		if g, _, _ = strings.Cut(g, "\n"); w == g {
			t.Errorf("of %q and %q it shows twice %q", a, b, w)
		}
	})
}

// TestBindOnlyEqualRequests compares a request with a recorded one of the same
// shape, but with the drawn numbers in another order. That must not bind them.
func TestBindOnlyEqualRequests(t *testing.T) {
	request := func(args string) recordedRequest {
		body := []byte(`["EVAL","return 1","0",` + args + `]`)
		return recordedRequest{Method: "POST", Path: "/", payload: newPayload(body)}
	}
	drawn := func(count uint64) string {
		return strconv.Quote(strconv.FormatUint(firstOfBirth|drawnNumber(count)>>birthShift, 10))
	}
	a, b, c, d := drawn(0), drawn(1), drawn(2), drawn(3)
	x, y, v, w := drawn(5), drawn(6), drawn(7), drawn(8)
	first, second := request(a+","+b+","+a), request(c+","+d+","+d)
	p := newPlayer(t, "file", recording{Exchanges: []exchange{{Request: first}, {Request: second}}})
	for i, args := range []string{x + "," + y + "," + y, v + "," + w + "," + v} {
		if got, ok := p.take(request(args), ""); !ok || got.Request.key() != []recordedRequest{second, first}[i].key() {
			t.Errorf("request %d is answered as %s", i, got.Request.key())
		}
	}
	for made, recorded := range p.recorded {
		if p.bind([]string{"other"}, []string{made}) || p.bind([]string{recorded}, []string{"other"}) {
			t.Errorf("%s and %s get another partner", made, recorded)
		}
	}
}

// TestAttemptsHaveOnePartner replays commands of several attempts, whose birth numbers
// differ: from a file of now, and from an older one, in which they are equal, and
// those of two commands differ in the same bits.
func TestAttemptsHaveOnePartner(t *testing.T) {
	request := func(birth int64) recordedRequest {
		body := fmt.Appendf(nil, `["EVAL","return 1","0","%d"]`, birth)
		return recordedRequest{Method: "POST", Path: "/", payload: newPayload(body)}
	}
	drawn := func(count uint64) int64 { return int64(firstOfBirth | drawnNumber(count)>>birthShift) }
	const half = 1 << (countBits - 1)
	a, b := drawn(half+1), drawn(half+2)
	made := []int64{a, lots.OfAttempt(a, 1), b}
	older := int64(firstOfBirth | (mark<<4|olderNibble)<<(markShift-4-birthShift))
	for name, file := range map[string]struct{ recorded, want []int64 }{
		"now":   {[]int64{drawn(0), lots.OfAttempt(drawn(0), 1), drawn(1)}, made},
		"older": {[]int64{older, older, older | 1<<10}, []int64{a, a, b}},
	} {
		var rec recording
		for _, birth := range file.recorded {
			answer := recordedResponse{Status: 200, payload: newPayload(fmt.Appendf(nil, `{"result":[%d]}`, birth))}
			rec.Exchanges = append(rec.Exchanges, exchange{Request: request(birth), Response: answer})
		}
		p := newPlayer(t, "file", rec)
		for i, birth := range made {
			got, ok := p.take(request(birth), "")
			if want := fmt.Sprintf(`{"result":[%d]}`, file.want[i]); !ok || string(got.Response.bytes()) != want {
				t.Errorf("%s: request %d is answered %s, want %s", name, i, got.Response.bytes(), want)
			}
		}
	}
}

// TestSecrets learns from a request to each address. The first column is the host
// that is a secret.
func TestSecrets(t *testing.T) {
	for host, address := range map[string]string{
		"db.example.test": "https://DB.example.test:8443", // by whatever port
		"10.0.0.7":        "http://10.0.0.7:8079/base",
		"127.0.0.1:8079":  "http://127.0.0.1:8079", // 127.0.0.1 alone is none
		"[::1]:8079":      "http://[::1]:8079",
		"localhost:8079":  "http://localhost:8079",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer AbCd")
		s := make(secrets)
		s.learn(req)
		for text, want := range map[string]string{
			"see https://" + host + "/console": "the host",
			strings.ToUpper(host):              "the host",
			host[:len(host)-1]:                 "",
			host[1:]:                           "",
			`{"error":"token abcd"}`:           "the token",
		} {
			if got := s.in([]byte(text)); got != want {
				t.Errorf("in %q it finds %q, want %q", text, got, want)
			}
		}
	}
}
