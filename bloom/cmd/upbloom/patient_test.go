package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
)

// TestOverhearGoesAroundNoProxy: a proxy whose URL cannot be used is an error.
func TestOverhearGoesAroundNoProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://user:hunter%ss@proxy.test:8080")
	t.Setenv("https_proxy", "http://user:hunter%ss@proxy.test:8080")
	client, _ := (&patient{a: &app{}, url: "https://db.example.test"}).overhear("t")
	_, err := client.Do(t.Context(), upstash.Cmd("PING"))
	if text := fmt.Sprint(err); !strings.Contains(text, "HTTPS_PROXY") || strings.Contains(text, "hunter") {
		t.Errorf("got %v, want an error that names HTTPS_PROXY", err)
	}
}
