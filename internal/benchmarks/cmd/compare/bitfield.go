package main

import (
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/bloom"
)

// bits are the operations of a filter without a header, in one BITFIELD: one
// for each of 7 independent bits, or those of the blocked scheme. A client that
// sends only these shows the limit of its protocol.
type bits struct {
	key string
	geo bloom.Geometry
}

func independent(key string) bits {
	m := bloom.OptimalBits(capacity, rate)
	return bits{key, bloom.Geometry{
		Bits: m, Hashes: bloom.OptimalHashes(m, capacity), Scheme: bloom.SchemeXXH3,
	}}
}

func blocked(key string) (bits, error) {
	g, err := bloom.Config{Capacity: capacity, FPRate: rate}.Geometry()
	return bits{key, g}, err
}

// wordBits is the width of a word of the blocked scheme. An item has two bits
// in each of its words.
const wordBits = 53

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// write returns the arguments to set the items' bits.
func (b bits) write(items []string) []string {
	args := make([]string, 0, 4*len(items)*b.geo.Hashes)
	var buf [16]uint64
	for _, item := range items {
		for _, p := range b.geo.Positions(buf[:0], item) {
			args = append(args, "SET", "u1", decimal(p), "1")
		}
	}
	return args
}

// read returns the arguments to read the items' bits, or their words.
func (b bits) read(items []string) []string {
	args := make([]string, 0, 3*len(items)*b.geo.Hashes)
	var buf [16]uint64
	for _, item := range items {
		positions := b.geo.Positions(buf[:0], item)
		if b.geo.Scheme == bloom.SchemeXXH3 {
			for _, p := range positions {
				args = append(args, "GET", "u1", decimal(p))
			}
			continue
		}
		for i := 0; i < len(positions); i += 2 {
			args = append(args, "GET", "u53", decimal(positions[i]/wordBits*wordBits))
		}
	}
	return args
}

// found reports which of the items are in, by the answers to read.
func (b bits) found(items []string, answers []int64) ([]bool, error) {
	step := 1
	if b.geo.Scheme == bloom.SchemeBlocked {
		step = 2
	}
	each := b.geo.Hashes / step
	if len(answers) != each*len(items) {
		return nil, fmt.Errorf("%d answers for %d items", len(answers), len(items))
	}
	var buf [16]uint64
	found := make([]bool, len(items))
	for i, item := range items {
		mine := answers[i*each : (i+1)*each]
		found[i] = true
		if step == 1 {
			for _, bit := range mine {
				found[i] = found[i] && bit == 1
			}
			continue
		}
		for j, p := range b.geo.Positions(buf[:0], item) {
			bit := mine[j/2] >> (wordBits - 1 - p%wordBits) & 1
			found[i] = found[i] && bit == 1
		}
	}
	return found, nil
}
