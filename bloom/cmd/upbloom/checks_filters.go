package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A step is an operation on a filter. It reports whether its answer was right. The
// commands named by needs call it.
type step struct {
	name, needs string
	run         func() (bool, error)
}

// inTurn runs steps on a filter of a kind until one fails, and notes what hangs on
// that one: the next steps may need less of the database.
func (p *patient) inTurn(kind string, steps []step) string {
	for _, s := range steps {
		ok, err := s.run()
		switch {
		case err != nil:
			err = fmt.Errorf("%s: %w", s.name, err)
		case !ok:
			err = fmt.Errorf("%w: %s", errWrong, s.name)
		default:
			continue
		}
		method, _, _ := strings.Cut(s.name, " ")
		p.needs = fmt.Sprintf("%s of a %s; its %s in Go", s.needs, kindNoun(kind), method)
		return p.fail(err)
	}
	return ""
}

// askFilter runs a filter from Create to Delete, with each operation by script.
func askFilter(ctx context.Context, p *patient) string {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.001, TTL: scratchTTL}
	f, err := bloom.New(p.client, p.key("filter"), cfg)
	if err != nil {
		return p.fail(err)
	}
	l := bloom.NewLocal(f.Geometry())
	l.Add("of-replace")
	return p.inTurn(plainKind, []step{
		{"Create", "create", func() (bool, error) { return f.Create(ctx) }},
		{"Add", "add", func() (bool, error) { return f.Add(ctx, "of-add") }},
		{"Add again", "add", func() (bool, error) { seen, err := f.Add(ctx, "of-add"); return !seen, err }},
		{"Load", "load", func() (bool, error) {
			r, err := f.Load(ctx, slices.Values([]string{"of-load"}))
			return r.NewBits > 0, err
		}},
		{"Replace", "replace", func() (bool, error) { return true, f.Replace(ctx, l) }},
		{"Snapshot", "save", func() (bool, error) {
			s, err := f.Snapshot(ctx)
			return err == nil && s.Exists("of-replace") && !s.Exists("of-add"), err
		}},
		{"Stats", "create and info", func() (bool, error) {
			s, err := f.Stats(ctx)
			return s.Items == 1 && s.TTL > 0 && s.TTL <= scratchTTL, err
		}},
		{"Delete", "rm", func() (bool, error) { return f.Delete(ctx) }},
	})
}

// windowSpan is long beside the requests of askLife on a slow network, and short
// enough for a window to expire within scratchTTL.
const windowSpan = 3 * time.Minute

// askLife returns a check that runs a filter of a kind from Create to Delete. As
// the command create does, it reads the state of the new one.
func askLife(kind string) func(context.Context, *patient) string {
	return func(ctx context.Context, p *patient) string {
		h, err := newHandle(p.client, kind, p.key(kind), spec{
			Config: bloom.Config{Capacity: 1000, FPRate: 0.01, TTL: scratchTTL},
			span:   windowSpan, expireIdle: true, shards: 1,
		})
		if err != nil {
			return p.fail(err)
		}
		items := []string{"a", "b", "never"}
		return p.inTurn(kind, []step{
			{"Create", "create", func() (bool, error) { return h.Create(ctx) }},
			{"Stats", "create and info", func() (bool, error) { return true, p.readState(ctx, h, kind) }},
			{"AddAll", "add", func() (bool, error) {
				areNew, err := h.AddAll(ctx, items[:2])
				return err == nil && !slices.Contains(areNew, false), err
			}},
			{"ExistsAll", "check", func() (bool, error) {
				areIn, err := h.ExistsAll(ctx, items)
				return err == nil && slices.Equal(areIn, []bool{true, true, false}), err
			}},
			{"Delete", "rm", func() (bool, error) { return h.Delete(ctx) }},
		})
	}
}

// readState reads the state of a filter. One that has no TTL of its own it lets
// expire by another command first.
func (p *patient) readState(ctx context.Context, h handle, kind string) error {
	key, ok := map[string]string{cuckooKind: p.key(cuckooKind), shardedKind: p.key(shardedKind + ":0")}[kind]
	if ok {
		if _, err := p.client.Expire(ctx, key, scratchTTL); err != nil {
			return err
		}
	}
	_, err := opened{h, p.client, kind}.stats(ctx)
	return err
}

const (
	mebibyte = 1 << 20
	megabyte = 1_000_000
)

// size is a limit of the database in bytes: least is accepted, and less than
// refused. If the database named the limit, they differ by 1. If nothing was
// refused, refused is 0.
type size struct{ least, refused uint64 }

// text writes a size that was found in steps of unit bytes.
func (s size) text(unit uint64, name string) string {
	switch {
	case s.refused == 0:
		return fmt.Sprintf("at least %d %s", s.least/unit, name)
	case s.refused == s.least+1:
		return human.Count(s.least) + " bytes"
	case s.least == 0:
		return fmt.Sprintf("less than %d %s", s.refused/unit, name)
	}
	return fmt.Sprintf("between %d and %d %s", s.least/unit, s.refused/unit, name)
}

var limitNamed = regexp.MustCompile(`Limit: (\d+) bytes`)

// named returns the limit that a refusal names, and reports whether it does.
func named(refusal error) (limit uint64, ok bool) {
	var server *upstash.Error
	if !errors.As(refusal, &server) {
		return 0, false
	}
	m := limitNamed.FindStringSubmatch(server.Message)
	if m == nil {
		return 0, false
	}
	limit, err := strconv.ParseUint(m[1], 10, 63)
	return limit, err == nil
}

// largest tries sizes up to most, in steps of unit bytes, until the database
// names its limit or two neighbours remain. The error limit means that a size
// was too large. Another error of try ends the search.
func largest(most, unit uint64, limit error, try func(n uint64) error) (size, error) {
	var s size
	for n := most; ; n = (s.least + s.refused) / 2 / unit * unit {
		switch err := try(n); {
		case err == nil:
			s.least = n
		case !errors.Is(err, limit):
			return size{}, err
		default:
			if n, ok := named(err); ok {
				return size{n, n + 1}, nil
			}
			s.refused = n
		}
		if s.refused == 0 || s.refused-s.least <= unit {
			return s, nil
		}
	}
}

func askRequestLimit(ctx context.Context, p *patient) string {
	if p.brief {
		return p.fail(skipped{errors.New("not recorded, because the file would be large")})
	}
	most := uint64(mostPart)
	if p.large {
		most *= 2 // more than the smaller plans allow: the refusal names the limit
	}
	s, err := largest(most, mebibyte, upstash.ErrRequestTooLarge, func(n uint64) error {
		// A list that is not there takes nothing.
		_, err := p.client.Do(ctx, upstash.RawCmd("LPUSHX", make([]byte, n), p.key("none")).
			Timeout(time.Minute).Repeatable(true))
		return err
	})
	says := s.text(mebibyte, "MiB")
	switch {
	case err != nil:
		p.fail(err)
	case s.least < mostPart:
		p.fail(fmt.Errorf("%s: set upstash.WithMaxRequest(%d)", says, s.least))
	case s.refused == 0 && !p.large:
		says += "; --large asks for 16 MiB"
	}
	return says
}

// askRecordLimit writes the last byte of strings, so it sends little.
func askRecordLimit(ctx context.Context, p *patient) string {
	if !p.large {
		p.fail(skipped{errors.New("--large checks it; leave it out if the database has less than 100 MB free, or evicts")})
	}
	p.set(ctx, "large", "")
	if p.err != nil {
		return ""
	}
	s, err := largest(100*megabyte, megabyte, upstash.ErrRecordTooLarge, func(n uint64) error {
		last := strconv.FormatUint(n-1, 10)
		_, err := p.client.Do(ctx, upstash.Cmd("SETRANGE", p.key("large"), last, "a").Timeout(time.Minute))
		return err
	})
	p.fail(err)
	return s.text(megabyte, "MB")
}
