package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// A Persist that is sent again and finds no TTL may have removed it the first
// time.
func TestPersistLost(t *testing.T) {
	r, s := newRecord(t, lost, answers("H,1,B,0,0"))
	if _, err := r.Persist(t.Context()); !errors.Is(err, upstash.ErrMaybeRepeated) {
		t.Errorf("Persist: %v, want ErrUncertain", err)
	}
	s.then(lost, answers("0"))
	if _, err := r.Persist(t.Context()); !errors.Is(err, upstash.ErrMaybeRepeated) {
		t.Errorf("Persist that then finds no filter: %v, want ErrMaybeRepeated", err)
	}
	s.then(lost, answers("X"))
	if _, err := r.Persist(t.Context()); !errors.Is(err, errOther) {
		t.Errorf("Persist: %v, want that another filter is there", err)
	}
	s.then(answers("H,1,B,0,0"))
	if had, err := r.Persist(t.Context()); had || err != nil {
		t.Errorf("Persist = %v, %v; want false: there was none", had, err)
	}
	s.then(lost, answers("H,1,B,0,1"))
	if had, err := r.Persist(t.Context()); !had || err != nil {
		t.Errorf("Persist = %v, %v; want true: it was there until now", had, err)
	}
}

func TestExpire(t *testing.T) {
	r, s := newRecord(t, answers("H,1,B,0,1").to(`"60000"`))
	if ok, err := r.Expire(t.Context(), time.Minute); !ok || err != nil {
		t.Errorf("Expire = %v, %v", ok, err)
	}
	s.then(answers("0"))
	if ok, err := r.Expire(t.Context(), time.Minute); ok || err != nil {
		t.Errorf("Expire of nothing = %v, %v; want false", ok, err)
	}
	s.then(lost, answers("0")) // others may have renamed it since, with its new TTL
	if _, err := r.Expire(t.Context(), time.Minute); !errors.Is(err, upstash.ErrMaybeRepeated) {
		t.Errorf("Expire that then finds no filter: %v, want ErrMaybeRepeated", err)
	}
	_, err := r.Expire(t.Context(), 0) // sends nothing
	if !errors.Is(err, upstash.ErrArgument) {
		t.Errorf("Expire after 0: %v, want ErrArgument", err)
	}
}

// A Delete or a Rename of unknown outcome is not repeated: others may have made
// the filter again.
func TestDeleteAndRenameLost(t *testing.T) {
	r, s := newRecord(t, lost)
	_, err := r.Delete(t.Context())
	wantSafe(t, err, false)
	s.then(lost)
	wantSafe(t, r.Rename(t.Context(), "other"), false)
}

func TestRename(t *testing.T) {
	r, s := newRecord(t, answers("H,1,B,0,0"))
	err := r.Rename(t.Context(), "taken")
	if !errors.Is(err, engine.ErrKeyExists) {
		t.Errorf("Rename to a taken key: %v", err)
	}
	wantSafe(t, err, true)
	s.then(answers("H,1,B,0,1"))
	if err := r.Rename(t.Context(), "free"); err != nil {
		t.Error(err)
	}
	err = r.Rename(t.Context(), "") // sends nothing
	if !errors.Is(err, engine.ErrEmptyKey) {
		t.Errorf("Rename to no key: %v", err)
	}
	wantSafe(t, err, true)
}

// Another filter, and a string of another kind, are left alone.
func TestDeleteOfAnother(t *testing.T) {
	r, _ := newRecord(t, answers("X"))
	_, err := r.Delete(t.Context())
	if !errors.Is(err, errOther) {
		t.Errorf("Delete of another filter: %v", err)
	}
	wantSafe(t, err, true)

	r, _ = newRecord(t, answers("H,1,B,4503599627370528"))
	r.Shape = &shape{word: word, mutable: 4}
	if _, err := r.Delete(t.Context()); !errors.Is(err, errOther) {
		t.Errorf("Delete of another kind: %v", err)
	}
}

// An order that is refused has changed nothing, unless an attempt before it may have
// run.
func TestOrdersThatAreRefused(t *testing.T) {
	noScripts := step{refused: "NOPERM this user has no permissions to run the 'eval' command"}
	for name, order := range map[string]func(*engine.Record) error{
		"Create":  func(r *engine.Record) error { _, err := r.Create(t.Context(), 200, 0); return err },
		"Expire":  func(r *engine.Record) error { _, err := r.Expire(t.Context(), time.Minute); return err },
		"Persist": func(r *engine.Record) error { _, err := r.Persist(t.Context()); return err },
		"Delete":  func(r *engine.Record) error { _, err := r.Delete(t.Context()); return err },
		"Rename":  func(r *engine.Record) error { return r.Rename(t.Context(), "other") },
	} {
		for answer, want := range map[*step]error{{answer: `{"result":[X,0,B,0]}`}: errOther, &noScripts: upstash.ErrNoPermission} {
			r, s := newRecord(t, *answer)
			err := order(r)
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			wantSafe(t, err, true)
			if name != "Delete" && name != "Rename" { // these are not repeated
				s.then(lost, *answer)
				wantSafe(t, order(r), false)
			}
		}
	}
}

// A record without a header is ordered about by the plain commands.
func TestOrdersOfABareRecord(t *testing.T) {
	for n, want := range []bool{false, true} {
		for sent, order := range map[string]func(r *engine.Record) (bool, error){
			`["EXPIRE","key","60"]`: func(r *engine.Record) (bool, error) { return r.Expire(t.Context(), time.Minute) },
			`["PERSIST","key"]`:     func(r *engine.Record) (bool, error) { return r.Persist(t.Context()) },
			`["DEL","key"]`:         func(r *engine.Record) (bool, error) { return r.Delete(t.Context()) },
		} {
			r, _ := newRecord(t, step{answer: fmt.Sprintf(`{"result":%d}`, n), sent: sent})
			r.Header = 0
			if did, err := order(r); did != want || err != nil {
				t.Errorf("%s: %v, %v, want %v", sent, did, err, want)
			}
		}
	}
}
