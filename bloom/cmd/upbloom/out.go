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

// state is a filter's Stats, for programs. TTL is in seconds, 0 if there is
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

// unread is a filter that could not be read, for programs.
type unread struct {
	Key   string `json:"key"`
	Error string `json:"error"`
}

func stateOf(key string, s bloom.Stats) state {
	return state{
		Key: key, Kind: s.Kind.String(), Scheme: s.Geometry.Scheme.String(), Bits: s.Geometry.Bits,
		Hashes: s.Geometry.Hashes, Seeded: s.Seeded, Bytes: s.Bytes, SetBits: s.SetBits, Fill: s.Fill,
		Items: s.Items, CapacityAbout: s.Capacity, Rate: s.LiveFPRate, RateAtCap: s.FPRate,
		OverCapacity: s.OverCapacity(), Saturated: s.Saturated, TTL: s.TTL.Seconds(),
	}
}

// ttl writes a time to live in a few characters, "-" if there is none.
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

// moved is what load, save, restore or replace did, for programs.
type moved struct {
	Key     string  `json:"key"`
	Items   *uint64 `json:"items,omitempty"`   // that were read, of load and replace
	NewBits *uint64 `json:"newBits,omitempty"` // of load and restore, if known
	// NewBitsUnknown is set if the last step was sent again after a lost reply.
	NewBitsUnknown bool    `json:"newBitsUnknown,omitempty"`
	Created        bool    `json:"created,omitempty"`
	Bytes          int64   `json:"bytes"`
	Requests       int64   `json:"requests,omitempty"`
	Commands       int64   `json:"commands,omitempty"`
	Seconds        float64 `json:"seconds"`
}

// merged is what a load or a restore did.
func merged(key string, r bloom.LoadResult) moved {
	m := moved{
		Key: key, NewBitsUnknown: r.NewBitsUnknown, Created: r.Created, Bytes: r.Bytes,
		Requests: r.Requests, Commands: r.Commands, Seconds: r.Duration.Seconds(),
	}
	if !r.NewBitsUnknown {
		m.NewBits = &r.NewBits
	}
	return m
}

func (m moved) text(what string) string {
	s := what
	if m.Items != nil {
		s += " " + counted(*m.Items, "item") + ","
	}
	if m.Created {
		s += " a new filter,"
	}
	switch {
	case m.NewBits != nil:
		s += " " + counted(*m.NewBits, "new bit") + ","
	case m.NewBitsUnknown:
		s += " an unknown number of new bits (a reply was lost),"
	}
	s += " " + human.Bytes(uint64(m.Bytes))
	if m.Requests > 0 {
		s += fmt.Sprintf(" in %d requests (%d commands)", m.Requests, m.Commands)
	}
	return s + fmt.Sprintf(", %v", time.Duration(m.Seconds*float64(time.Second)).Round(time.Millisecond))
}

// counted writes "1 item" or "2,000 items".
func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return human.Count(n) + " " + what + "s"
}
