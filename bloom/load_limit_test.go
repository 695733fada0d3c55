package bloom_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// If the assembled string is too large for a record, the filter is certainly as
// it was, and nothing of the upload stays in the database. This holds after a
// lost reply too, and if a part was sent twice.
func TestLoadBeyondTheRecordLimit(t *testing.T) {
	cfg, parts := inParts(middling())
	calls := map[string]func(f *bloom.Filter) error{
		"Load": func(f *bloom.Filter) error {
			_, err := f.Load(t.Context(), mails(0, 100), parts)
			return err
		},
		"Replace": func(f *bloom.Filter) error {
			return f.Replace(t.Context(), bloom.NewLocal(f.Geometry()), parts)
		},
		"Restore": func(f *bloom.Filter) error {
			var saved bytes.Buffer
			if _, err := bloom.NewLocal(f.Geometry()).WriteTo(&saved); err != nil {
				return err
			}
			_, err := f.Restore(t.Context(), &saved, parts)
			return err
		},
	}
	faults := map[string]func(s *upstashtest.Server){
		"at once":                 func(*upstashtest.Server) {},
		"after a lost reply":      func(s *upstashtest.Server) { loseReplies(s, "EVAL", 1) },
		"after a part sent twice": func(s *upstashtest.Server) { loseReplies(s, "SETEX", 1) },
		"after many lost replies": func(s *upstashtest.Server) { loseReplies(s, "EVAL", 2) },
	}
	for name, call := range calls {
		for when, inject := range faults {
			t.Run(name+" "+when, func(t *testing.T) {
				s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(8000)) // four parts
				inject(s)
				err := call(handle(t, impatient(s), cfg))
				if !errors.Is(err, upstash.ErrRecordTooLarge) || !upstash.SafeToRetry(err) {
					t.Errorf("%v, want ErrRecordTooLarge, and certainly nothing changed", err)
				}
				if keys := do(t, s, "KEYS", "*").([]any); len(keys) != 0 {
					t.Errorf("%d keys are left: %v", len(keys), keys)
				}
			})
		}
	}
}

// A Redis refuses the string within its own script engine.
func TestLoadBeyondTheLimitOfRedis(t *testing.T) {
	addr := testenv.Redis(t)
	limit(t, addr)
	s := upstashtest.NewServer(t, upstashtest.WithRedis(addr))
	f := handle(t, s.Client(), bloom.Config{Capacity: 1_000_000, FPRate: 0.01}) // 1.35 MB
	_, err := f.Load(t.Context(), mails(0, 100), bloom.MovePartBytes(100_000))
	if !errors.Is(err, upstash.ErrRecordTooLarge) || !upstash.SafeToRetry(err) {
		t.Errorf("%v, want ErrRecordTooLarge, and certainly nothing changed", err)
	}
	var large *bloom.RecordTooLargeError
	if !errors.As(err, &large) || large.Bytes != f.Geometry().Bytes(bloom.LayoutHeaded) {
		t.Errorf("%#v, want the length of the filter's string", large)
	}
	if keys := do(t, s, "KEYS", "*").([]any); len(keys) != 0 {
		t.Errorf("%d keys are left: %v", len(keys), keys)
	}
}

// limit lowers a Redis's limit on the length of strings to 1 MiB, its least.
func limit(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer := make([]byte, 5)
	_, err = io.WriteString(conn, "CONFIG SET proto-max-bulk-len 1048576\r\n")
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err != nil || string(answer) != "+OK\r\n" {
		t.Fatalf("%q, %v", answer, err)
	}
}

// The same holds of a Replace that finds a filter of another size, and whose
// first reply is lost.
func TestReplaceAnotherSizeBeyondTheRecordLimit(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(8000))
	add(t, handle(t, s.Client(), small()), "old", true)
	before := stored(t, s)
	cfg, parts := inParts(middling())
	f := handle(t, impatient(s), cfg)
	loseReplies(s, "EVAL", 1)
	err := f.Replace(t.Context(), bloom.NewLocal(f.Geometry()), parts)
	if !errors.Is(err, upstash.ErrRecordTooLarge) || !upstash.SafeToRetry(err) {
		t.Errorf("%v, want ErrRecordTooLarge, and certainly nothing changed", err)
	}
	if stored(t, s) != before {
		t.Error("the filter in place has changed")
	}
	wantNoScratch(t, s, 1)
}
