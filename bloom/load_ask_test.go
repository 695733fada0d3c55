package bloom_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A string that not every plan takes is refused at the first request, before
// any of its 134 MB are sent.
func TestTooLargeBeforeTheUpload(t *testing.T) {
	for name, server := range map[string]func(t *testing.T) *upstashtest.Server{
		"in memory": func(t *testing.T) *upstashtest.Server { return upstashtest.NewServer(t) },
		"Redis": func(t *testing.T) *upstashtest.Server {
			addr := testenv.Redis(t)
			limit(t, addr)
			return upstashtest.NewServer(t, upstashtest.WithRedis(addr), upstashtest.WithMaxRecord(1<<40))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t)
			f := handle(t, s.Client(), bloom.Config{Capacity: 100_000_000, FPRate: 0.01})
			l := bloom.NewLocal(f.Geometry())
			length := human.Count(f.Geometry().Bytes(bloom.LayoutHeaded)) + " bytes"
			for name, call := range map[string]func() error{
				"Load":    func() error { _, err := f.Load(t.Context(), mails(0, 1)); return err },
				"Replace": func() error { return f.Replace(t.Context(), l) },
			} {
				s.ResetStats()
				err := call()
				if !errors.Is(err, upstash.ErrRecordTooLarge) || !upstash.SafeToRetry(err) ||
					!strings.Contains(err.Error(), length) {
					t.Errorf("%s: %v, want ErrRecordTooLarge", name, err)
				}
				if n := s.Stats(); n.Requests != 1 || n.Billed > 2 || n.BytesIn > 1000 {
					t.Errorf("%s: %d requests, %d commands and %d bytes before the refusal, want 1, 2 and few",
						name, n.Requests, n.Billed, n.BytesIn)
				}
				if keys := do(t, s, "KEYS", "*").([]any); len(keys) != 0 {
					t.Errorf("%s: %d keys are left: %v", name, len(keys), keys)
				}
			}
		})
	}
}

// askAbove has uploads ask whether the database takes a string above n bytes.
func askAbove(t *testing.T, n int) {
	old := bloom.SetAskAbove(n)
	t.Cleanup(func() { bloom.SetAskAbove(old) })
}

// The question costs two commands and leaves nothing behind. It is asked of long
// strings only.
func TestLoadAsks(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		f := handle(t, s.Client(), cfg)
		load := func() bloom.LoadResult {
			s.FlushAll()
			s.ResetStats()
			r, err := f.Load(t.Context(), mails(0, 100), parts)
			if err != nil {
				t.Fatal(err)
			}
			if n := s.Stats(); r.Requests != n.Requests || r.Commands != n.Billed {
				t.Errorf("%d requests and %d commands, and the server counted %d and %d", r.Requests, r.Commands,
					n.Requests, n.Billed)
			}
			wantNoScratch(t, s, 1)
			return r
		}
		length := int(f.Geometry().Bytes(bloom.LayoutHeaded))
		askAbove(t, length)
		usual := load()
		bloom.SetAskAbove(length - 1)
		asked := load()
		if asked.Requests != usual.Requests+1 || asked.Commands != usual.Commands+2 {
			t.Errorf("with the question %+v, without it %+v", asked, usual)
		}
	})
}

// Whatever goes wrong with the question but the refusal of so long a string, it
// does not keep the upload from its own answer.
func TestLoadAsksInVain(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, fault := range map[string]upstashtest.Fault{
			"lost":      upstashtest.Drop(upstashtest.AfterExec),
			"not sent":  upstashtest.Drop(upstashtest.BeforeExec),
			"forbidden": upstashtest.NoPermission("SETRANGE"),
			"aborted":   upstashtest.ErrorObject("EXECABORT Transaction discarded because of previous errors."),
			"not JSON":  upstashtest.NotJSON(upstashtest.AfterExec),
			"fewer":     upstashtest.ShortBatch(),
		} {
			s.FlushAll()
			cfg, parts := inParts(middling())
			askAbove(t, 1000)
			f := handle(t, impatient(s), cfg)
			s.Inject(fault)
			if r, err := f.Load(t.Context(), mails(0, 100), parts); err != nil || !r.Created {
				t.Errorf("%s: %+v, %v, want the filter", name, r, err)
			}
			wantNoScratch(t, s, 1)
		}
	})
}
