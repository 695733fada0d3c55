package bloom

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/upstash"
)

// replaceScript makes the upload the target, if that is missing or holds any
// plain filter of this format: its header begins 1 | kind 0 | version 1, which
// is 17, and bits 53 to 63 are 0. ARGV[6] is the new birth number: if it stands
// there, an earlier attempt ran.
const replaceScript = assemble + `local w = call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64', 'GET', 'u11', '53')
local ttl = call('PTTL', KEYS[1])
if ttl ~= -2 then
  if w[3] == tonumber(ARGV[6]) then return {n, w[1], 1} end
  if w[1] == 0 then return {n, 0, 3} end
  if math.floor(w[1] / 281474976710656) ~= 17 or w[4] ~= 0 then return {n, w[1], 5} end
end
if not complete() then return {n, w[1], 2} end
local settled = '0'
if w[2] == 1 or ARGV[5] ~= '0' then settled = '1' end
call('BITFIELD', KEYS[2], 'SET', 'u53', '64', ARGV[6], 'SET', 'u1', '127', settled)
call('RENAME', KEYS[2], KEYS[1])
settle(w[2] == 0, ttl)
return {n, tonumber(ARGV[1]), 1}`

// Replace makes the filter's content that of l, in one atomic step that readers
// never see half done: a rebuild from the source of truth. It uploads as Load
// does, with its promises and its cost.
//
// The source of truth wins: an Add that was acknowledged after l was begun is
// lost, unless l has its item. The key may hold any filter of this package, or
// nothing; anything else is ErrNotFilter and left alone. Its TTL stays; a
// filter whose TTL is not settled, and a new one, gets Config.TTL. The filter
// gets a new birth number: a Snapshot or a batch under way is ErrRecreated, a
// Mirror drops its copy.
//
// l must have the handle's geometry. If the filter in place has another,
// replace it only while its writers are stopped: a handle with the old geometry
// refuses to go on, but an Add of it that was under way has set bits of the old
// positions. The move without downtime needs no Replace: create the new filter
// under another key, have all writers add to both (AddIn, one request), Load
// the new one, turn the readers, drop the old one.
//
// A Bare filter cannot be replaced, because nothing says whose string stands at
// its key: that is a *ConfigError.
func (f *Filter) Replace(ctx context.Context, l *Local, opts ...MoveOption) error {
	ctx = f.rec.label(ctx, "bloom.Replace")
	r := &f.rec
	if !r.headed() {
		return configErrorf("Layout", "is bare: only a filter with a header can be replaced")
	}
	if l != nil && r.refused.Load() != nil {
		r.forget() // another filter stands there, which this call may be about to replace
	}
	if err := f.mayMove(l); err != nil {
		return err
	}
	c := f.moveConfig(opts)
	u := f.newUpload(l, c)
	err := u.send(ctx, c)
	if err == nil {
		birth := newBirth()
		_, _, err = u.take(ctx, replaceScript, strconv.FormatInt(birth, 10))
		if err != nil && !upstash.SafeToRetry(err) && r.wasReplaced(ctx, birth) {
			err = nil // the last reply alone was lost
		}
	}
	u.drop(ctx)
	return err
}

// wasReplaced asks for the birth number even if the caller's context has ended.
func (r *record) wasReplaced(ctx context.Context, birth int64) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	return r.hasBirth(ctx, birth)
}
