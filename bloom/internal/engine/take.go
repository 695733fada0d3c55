package engine

import (
	"context"
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// What an upload does to the target: Merge ORs it into what is there, Replace
// takes its place.

// mergeScript ORs the upload into the target, or makes it the target if there
// is none. ARGV[7] is the birth number of a new filter: if the target has it,
// an earlier attempt made the target. ARGV[8] is '1' if the target must be
// there. The cells are the bits from ARGV[9] to ARGV[10]. ARGV[11] and ARGV[12]
// are those of LuaCheckKind. It returns the number of commands, the target's header
// and a status; if the upload was taken, also the set cells before and after,
// and 1 if this call made the filter.
var mergeScript = upstash.NewScript(assemble + `local w = {0, 1, 0}
if ARGV[1] ~= '0' then
  w = call('BITFIELD_RO', KEYS[1],
    'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64', 'GET', 'u53', '128')
end
local ttl = left()
if ARGV[1] == '0' then
  if call('STRLEN', KEYS[1]) > tonumber(ARGV[3]) then return {n, 0, 4} end
elseif ttl ~= -2 then
  if w[1] == 0 then return {n, 0, 3} end
  if w[1] ~= tonumber(ARGV[1]) then return {n, w[1], 0} end
  if ARGV[11] ~= '0' and math.floor(w[4] / tonumber(ARGV[11])) ~= tonumber(ARGV[12]) then
    return {n, w[1], 6, w[4]}
  end
  if w[3] == tonumber(ARGV[7]) then return {n, w[1], 1, 0, tonumber(ARGV[2]), 1} end
end
if ttl == -2 and ARGV[8] == '1' then return {n, 0, 0} end
local whole, refusal = complete()
if refusal then return refusal end
if not whole then return {n, w[1], 2} end
if ttl == -2 then
  if ARGV[1] ~= '0' then
    local settled = '1'
    if ARGV[5] == '0' then settled = '0' end
    call('BITFIELD', KEYS[2], 'SET', 'u53', '64', ARGV[7], 'SET', 'u1', '127', settled)
  end
  call('RENAME', KEYS[2], KEYS[1])
  settle(true, -1)
  consume()
  return {n, tonumber(ARGV[1]), 1, 0, tonumber(ARGV[2]), 1}
end
local before = call('BITCOUNT', KEYS[1], ARGV[9], ARGV[10], 'BIT')
call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2])
local after = call('BITCOUNT', KEYS[1], ARGV[9], ARGV[10], 'BIT')
if ttl > 0 then call('PEXPIRE', KEYS[1], string.format('%d', ttl)) end
call('DEL', KEYS[2])
consume()
if w[2] == 0 and ARGV[5] ~= '0' then
  call('PEXPIRE', KEYS[1], ARGV[5], 'NX')
  call('SETBIT', KEYS[1], '127', '1')
end
return {n, w[1], 1, before, after, 0}`)

// The statuses of the scripts for taking an upload.
const (
	uploadRefused  = iota // the header is another one, or the filter must exist and is missing
	uploadTaken           // the target holds the upload
	uploadLost            // a part is gone or damaged
	uploadNoHeader        // the target is a string beginning with zeros
	uploadTooLong         // the target is a Bare string, longer than the filter's
	uploadOther           // Replace: bits 53 to 63 of the target are set
	uploadKind            // the kind's own word is another one
)

// Merged is what a Merge did.
type Merged struct {
	Bytes, Requests, Commands int64
	Before, After             int64 // set cells
	Created                   bool
}

// Merge uploads a body and ORs it into the string, or makes the string of it.
func (r *Record) Merge(ctx context.Context, body Body, c Moves) (done Merged, err error) {
	u := r.newUpload(body, &c)
	must := "0"
	if r.MustExist {
		must, u.ttl = "1", 0 // it settles nothing
	}
	var answers []int64
	if err = u.send(ctx, c); err == nil {
		args := []string{strconv.FormatInt(r.NewBirth(), 10), must, body.First, body.Last}
		answers, err = u.take(ctx, mergeScript, append(args, r.KindArgs()...)...)
	}
	if err != nil {
		u.drop(ctx)
	}
	done = Merged{Bytes: u.bytes.Load(), Requests: u.requests.Load(), Commands: u.commands.Load()}
	switch {
	case err != nil:
		return done, err
	case len(answers) != 3:
		return done, WrongCount(len(answers), 3)
	case answers[1] < answers[0]:
		return done, ErrNegative
	}
	done.Before, done.After, done.Created = answers[0], answers[1], answers[2] == 1
	return done, nil
}

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

// Replace uploads a body and makes it the string. If another header is there,
// inPlace gets the error and returns that header if the body may replace it too,
// and otherwise the error.
func (r *Record) Replace(ctx context.Context, body Body, c Moves,
	inPlace func(context.Context, error) (header int64, err error),
) error {
	u := r.newUpload(body, &c)
	err := u.send(ctx, c)
	if err == nil {
		err = u.replace(ctx, inPlace)
	}
	if err != nil {
		u.drop(ctx)
	}
	return err
}

// replace runs the script, and once more for another header.
func (u *upload) replace(ctx context.Context, inPlace func(context.Context, error) (int64, error)) error {
	birth := u.rec.NewBirth()
	run := func(old int64) error {
		_, err := u.take(ctx, replaceScript, strconv.FormatInt(birth, 10), strconv.FormatInt(old, 10))
		return err
	}
	err := run(u.rec.Header)
	if err != nil {
		var old int64
		if old, err = inPlace(ctx, err); err == nil {
			err = run(old)
		} else {
			err = UntouchedUnlessRepeated(err, u.repeated)
		}
	}
	if err == nil || !u.repeated || fault.Is(err, upstash.ErrRecordTooLarge) {
		return err
	}
	if u.rec.IsMade(ctx, birth) {
		return nil // it ran, and only the reply was lost
	}
	return fault.MayHaveRun(err)
}

// IsMade reports whether the string has the birth number of a call. The call
// wrote it together with the header. IsMade asks even if the caller's context
// has ended.
func (r *Record) IsMade(ctx context.Context, birth int64) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	return r.HasBirth(ctx, birth)
}

// take runs the script for taking the upload, and returns the answers after the
// status.
func (u *upload) take(ctx context.Context, script *upstash.Script, args ...string,
) (rest []int64, err error) {
	r := u.rec
	answers, err := u.run(ctx, script, args...)
	if err != nil {
		return nil, err
	}
	words := make([]int64, len(answers))
	for i, a := range answers {
		if !a.Valid {
			return nil, WrongCount(0, len(answers))
		}
		words[i] = a.Int64
	}
	header, status := words[1], words[2] // words[0], the commands, is for run
	rest = words[3:]
	switch status {
	case uploadTaken:
		if r.Headed() {
			err = r.Learn(header)
		}
	case uploadLost:
		if err = fault.Untouched(ErrLoadLost); u.repeated {
			err = TakenError{}
		}
	case uploadNoHeader:
		err = UntouchedUnlessRepeated(r.Refuse(ErrNoHeader), u.repeated)
	case uploadTooLong:
		err = fmt.Errorf("%w of this geometry: the string is longer than %d bytes", ErrNotFilter, len(u.data))
		err = UntouchedUnlessRepeated(err, u.repeated)
	case uploadOther:
		if err = UntouchedUnlessRepeated(r.Learn(header), u.repeated); err == nil {
			err = r.Refuse(ErrHeaderBits)
		}
	case uploadKind:
		if len(rest) != 1 {
			return nil, WrongCount(len(rest), 1)
		}
		if err = r.Learn(header); err == nil {
			err = UntouchedUnlessRepeated(OrContradiction(r.LearnKind(rest[0])), u.repeated)
		}
	default:
		err = UntouchedUnlessRepeated(OrContradiction(r.Learn(header)), u.repeated)
	}
	return rest, err
}

// TakenError is ErrUncertain of an upload.
type TakenError struct{}

func (TakenError) Error() string {
	return "bloom: it is not known whether the upload was taken: the script was sent again, and its" +
		" parts were gone; an earlier attempt may have taken them, or they were evicted: call again"
}
func (TakenError) Is(target error) bool { return target == ErrUncertain }
