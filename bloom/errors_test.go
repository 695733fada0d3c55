package bloom

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorTexts(t *testing.T) {
	for _, err := range []error{ErrNotFound, ErrSaturated, ErrUncertain, ErrNotFilter} {
		if !strings.HasPrefix(err.Error(), "bloom: ") {
			t.Errorf("%q has no prefix \"bloom: \"", err)
		}
	}
	for kind, field := range map[Kind]string{
		KindFilter: " Config.MissingIsEmpty ", KindLayers: " ScalableConfig.MissingIsEmpty ",
		KindWindow: " WindowConfig.ExpireIdle ", KindShard: "or call Create",
	} {
		h := handle{rec: record{kind: kind}}
		if err := h.allowMissing(ErrNotFound); !strings.Contains(err.Error(), field) {
			t.Errorf("%v: %v, want one that names %s", kind, err, field)
		}
	}
}

func TestMismatchError(t *testing.T) {
	want := Geometry{Bits: 95_851, Hashes: 7, Scheme: SchemeXXH3, Seed: 42}
	same := headerInfo{scheme: SchemeXXH3, bits: 95_851, hashes: 7, seedTag: seedTag(42)}
	changed := func(change func(*headerInfo)) headerInfo {
		got := same
		change(&got)
		return got
	}
	for _, c := range []struct {
		name      string
		got       headerInfo
		gotSeed   uint64
		otherSeed bool
		says      string
	}{
		{
			"bits", changed(func(h *headerInfo) { h.bits = 1000 }), 42, false,
			"bloom: another filter, or other data, is at this key: 1,000 bits (125 B), k=7, xxh3, seeded; this" +
				" handle wants 95,851 bits (11.7 KiB), k=7, xxh3, seeded: use the Config it was" +
				" made with, read it with Open, or use another key",
		},
		{
			"no seed", changed(func(h *headerInfo) { h.seedTag = 0 }), 0, true,
			"bloom: the filter at this key has the same geometry (95,851 bits (11.7 KiB), k=7," +
				" xxh3) but no seed: leave the seed out, or use another key",
		},
		{
			"seed alone", changed(func(h *headerInfo) { h.seedTag ^= 1 }), 0, true,
			"bloom: the filter at this key has the same geometry (95,851 bits (11.7 KiB), k=7," +
				" xxh3) but another seed: use the Config.Seed it was made with, or another key",
		},
		{
			"seed and hashes", changed(func(h *headerInfo) { h.seedTag, h.hashes = 0, 6 }), 0, true,
			"k=6, xxh3; this handle wants 95,851 bits (11.7 KiB), k=7, xxh3, seeded: the" +
				" seeds differ too: use the Config",
		},
		{
			"scheme", changed(func(h *headerInfo) { h.scheme = schemeXXH3Count4 }), 42, false,
			"bloom: another filter, or other data, is at this key: 95,851 counters (46.8 KiB), k=7," +
				" xxh3/4-bit, seeded;",
		},
		{
			"kind", changed(func(h *headerInfo) { h.kind = KindShard }), 42, false,
			"bloom: a shard of a Sharded is at this key, 95,851 bits (11.7 KiB), k=7, xxh3, seeded, and" +
				" not a plain Filter: use OpenSharded with the key without its :number, or another key",
		},
		{
			"layers", changed(func(h *headerInfo) { h.kind = KindLayers }), 42, false,
			"bloom: a Scalable is at this key, 95,851 bits",
		},
		{
			"window", changed(func(h *headerInfo) { h.kind = KindWindow }), 42, false,
			"and not a plain Filter: use OpenWindow, or another key",
		},
		{
			"cuckoo", changed(func(h *headerInfo) { h.scheme = SchemeCuckoo }), 42, false,
			"bloom: a Cuckoo is at this key, 95,851 bits (11.7 KiB), k=7, cuckoo, seeded, and not a plain" +
				" Filter: use OpenCuckoo, or another key",
		},
	} {
		err := error(newMismatchError(KindFilter, want, c.got))
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, want %q", c.name, err, c.says)
		}
		var m *MismatchError
		if !errors.As(err, &m) || m.Want != want || m.OtherSeed != c.otherSeed ||
			m.GotKind != c.got.kind || m.Got.Seed != c.gotSeed || m.Got.Bits != c.got.bits {
			t.Errorf("%s: %+v, want a mismatch of %+v with %+v", c.name, m, want, c.got)
		}
	}
}
