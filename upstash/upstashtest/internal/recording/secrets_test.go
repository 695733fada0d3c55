package recording

import (
	"net/http"
	"net/url"
	"testing"
)

func TestSecretsOfALiveDatabase(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"https://Eu1-name-12345.example.test:8443/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer AbCd")
	var s secrets
	s.learn(req)
	for text, want := range map[string]string{
		"see https://eu1-NAME-12345.example.test/console": "the host", // without the port
		`{"error":"token abcd"}`:                          "the token",
		"example.test":                                    "",
	} {
		if got := s.in([]byte(text)); got != want {
			t.Errorf("in %q it finds %q, want %q", text, got, want)
		}
	}
}

func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://db.example.test":   "db.example.test",
		"http://10.0.0.7:8079/base": "10.0.0.7",
		"http://127.0.0.1:8079":     "127.0.0.1:8079",
		"http://[::1]:8079":         "[::1]:8079",
		"http://localhost:8079":     "localhost:8079",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := hostOf(u); got != want {
			t.Errorf("hostOf(%s) = %s, want %s", address, got, want)
		}
	}
}
