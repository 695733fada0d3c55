package bloom

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// replaceScript makes the upload the target, if the target is missing, or if
// its header is ARGV[1] or ARGV[8] and its bits 53 to 63 are 0. ARGV[7] is the
// new birth number. If the target has it already, an earlier attempt ran.
var replaceScript = upstash.NewScript(assemble + `local w = call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64', 'GET', 'u11', '53')
local ttl = left()
if ttl ~= -2 then
  if w[3] == tonumber(ARGV[7]) then return {n, w[1], 1} end
  if w[1] == 0 then return {n, 0, 3} end
  if w[4] ~= 0 then return {n, w[1], 5} end
  if w[1] ~= tonumber(ARGV[1]) and w[1] ~= tonumber(ARGV[8]) then return {n, w[1], 0} end
else
  w = {0, 0, 0}
end
local whole, refusal = complete()
if refusal then return refusal end
if not whole then return {n, w[1], 2} end
local settled = '0'
if w[2] == 1 or ARGV[5] ~= '0' then settled = '1' end
call('BITFIELD', KEYS[2], 'SET', 'u53', '64', ARGV[7], 'SET', 'u1', '127', settled)
call('RENAME', KEYS[2], KEYS[1])
settle(w[2] == 0, ttl)
consume()
return {n, tonumber(ARGV[1]), 1}`)

// Replace makes the filter's content that of l, in one atomic step: readers
// never see it half done. Use it to rebuild a filter from the source of truth.
// It uploads as [Filter.Load] does, with the same promises, and only reads l.
// It costs the same too, and two requests more if the filter in place has
// another header.
//
// An item that others add after l was begun is lost, even if its Add was
// acknowledged, unless l has it. The key may hold nothing, or any plain filter
// of this package, whatever its geometry. Another kind, or a [Cuckoo], is a
// [*MismatchError], and other data is [ErrNotFilter]; both are left alone. The filter keeps its
// TTL. A new filter, and one whose TTL is not settled, gets [Config.TTL]. The
// filter gets a new birth number: an AddAll under way returns [ErrRecreated], as
// does a Snapshot once it sees the new one, and a [Mirror] drops its copy. An
// ExistsAll of several requests may ask both filters, each item in one of them.
//
// l must have the handle's geometry and seed, else the error is a
// *MismatchError. If the filter in place has another geometry, replace it only
// while its writers are stopped: a handle with the old geometry refuses to go
// on, but its Adds under way set bits at the old positions.
//
// To move to another geometry without downtime, do not use Replace:
//
//  1. Create the new filter under another key.
//  2. Have all writers add to the old filter and then to the new one ([AddIn],
//     one request), and take the old one's answer.
//  3. Load all items into the new filter.
//  4. Have all readers use the new filter, and all writers add to it before the
//     old one, and take its answer.
//  5. Have all writers add to the new filter alone. Then delete the old one.
//
// A Bare filter cannot be replaced, because nothing shows whose string is at
// its key: the error is a [*ConfigError].
func (f *Filter) Replace(ctx context.Context, l *Local, opts ...MoveOption) error {
	ctx = f.rec.Label(ctx, "bloom.Replace")
	r := &f.rec
	if !r.Headed() {
		return fault.Untouched(configErrorf("Layout", "is bare: only a filter with a header can be replaced"))
	}
	// A handle may replace the filter that it refuses to write to. Until it
	// did, it goes on refusing.
	if err := f.fits(l); err != nil {
		return fault.Untouched(err)
	}
	if r.Client.ReadOnly() {
		return upstash.ErrReadOnly
	}
	c := f.moveConfig(opts)
	u := f.newUpload(l, &c)
	err := u.send(ctx, c)
	if err == nil {
		birth := engine.NewBirth()
		err = u.replace(ctx, birth, r.Header)
		if other, ok := fault.As[*MismatchError](err); ok && other.GotKind == KindFilter && !other.Got.isTable() {
			err = u.replaceOther(ctx, birth)
		}
		if err != nil && u.repeated && !fault.Is(err, upstash.ErrRecordTooLarge) {
			if r.isMade(ctx, birth) {
				return nil // it ran, and only the reply was lost
			}
			err = fault.MayHaveRun(err)
		}
	}
	if err != nil {
		u.drop(ctx)
	}
	return err
}

// replace runs the script. It replaces a filter with the header word old too.
func (u *upload) replace(ctx context.Context, birth, old int64) error {
	_, err := u.take(ctx, replaceScript, strconv.FormatInt(birth, 10), strconv.FormatInt(old, 10))
	return err
}

// replaceOther replaces a filter of another header. It looks at the key first,
// because the header word alone does not tell a filter from other data.
func (u *upload) replaceOther(ctx context.Context, birth int64) error {
	e, err := u.rec.readState(ctx, false)
	switch {
	case fault.Is(err, ErrNotFound): // it was deleted in the meantime
		return u.replace(ctx, birth, u.rec.Header)
	case err != nil:
		return u.rec.Failed(err)
	}
	old := int64(e.header.word())
	if e.header.kind != KindFilter || e.header.geometry(0).isTable() {
		return engine.UntouchedUnlessRepeated(u.rec.Learn(old), u.repeated)
	}
	return u.replace(ctx, birth, old)
}

// isMade reports whether the filter has the birth number of a call. The call
// wrote it together with the header. isMade asks even if the caller's context
// has ended.
func (r *record) isMade(ctx context.Context, birth int64) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.SettleTimeout)
	defer cancel()
	return r.HasBirth(ctx, birth)
}
