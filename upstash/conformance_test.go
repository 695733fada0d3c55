//go:build !wasm

package upstash_test

import (
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
)

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, url string) upstash.Transport {
		return upstash.DefaultTransport(t, url)
	})
}
