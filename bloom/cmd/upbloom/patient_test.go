package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestPostGoesAroundNoProxy: a proxy whose URL cannot be used is an error.
func TestPostGoesAroundNoProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://user:hunter%ss@proxy.test:8080")
	t.Setenv("https_proxy", "http://user:hunter%ss@proxy.test:8080")
	p := &patient{url: "https://db.example.test", token: "t", lost: new(int32), unanswered: new(int32), attempts: new(int32)}
	_, err := p.posted(t.Context(), "", []string{"PING"})
	if text := fmt.Sprint(err); !strings.Contains(text, "HTTPS_PROXY") || strings.Contains(text, "hunter") {
		t.Errorf("got %v, want an error that names HTTPS_PROXY", err)
	}
}
