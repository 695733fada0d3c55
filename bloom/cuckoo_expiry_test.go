package bloom_test

import (
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A TTL set by EXPIRE stays as it is, and with MustExist an Add after its end
// makes nothing.
func TestCuckooUnderExpire(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		f, err := bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01, MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ok, err := c.Expire(t.Context(), key, time.Hour); err != nil || !ok {
			t.Fatalf("Expire: %v, %v", ok, err)
		}
		if _, err := f.AddAll(t.Context(), []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		st, err := f.Stats(t.Context())
		if err != nil || st.TTL <= time.Hour-time.Minute || st.TTL > time.Hour {
			t.Errorf("TTL %v, %v after an Add and a Remove, want an hour", st.TTL, err)
		}
		do(t, s, "PEXPIRE", key, "0")
		if _, err := f.Add(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Add after the end: %v, want ErrNotFound", err)
		}
	})
}
