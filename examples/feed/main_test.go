package main

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	_ "github.com/upbloom/upbloom/internal/testkit/testenv" // its clients are patient
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A watched video is never shown again. Of the others, hardly any is left out.
func TestFreshIsWhatWasNotWatched(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := feed{s.Client()}
	videos := make([]string, 200)
	for i := range videos {
		videos[i] = fmt.Sprintf("video-%d", i)
	}
	if err := f.watched(t.Context(), "ada", videos[:60]); err != nil {
		t.Fatal(err)
	}
	s.InjectWrites(upstashtest.Drop(upstashtest.AfterExec))
	if err := f.watched(t.Context(), "ada", videos[60:120]); err != nil {
		t.Errorf("after a lost answer: %v, want none", err)
	}
	s.ResetStats()
	fresh, err := f.fresh(t.Context(), "ada", videos)
	if err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Requests != 1 || st.Commands != 1 {
		t.Errorf("%d requests and %d commands, want one each", st.Requests, st.Commands)
	}
	watched := func(v string) bool { return slices.Contains(videos[:120], v) }
	if len(fresh) < 78 || slices.ContainsFunc(fresh, watched) {
		t.Errorf("fresh videos: %q, want at least 78, and none that was watched", fresh)
	}
	if all, err := f.fresh(t.Context(), "nobody", videos); err != nil || len(all) != 200 {
		t.Errorf("a user who has watched nothing: %d videos, %v, want 200", len(all), err)
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := "ada: 150 of 200 candidates are new to her: 1 request, 1 command, "
	if !bytes.HasPrefix(out.Bytes(), []byte(want)) {
		t.Errorf("run printed %q, want it to begin with %q", &out, want)
	}
}
