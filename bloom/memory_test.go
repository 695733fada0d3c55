package bloom_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// fillUp makes a Redis refuse every command that might take memory.
func fillUp(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "CONFIG SET maxmemory 1\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("CONFIG SET: %q, %v", line, err)
	}
}

// A full database refuses a look-up, whose BITFIELD counts as a write. The
// error names the way that still answers, and the user's orders, which take no
// memory, are carried out.
func TestFullDatabase(t *testing.T) {
	addr := testenv.Redis(t)
	s := upstashtest.NewServer(t, upstashtest.WithRedis(addr))
	f := handle(t, s.Client(), expiring(time.Hour))
	add(t, f, "a", true)
	fillUp(t, addr)

	for name, call := range map[string]func() error{
		"Exists":    func() error { _, err := f.Exists(t.Context(), "a"); return err },
		"ExistsAll": func() error { _, err := f.ExistsAll(t.Context(), []string{"a"}); return err },
		"ExistsIn":  func() error { _, err := bloom.ExistsIn(t.Context(), "a", f, f); return err },
	} {
		err := call()
		if !errors.Is(err, upstash.ErrOutOfMemory) || !upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), "ReadsNearest") {
			t.Errorf("%s: %v, want ErrOutOfMemory with the remedy", name, err)
		}
	}
	if _, err := f.Add(t.Context(), "b"); !errors.Is(err, upstash.ErrOutOfMemory) || !upstash.SafeToRetry(err) ||
		strings.Contains(err.Error(), "ReadsNearest") {
		t.Errorf("Add: %v, want ErrOutOfMemory", err)
	}
	cfg := expiring(time.Hour)
	cfg.Reads = bloom.ReadsNearest
	nearest := handle(t, s.Client(), cfg)
	exists(t, nearest, "a", true)
	exists(t, nearest, "b", false)
	if ok, err := f.Persist(t.Context()); !ok || err != nil {
		t.Errorf("Persist = %v, %v, want true", ok, err)
	}
	wantNoTTL(t, s)
	if ok, err := f.Expire(t.Context(), time.Minute); !ok || err != nil || !settled(t, s) {
		t.Errorf("Expire = %v, %v, settled %v, want true", ok, err, settled(t, s))
	}
	wantTTL(t, s, time.Minute)
	if ok, err := f.Delete(t.Context()); !ok || err != nil {
		t.Errorf("Delete = %v, %v, want true", ok, err)
	}
}

// An error of the database says what to change in the Config.
func TestLimitsNameTheRemedy(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(1000))
	f := handle(t, s.Client(), small())
	for name, call := range map[string]func() error{
		"Create": func() error { _, err := f.Create(t.Context()); return err },
		"AddAll": func() error { _, err := f.AddAll(t.Context(), numbered("a", 100)); return err },
	} {
		err := call()
		if !errors.Is(err, upstash.ErrRecordTooLarge) || !strings.Contains(err.Error(), "lower Config.Capacity") {
			t.Errorf("%s: %v, want ErrRecordTooLarge and what to lower", name, err)
		}
	}
	s = upstashtest.NewServer(t, upstashtest.WithMaxRequest(10_000))
	f = handle(t, s.Client(), small())
	add(t, f, "a", true)
	for name, call := range map[string]func() error{
		"AddAll":    func() error { _, err := f.AddAll(t.Context(), numbered("a", 1000)); return err },
		"ExistsAll": func() error { _, err := f.ExistsAll(t.Context(), numbered("a", 1000)); return err },
	} {
		err := call()
		if !errors.Is(err, upstash.ErrRequestTooLarge) ||
			!strings.Contains(err.Error(), "lower Config.BatchBytes") {
			t.Errorf("%s: %v, want ErrRequestTooLarge and what to lower", name, err)
		}
	}
}

// MissingIsEmpty is no remedy for the calls that it does not change.
func TestNotFoundNamesTheRemedy(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), small())
	for name, call := range map[string]func() error{
		"Open":    func() error { _, err := bloom.Open(t.Context(), s.Client(), key); return err },
		"Inspect": func() error { _, err := bloom.Inspect(t.Context(), s.Client(), key); return err },
		"Stats":   func() error { _, err := f.Stats(t.Context()); return err },
		"Rename":  func() error { return f.Rename(t.Context(), "other") },
		"Exists":  func() error { _, err := f.Exists(t.Context(), "a"); return err },
	} {
		err := call()
		if !errors.Is(err, bloom.ErrNotFound) || strings.Contains(err.Error(), "MissingIsEmpty") != (name == "Exists") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A BITFIELD that is refused for the size of the record has said nothing of the
// key.
func TestRefusedAddLeavesNoTTL(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(100))
	do(t, s, "SET", key, "some text of theirs")
	_, err := handle(t, s.Client(), expiring(time.Hour)).Add(t.Context(), "a")
	if !errors.Is(err, upstash.ErrRecordTooLarge) {
		t.Errorf("Add: %v, want ErrRecordTooLarge", err)
	}
	wantNoTTL(t, s)
	if got := stored(t, s); got != "some text of theirs" {
		t.Errorf("their text became %q", got)
	}
}
