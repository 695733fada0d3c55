package peertest

import (
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// headerFields splits a header word into its fields in JavaScript.
const headerFields = `redis.pipeline().bitfield("headed").get("u53", 0).exec().exec().then(([[word]]) => {
	const field = (from, bits) => Number(BigInt.asUintN(bits, BigInt(word) >> BigInt(53 - from - bits)));
	return {
		set: field(0, 1), kind: field(1, 2), version: field(3, 2), scheme: field(5, 3),
		hashes: field(8, 6), seedTag: field(14, 7), bits: field(21, 32),
	};
})`

// TestHeaderReadsExactly reads the header of a filter from JavaScript, whose
// numbers represent 53 bits exactly.
func TestHeaderReadsExactly(t *testing.T) {
	install(t)
	server := upstashtest.NewServer(t)
	f, err := bloom.New(server.Client(), "headed", bloom.Config{Bits: 10_746_333, Hashes: 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `{"set":1,"kind":0,"version":1,"scheme":0,"hashes":4,"seedTag":0,"bits":10746333}`
	for _, set := range allSettings {
		t.Run(set.String(), func(t *testing.T) {
			out := play(t, session{
				URL: server.URL, Token: server.Token, Options: set, Steps: []string{headerFields},
			})
			check(t, step{"the header", want, ""}, out[0])
		})
	}
}
