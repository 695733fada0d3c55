package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

const (
	mebibyte = 1 << 20
	megabyte = 1_000_000
)

// defaultPart is how many bytes of a filter Load and Replace send in a request,
// and mostPart the most that MovePartBytes takes.
const (
	defaultPart = 1 * mebibyte
	mostPart    = 8 * mebibyte
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

func askRequestLimit(ctx context.Context, p *patient) (string, error) {
	if p.brief {
		return "", skipped{errors.New("not recorded, because the file would be large")}
	}
	most := uint64(mostPart)
	if p.large {
		most *= 2 // more than the smaller plans allow: the refusal names the limit
	}
	s, err := largest(most, mebibyte, upstash.ErrRequestTooLarge, func(n uint64) error {
		return p.send(ctx, "large", make([]byte, n), emptyTTL)
	})
	if err != nil {
		return "", err
	}
	says := s.text(mebibyte, "MiB")
	switch {
	case s.least < defaultPart:
		return "", errors.New(says + ": set MovePartBytes below it, and send smaller batches")
	case s.least < mostPart:
		return "", errors.New(says + ": leave MovePartBytes at 1 MiB")
	case s.refused == 0 && !p.large:
		says += "; --large asks for 16 MiB"
	}
	return says, nil
}

// askRecordLimit writes the last byte of strings, so it sends little.
func askRecordLimit(ctx context.Context, p *patient) (string, error) {
	if !p.large {
		return "", skipped{errors.New("--large checks it; leave it out if the database has less than 100 MB" +
			" free, or evicts")}
	}
	if _, err := p.client.Do(ctx, upstash.Cmd("DEL", p.key("large"))); err != nil {
		return "", err
	}
	if err := p.set(ctx, "large", ""); err != nil {
		return "", err
	}
	s, err := largest(100*megabyte, megabyte, upstash.ErrRecordTooLarge, func(n uint64) error {
		last := strconv.FormatUint(n-1, 10)
		_, err := p.client.Do(ctx, upstash.Cmd("SETRANGE", p.key("large"), last, "a").Timeout(time.Minute))
		return err
	})
	if err != nil {
		return "", err
	}
	return s.text(megabyte, "MB"), nil
}
