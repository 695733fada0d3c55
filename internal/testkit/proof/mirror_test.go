package proof

import (
	"testing"
	"time"
)

// TestCheckMirror is TestCheck for old answers. Places are half milliseconds.
func TestCheckMirror(t *testing.T) {
	stale := Staleness{MaxStale: 5 * time.Millisecond, MaxTrust: 20 * time.Millisecond}
	checkAll(t, &Filters{Bits: 53, Hashes: 2, Staleness: stale}, []sample{
		{"not found yet", true, "2-3 create: made; 4-6 add a: new; 10-12 mirror.exists a: no"},
		{"not found for too long", false, "2-3 create: made; 4-6 add a: new; 30-32 mirror.exists a: no"},
		{"its own Add is forgotten", false, "2-3 create: made; 4-6 mirror.addthrough a: new; " +
			"10-12 mirror.exists a: no"},
		{"a Refresh is forgotten", false, "2-3 create: made; 4-6 add a: new; mirror.refresh; " +
			"10-12 mirror.exists a: no"},
		{"found, and deleted a moment ago", true, "2-4 add a: new; 6-8 delete: did; " +
			"20-22 mirror.exists a: yes; 24-26 mirror.add a: seen Tried=0"},
		{"found, and deleted long ago", false, "2-4 add a: new; 6-8 delete: did; 60-62 mirror.exists a: yes"},
		{"seen in the copy, and deleted long ago", false, "2-4 add a: new; 6-8 delete: did; " +
			"60-62 mirror.add a: seen Tried=0"},
	})
}

// TestCheckMirrorBeside is TestCheckMirror for copies with a stuck region, and
// for an Add repeated across a Replace: it is answered at its second attempt. If the
// item was there before, "new" proves that the attempt came after the Replace.
func TestCheckMirrorBeside(t *testing.T) {
	stuck := Filters{
		Common: Common{Lag: true, ReadsNearest: true}, Bits: 53, Hashes: 2,
		Staleness: Staleness{MaxStale: 5 * time.Millisecond, MaxTrust: time.Minute}, NoScripts: true,
	}
	checkAll(t, &stuck, []sample{
		{"a stuck region's no after MaxStale", false, "2-4 add b: new; 6-8 add a: new; " +
			"10-12 mirror.exists b: yes; 40-42 mirror.exists a: no"},
		{"the primary's yes", true, "2-4 add b: new; 6-8 add a: new; 10-12 mirror.exists b: yes; " +
			"40-42 mirror.exists a: yes"},
		{"a no within MaxStale", true, "2-4 add b: new; 6-8 add a: new; 10-12 mirror.exists b: yes; " +
			"14-16 mirror.exists a: no"},
	})
	trusting := stuck
	trusting.MaxStale = 0
	checkAll(t, &trusting, []sample{
		{"a region's no that the caller chose", true, "2-4 add b: new; 6-8 add a: new; " +
			"10-12 mirror.exists b: yes; 40-42 mirror.exists a: no"},
	})
	patient := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{MaxStale: 20 * time.Millisecond, MaxTrust: time.Minute}}
	checkAll(t, &patient, []sample{
		{"its own Add, repeated, is forgotten", false, "2-3 create: made; mirror.refresh; " +
			"8-20 mirror.addthrough a: new lost; 10-11 mirror.addthrough b: new; 12-14 replace; " +
			"22-24 mirror.exists a: no; 6-7 add a: new"},
		{"its own Add, repeated, is found", true, "2-3 create: made; mirror.refresh; " +
			"8-20 mirror.addthrough a: new lost; 10-11 mirror.addthrough b: new; 12-14 replace; " +
			"22-24 mirror.exists a: yes; 6-7 add a: new"},
		{"its own Add may be replaced", true, "2-3 create: made; mirror.refresh; " +
			"8-20 mirror.addthrough a: new lost; 10-11 mirror.addthrough b: new; 12-14 replace; " +
			"22-24 mirror.exists a: no"},
	})
}

// TestCheckMirrorBatch is TestCheckMirror for the items of a batch. Items a and b
// share no cells.
func TestCheckMirrorBatch(t *testing.T) {
	asks := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{MaxTrust: 20 * time.Millisecond}}
	checkAll(t, &asks, []sample{
		{"one sent, and one of the copy", true, "2-4 mirror.addthrough a: new; " +
			"20-22 mirror.addall b a: new seen"},
		{"both sent", true, "20-22 mirror.addall b a: new new"},
		{"at wrong places", false, "2-4 mirror.addthrough a: new; 20-22 mirror.addall b a: seen new"},
		{"not added", false, "2-4 mirror.addthrough a: new; 20-22 mirror.addall b a: new seen; " +
			"24-26 exists b: no"},
		{"seen in the copy, and deleted a moment ago", true, "2-4 mirror.addthrough a: new; " +
			"6-8 delete: did; 20-22 mirror.addall b a: new seen"},
		{"seen, and deleted, and there is no copy", false, "2-4 add a: new; 6-8 delete: did; " +
			"20-22 mirror.addall b a: new seen"},
		{"seen, and deleted long ago", false, "2-4 mirror.addthrough a: new; 6-8 delete: did; " +
			"60-62 mirror.addall b a: new seen"},
		{"all of the copy", true, "2-4 mirror.addthrough a: new; 10-12 mirror.addthrough b: new; " +
			"20-22 mirror.addall b a: seen seen Tried=0"},
		{"new without a request", false, "20-22 mirror.addall b a: new new Tried=0"},
		{"unknown, and one of the copy", true, "2-4 mirror.addthrough a: new; " +
			"20-22 mirror.addall b a: partly seen seen unsure done Maybe=1 Safe"},
		{"unknown, and one was sent", false, "2-4 mirror.addthrough a: new; " +
			"20-22 mirror.addall b a: partly seen new unsure done Maybe=1 Safe"},
		{"one that may have been new, and one that was, in a filter that replaced theirs", true, "2-4 add c: new; " +
			"20-40 mirror.addall b a: partly seen new perhaps done Maybe=1 Tried=2; " +
			"22-24 exists a: yes; 30-32 replace b; 42-44 exists a: yes"},
		{"one that may have been new, and one that was not", false, "2-4 add b: new; 6-8 add a: new; " +
			"20-22 mirror.addall b a: partly seen new perhaps done Maybe=1 Tried=2"},
		{"an answer of the copy", true, "2-4 mirror.addthrough a: new; " +
			"20-22 mirror.existsall b a: partly no yes undone done Tried=0 Safe"},
		{"the states are at wrong places", false, "2-4 mirror.addthrough a: new; " +
			"20-22 mirror.existsall b a: partly no yes done undone Tried=0 Safe"},
		{"not found without an answer", false, "2-4 mirror.addthrough a: new; " +
			"20-22 mirror.existsall b a: partly no yes done done Tried=0 Safe"},
		{"a look-up that may have run", false, "2-4 mirror.addthrough a: new; " +
			"20-22 mirror.existsall b a: partly no yes unsure done Tried=0 Safe"},
	})
	trusts := asks
	trusts.MaxStale = 5 * time.Millisecond
	checkAll(t, &trusts, []sample{
		{"its own Add is forgotten", false, "2-4 mirror.addall a b: new new; 6-8 mirror.exists b: no"},
		{"not found in the copy", true, "2-4 mirror.addthrough a: new; " +
			"6-8 mirror.existsall b a: partly no no done undone Tried=0 Safe"},
	})
}

// TestCheckMirrorDrops has histories of a Mirror that was told that its filter is gone
// or another one, while an answer about the old one is under way.
func TestCheckMirrorDrops(t *testing.T) {
	plain := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{StaleIfError: time.Hour}}
	plain.limit()
	checkAll(t, &plain, []sample{
		{"nobody has asked", true, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 replace; " +
			"20-22 mirror.exists a: yes Tried=0"},
		{"another filter was shown", false, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 replace; " +
			"10-12 mirror.refresh b: asked; 20-22 mirror.exists a: yes Tried=0"},
		{"none was", false, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 delete: did; " +
			"10-12 mirror.refresh b: missing asked; 20-22 mirror.exists a: yes Tried=0"},
		{"another Mirror was shown it", true, "2-4 add a: new; 6-16 mirror.exists a: yes asked; " +
			"8-9 replace; 10-12 y>mirror.refresh b: asked; 20-22 mirror.exists a: yes Tried=0"},
		{"an Add was shown another", false, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 replace; " +
			"10-12 mirror.addthrough b: new asked; 20-22 mirror.exists a: yes Tried=0"},
		{"and found as seen without a request", false, "2-4 add a: new; 6-16 mirror.exists a: yes asked; " +
			"8-9 replace; 10-12 mirror.refresh b: asked; 20-22 mirror.add a: seen Tried=0"},
		{"in a batch", false, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 replace; " +
			"10-12 mirror.refresh b: asked; 20-22 mirror.existsall a: yes Tried=0"},
		{"it was added again", true, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 replace; " +
			"10-12 mirror.refresh b: asked; 13-14 add a: new; 20-22 mirror.exists a: yes Tried=0"},
		{"the question is older than the Replace", true, "2-4 add a: new; 6-16 mirror.exists a: yes asked; " +
			"8-9 replace; 7-12 mirror.refresh b: asked=10-12; 20-22 mirror.exists a: yes Tried=0"},
		{"the call began before the answer came", true, "2-4 add a: new; 6-16 mirror.exists a: yes asked; " +
			"8-9 replace; 10-12 mirror.refresh b: asked; 11-22 mirror.exists a: yes Tried=0"},
		{"an Add that crossed made the old one", true, "6-16 mirror.addthrough a: new asked; " +
			"6-7 exists a: yes; 8-9 replace; 10-12 mirror.refresh b: asked; " +
			"20-22 mirror.exists a: yes Tried=0"},
		{"an Add that did not cross made it", false, "2-4 mirror.addthrough a: new asked; 8-9 replace; " +
			"10-12 mirror.refresh b: asked; 20-22 mirror.exists a: yes Tried=0"},
		{"an Add that crossed did not", false, "2-4 add a: new; 6-16 mirror.addthrough a: seen asked; " +
			"8-9 replace; 10-12 mirror.refresh b: asked; 20-22 mirror.exists a: yes Tried=0"},
		{"a look-up has an answer that may be refused", true, "2-4 add a: new; " +
			"6-16 mirror.exists a: yes asked; 8-9 replace; 10-12 mirror.exists b: no asked; " +
			"20-22 mirror.exists a: yes Tried=0"},
	})
	outages := plain
	outages.Outages = true
	checkAll(t, &outages, []sample{
		{"late in an outage", false, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 replace; " +
			"10-12 mirror.exists b: no asked; 17-19 mirror.addthrough b: unknown silent; " +
			"20-22 mirror.exists a: yes Tried=0"},
		{"the question got no answer", true, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 replace; " +
			"10-12 mirror.addthrough b: unknown silent; 20-22 mirror.exists a: yes Tried=0"},
	})
	near := plain
	near.Lag, near.ReadsNearest, near.MaxStale = true, true, time.Minute
	checkAll(t, &near, []sample{
		{"a region may answer", true, "2-4 add a: new; 6-16 mirror.exists a: yes asked; 8-9 replace; " +
			"10-12 mirror.refresh b: asked; 20-22 mirror.exists a: yes Tried=0"},
	})
}

// TestCheckOutage has histories of a Mirror in an outage, and of what a handle may
// know from one.
func TestCheckOutage(t *testing.T) {
	of := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{Outages: true, StaleIfError: time.Hour}}
	of.limit()
	checkAll(t, &of, []sample{
		{"begun by an Add", true, "2-4 mirror.addthrough a: new asked; " +
			"6-8 mirror.addthrough b: unknown silent; 10-12 mirror.stats: yes"},
		{"begun, and not known", false, "2-4 mirror.addthrough a: new asked; " +
			"6-8 mirror.addthrough b: unknown silent; 10-12 mirror.stats: no"},
		{"begun by nothing", false, "2-4 mirror.addthrough a: new asked; 10-12 mirror.stats: yes"},
		{"known before", false, "2-4 mirror.addthrough a: new asked; 2-5 mirror.stats: yes; " +
			"6-8 mirror.addthrough b: unknown silent"},
		{"answered by the copy", true, "2-4 mirror.addthrough a: new asked; " +
			"6-8 mirror.addthrough b: unknown silent; 20-22 mirror.exists a: yes"},
		{"asked soon after another", false, "2-4 mirror.addthrough a: new asked; " +
			"6-8 mirror.addthrough b: unknown silent; 20-22 mirror.exists a: yes asked"},
		{"asked soon after another, whose caller left", true, "2-4 mirror.addthrough a: new asked; " +
			"6-8 mirror.addthrough b: unknown silent; " +
			"2300-2310 mirror.exists/Cause=1/CauseAfter=1ms a: yes silent; " +
			"2400-2402 mirror.exists a: yes asked"},
		{"asked soon after another, whose caller stayed", false, "2-4 mirror.addthrough a: new asked; " +
			"6-8 mirror.addthrough b: unknown silent; 2300-2310 mirror.exists a: yes silent; " +
			"2400-2402 mirror.exists a: yes asked"},
		{"asked after the end", true, "2-4 mirror.addthrough a: new asked; " +
			"6-8 mirror.addthrough b: unknown silent; 10-12 mirror.refresh: asked; " +
			"20-22 mirror.exists a: yes asked"},
		{"a copy, and no answer of it", false, "2-20 mirror.addthrough a: new asked=2-20; 10-12 clear: did; " +
			"30-32 mirror.exists a: refused silent Safe Err=lost"},
		{"the end of the Add was shown another filter", true, "2-20 mirror.addthrough a: new asked=2-18 asked=18-20; " +
			"10-12 clear: did; 30-32 mirror.exists a: refused silent Safe Err=lost"},
		{"so it was within its one question", true, "2-20 mirror.addthrough a: new asked=2-20 Sent=2ms; " +
			"10-12 clear: did; 30-32 mirror.exists a: refused silent Safe Err=lost"},
		{"the end of the Add was shown the same", false, "2-20 mirror.addthrough a: new asked=2-18 asked=18-20; " +
			"30-32 mirror.exists a: refused silent Safe Err=lost"},
		{"other data in the answer to a refresh", true, "2-4 overwrite: no; " +
			"6-16 mirror.exists a: refused asked=6-8 silent=10-12 Tried=0 Safe; " +
			"30-32 add a: foreign Tried=0 Safe"},
		{"other data in the answer to a refresh of a call that goes on", true, "2-4 overwrite: no; " +
			"6-40 mirror.exists a: missing asked=6-8 asked=36-38; 30-32 add a: foreign Tried=0 Safe; " +
			"33-34 clear: did"},
		{"other data, and nobody said so", false, "2-4 overwrite: no; " +
			"6-16 mirror.exists a: refused silent=6-8 silent=10-12 Tried=0 Safe; " +
			"30-32 add a: foreign Tried=0 Safe"},
	})
}
