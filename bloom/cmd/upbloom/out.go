package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// print writes v as JSON, or text for people.
func (a *app) print(v any, text string) error {
	if !a.json {
		_, err := fmt.Fprintln(a.out, text)
		return err
	}
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// state is a filter's Stats, for programs. Times are in seconds; a TTL of 0 is
// none.
type state struct {
	Key           string  `json:"key"`
	Kind          string  `json:"kind"`
	Scheme        string  `json:"scheme"`
	Bits          uint64  `json:"bits"`
	Hashes        int     `json:"hashes"`
	Seeded        bool    `json:"seeded"`
	Bytes         uint64  `json:"bytes"`
	SetBits       uint64  `json:"setBits"`
	Fill          float64 `json:"fill"`
	Items         uint64  `json:"items"`
	CapacityAbout uint64  `json:"capacityAbout"`
	Rate          float64 `json:"rate"`
	RateAtCap     float64 `json:"rateAtCapacity"`
	OverCapacity  bool    `json:"overCapacity"`
	Saturated     bool    `json:"saturated"`
	TTL           float64 `json:"ttl"`
}

func stateOf(key string, s bloom.Stats) state {
	return state{
		Key: key, Kind: s.Kind.String(), Scheme: s.Geometry.Scheme.String(), Bits: s.Geometry.Bits,
		Hashes: s.Geometry.Hashes, Seeded: s.Seeded, Bytes: s.Bytes, SetBits: s.SetBits, Fill: s.Fill,
		Items: s.Items, CapacityAbout: s.Capacity, Rate: s.LiveFPRate, RateAtCap: s.FPRate,
		OverCapacity: s.OverCapacity(), Saturated: s.Saturated, TTL: s.TTL.Seconds(),
	}
}

// ttl writes a time to live in a few characters.
func ttl(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return d.Round(time.Minute).String()
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// moved is what a move did.
type moved struct {
	Key      string  `json:"key"`
	Items    uint64  `json:"items,omitempty"`
	NewBits  uint64  `json:"newBits,omitempty"`
	Created  bool    `json:"created,omitempty"`
	Bytes    int64   `json:"bytes"`
	Requests int64   `json:"requests,omitempty"`
	Commands int64   `json:"commands,omitempty"`
	Seconds  float64 `json:"seconds"`
}

func (m moved) text(what string) string {
	s := what
	if m.Items > 0 {
		s += " " + human.Count(m.Items) + " items,"
	}
	s += " " + human.Bytes(uint64(m.Bytes))
	if m.Requests > 0 {
		s += fmt.Sprintf(" in %d requests (%d commands)", m.Requests, m.Commands)
	}
	return s + fmt.Sprintf(", %v", time.Duration(m.Seconds*float64(time.Second)).Round(time.Millisecond))
}
