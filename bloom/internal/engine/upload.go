package engine

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
)

// A string of many megabytes travels in parts. Each part is a key of its own,
// and expires by itself. Then one script checks that all of them are there,
// puts them together and brings them into the target. Whatever is lost on the
// way, the target is untouched or complete.

const (
	// The script names all parts in one request: as many as maxNameBytes hold,
	// from leastParts, which are enough for any filter, to mostParts.
	maxNameBytes = 256 << 10
	leastParts   = 64
	mostParts    = 1000

	// scratchTTL is how long a part stays if its upload was interrupted.
	scratchTTL = time.Hour

	// partRate is the slowest connection for which a part has time, in bytes a
	// second. scriptRate is how fast the slowest server puts parts together, in
	// bytes a second: for 100 MiB, Redis 7.0 took 0.6 s on two shared cores.
	partRate   = 64 << 10
	scriptRate = 8 << 20
)

// Moves is how a string's bytes travel.
type Moves struct {
	PartBytes int // of the string, in one request
	Parallel  int
	Progress  func(done, total int64) // or nil
}

// eachPart calls do for each part of a string of size bytes, several at once,
// and reports progress. After the first error it begins no more parts, and
// returns that error. what is as in EachSpan.
func (c *Moves) eachPart(ctx context.Context, what string, size int,
	do func(ctx context.Context, i, from, to int) error,
) error {
	var mu sync.Mutex
	done := 0
	report := func(n int) {
		if c.Progress == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done += n
		c.Progress(int64(done), int64(size))
	}
	report(0)
	return EachSpan(ctx, what, c.Parallel, 0, size, c.PartBytes, func(ctx context.Context, from, to int) error {
		if err := do(ctx, from/c.PartBytes, from, to); err != nil {
			return err
		}
		report(to - from)
		return nil
	})
}

// An upload is one string on its way to the server, in parts.
type upload struct {
	rec     *Record
	data    []byte
	setBits uint64
	keys    []string // the scratch key at which the parts are put together, then the parts
	ttl     time.Duration
	fits    bool // each part, and the script that names them, into a request

	// late is true if a part was sent again: the server may run the first
	// attempt late, and bring the part back after it was taken.
	late atomic.Bool
	// begun is true if a part may have been sent.
	begun atomic.Bool
	// repeated is true if an attempt before the last at the script may have
	// run.
	repeated bool
	until    time.Time // when what remains after a failure must be over; zero before that

	requests, commands atomic.Int64
	bytes              atomic.Int64
}

// AskAbove is how long a string every plan takes. Only a test changes it.
var AskAbove = MostPlansRecord

// MostPlansRecord is the longest record in bytes on most of Upstash's plans, and
// every plan allows it.
const MostPlansRecord = 100_000_000

// scratchName draws a name that no other call in progress has. It need not be
// secret, and crypto/rand would add 160 KB to a WebAssembly module. All names
// have 13 characters: requests do not differ in length.
func scratchName() string { return strconv.FormatUint(1<<63|lots.Uint64()>>1, 36) }

// A Body is a whole string to bring into a record: of a Bare one, without the
// header. The cells of the target are its bits from First to Last.
type Body struct {
	Bytes       []byte
	SetBits     uint64 // of the cells
	Rate        uint64 // of the birth number if it becomes the string, 0 if it does not say so
	First, Last string
}

// newUpload chooses the names of the keys, KEY:load:RANDOM and
// KEY:load:RANDOM:i, and sends nothing. It makes the parts larger if there would
// be too many of them.
func (r *Record) newUpload(body Body, c *Moves) *upload {
	u := &upload{rec: r, data: body.Bytes, setBits: body.SetBits, ttl: r.TTL}
	base := r.Key + ":load:" + scratchName()
	u.keys = append(u.keys, base)
	name := upstash.Cmd("GET", base+":1000").Size()
	parts := min(max(leastParts, maxNameBytes/name), mostParts)
	limit, script := door.MaxRequest(r.Client), takeBytes()+2*name // with the target and the scratch key
	parts = max(1, min(parts, (limit-script)/name))
	c.PartBytes = max(c.PartBytes, (len(u.data)+parts-1)/parts)
	u.fits = script+parts*name <= limit && min(c.PartBytes, len(u.data)) <= limit
	for i := range (len(u.data) + c.PartBytes - 1) / c.PartBytes {
		u.keys = append(u.keys, base+":"+strconv.Itoa(i))
	}
	return u
}

// ask asks whether the database takes a string so long, if not every plan does. A
// transaction makes one and removes it, so nothing stays. Its key has no other
// use: an attempt that comes late does no harm. The upload ends here if the
// string is too long, or if no answer came. Another error may be of this
// question alone, and the upload goes on.
func (u *upload) ask(ctx context.Context) error {
	if len(u.data) <= AskAbove {
		return nil
	}
	u.requests.Add(1)
	u.commands.Add(2)
	key, last := u.keys[0]+":length", strconv.Itoa(len(u.data)-1)
	replies, err := u.rec.Client.MultiExec(ctx,
		upstash.Cmd("SETRANGE", key, last, "0").Timeout(serverTime(len(u.data))),
		upstash.Cmd("UNLINK", key).Repeatable(true))
	if err == nil {
		err = replies[0].Err()
	}
	if fault.Is(err, upstash.ErrRecordTooLarge) || fault.NoAnswer(err) {
		return u.rec.explainWrite(err)
	}
	return nil
}

// serverTime is how long the server may work through a string of so many bytes.
func serverTime(length int) time.Duration {
	return max(4*time.Second, door.Patience) + time.Duration(length/scriptRate)*time.Second
}

// send uploads the parts. A part that arrives twice or late does no harm: no
// other upload uses its name, and it expires.
func (u *upload) send(ctx context.Context, c Moves) error {
	if !u.fits {
		return fault.Untouched(fault.Errorf("bloom: %d bytes do not go in parts, and in one script that names"+
			" the parts, of upstash.WithMaxRequest(%d): %w", len(u.data), door.MaxRequest(u.rec.Client), upstash.ErrRequestTooLarge))
	}
	if err := u.ask(ctx); err != nil {
		return fault.Untouched(err)
	}
	returned := false
	defer func() {
		if !returned { // Progress has panicked, or ended the goroutine
			u.drop(ctx)
		}
	}()
	seconds := strconv.Itoa(int(scratchTTL / time.Second))
	const what = "the upload was interrupted, and nothing of it was taken"
	err := c.eachPart(ctx, what, len(u.data), func(ctx context.Context, i, from, to int) error {
		part := u.data[from:to]
		u.begun.Store(true)
		cmd := upstash.RawCmd("SETEX", part, u.keys[1+i], seconds).
			Timeout(time.Duration(len(part)/partRate) * time.Second)
		u.requests.Add(1)
		u.commands.Add(1)
		reply, err := u.rec.Client.Do(ctx, cmd)
		if err == nil {
			err = reply.Err()
		}
		if err != nil {
			return fault.Errorf("bloom: part %d of %d: %w", i+1, len(u.keys)-1, u.rec.explainWrite(err))
		}
		if reply.MaybeRepeated() {
			u.late.Store(true)
		}
		u.bytes.Add(int64(len(part)))
		return nil
	})
	returned = true
	if err != nil {
		return fault.Untouched(err)
	}
	return nil
}

// remaining is the context of what remains to be done after a failure, even if the
// caller's has ended. All of it together has as long as a settling.
func (u *upload) remaining(ctx context.Context) (context.Context, context.CancelFunc) {
	if u.until.IsZero() {
		u.until = time.Now().Add(SettleLimit())
	}
	return context.WithDeadline(context.WithoutCancel(ctx), u.until)
}

// drop removes the parts that were not taken. If that fails, they expire. It leaves
// the mark at the scratch key.
func (u *upload) drop(ctx context.Context) {
	if !u.begun.Load() {
		return
	}
	ctx, cancel := u.remaining(ctx)
	defer cancel()
	u.requests.Add(1)
	u.commands.Add(1)
	_, err := u.rec.Client.Do(ctx, upstash.Cmd("UNLINK", u.keys[1:]...).Repeatable(true))
	if server, ok := fault.As[*upstash.Error](err); ok && server.Code() == "CROSSSLOT" {
		var each []upstash.Command
		for _, key := range u.keys[1:] {
			each = append(each, upstash.Cmd("UNLINK", key).Repeatable(true))
		}
		u.requests.Add(InParts(ctx, u.rec.Client, each, func(int, upstash.Reply, error) { u.commands.Add(1) }))
	}
}

// takeBytes is the length of a script that takes an upload, without the names of
// the parts.
var takeBytes = sync.OnceValue(func() int {
	const arguments = 300
	script := 0
	for _, s := range []*upstash.Script{mergeScript, replaceScript, restoreScript} {
		script = max(script, s.Cmd(nil).Size())
	}
	return script + arguments
})

// assemble begins the scripts that take an upload. KEYS[1] is the target,
// KEYS[2] the scratch key, and the other keys are the parts.
//
//	ARGV[1]            the header, '0' for a Bare filter
//	ARGV[2], [3]       the number of set cells; the length
//	ARGV[4]            the TTL of the scratch key in seconds
//	ARGV[5]            the TTL of a new filter in milliseconds, '0' for none
//	ARGV[6]            '1' if a part may come back late
//	ARGV[7]            the birth number if the upload becomes the target: if the
//	                   target has it already, an earlier attempt ran
//	ARGV[8] of merge   '1' if the target must be there
//	ARGV[9], [10]      the first and the last bit of the cells
//	ARGV[11], [12]     see luaCheckKind
//	ARGV[8] of replace another header that the target may have
//
// It defines:
//
//	n                  the number of commands called
//	call(...)          redis.call, counted
//	left()             the PTTL of KEYS[1]; 1 if less than 1 is left, because
//	                   PEXPIRE does not take 0
//	complete()         puts the parts together at KEYS[2]; returns false if
//	                   one is gone or damaged, or if KEYS[2] has the mark; also
//	                   the server's error, if it refused a string so long
//	consume()          removes the parts: a script that runs again finds none;
//	                   marks KEYS[2] if they may come back
//	become(ttl)        makes KEYS[2] the target, and removes the parts. Its own
//	                   TTL goes first, which the target would have otherwise:
//	                   it gets one if ttl is above 0, none if it is below, and
//	                   if it is 0 has none. Returns the server's error, if it
//	                   refused: the target is as it was. SET is not refused,
//	                   because complete has used it
//	replace(old, ttl)  is become for an upload alone; ttl is the PTTL that the
//	                   target had before, old is true if its bit 127 was set
const assemble = LuaFlags + `local n = 0
local function call(...) n = n + 1 return redis.call(...) end
local function left()
  local ttl = call('PTTL', KEYS[1])
  if ttl == 0 then return 1 end
  return ttl
end
local function complete()
  local size = 0
  for i = 3, #KEYS do
    local part = call('GET', KEYS[i])
    if not part then
      if i > 3 then call('DEL', KEYS[2]) end
      return false
    end
    size = size + #part
    if i > 3 then
      n = n + 1
      local r = redis.pcall('APPEND', KEYS[2], part)
      if type(r) == 'table' and r.err then
        call('DEL', KEYS[2])
        return false, r
      end
    elseif not call('SET', KEYS[2], part, 'EX', ARGV[4], 'NX') then
      return false
    end
  end
  local from = '24'
  if ARGV[1] == '0' then from = '0' end
  local whole = size == tonumber(ARGV[3])
  if whole and call('BITCOUNT', KEYS[2], from, '-1') == tonumber(ARGV[2]) then return true end
  call('DEL', KEYS[2])
  return false
end
local function consume()
  call('UNLINK', unpack(KEYS, 3))
  if ARGV[6] == '1' then call('SET', KEYS[2], 'taken', 'EX', ARGV[4]) end
end
local function become(ttl)
  local r = 1
  if ttl ~= 0 then n = n + 1 end
  if ttl > 0 then r = redis.pcall('PEXPIRE', KEYS[2], string.format('%d', ttl)) end
  if ttl < 0 then r = redis.pcall('PERSIST', KEYS[2]) end
  n = n + 1
  if type(r) ~= 'table' then r = redis.pcall('RENAME', KEYS[2], KEYS[1]) end
  if r.err then
    call('SET', KEYS[2], '', 'EX', ARGV[4])
    return r
  end
  consume()
end
local function replace(old, ttl)
  if ARGV[1] ~= '0' then
    local settled = '0'
    if old or ARGV[5] ~= '0' then settled = '1' end
    call('BITFIELD', KEYS[2], 'SET', 'u53', '64', ARGV[7], 'SET', 'u1', '127', settled)
  end
  if not old and ttl < 0 and ARGV[5] ~= '0' then ttl = tonumber(ARGV[5]) end
  return become(ttl)
end
`

// The statuses of the scripts for taking an upload.
const (
	uploadRefused  = iota // the header is another one, or the filter must exist and is missing
	uploadTaken           // the target holds the upload
	uploadLost            // a part is gone or damaged
	uploadNoHeader        // the target is a string beginning with zeros
	uploadTooLong         // the target is a Bare string, longer than the filter's
	uploadOther           // Replace: bits 53 to 63 of the target are set
	uploadKind            // the kind's own word is another one
	uploadExists          // Restore: the target's key holds something
)

// uploadStatusNames has the name that a script has for each status.
var uploadStatusNames = [...]string{
	uploadRefused:  "uploadRefused",
	uploadTaken:    "uploadTaken",
	uploadLost:     "uploadLost",
	uploadNoHeader: "uploadNoHeader",
	uploadTooLong:  "uploadTooLong",
	uploadOther:    "uploadOther",
	uploadKind:     "uploadKind",
	uploadExists:   "uploadExists",
}

// uploadScript makes a script that takes an upload. It returns a status by its name.
func uploadScript(text string) *upstash.Script {
	for status, name := range uploadStatusNames {
		text = strings.ReplaceAll(text, name, strconv.Itoa(status))
	}
	return upstash.NewScript(assemble + text)
}

// What an upload does to the target: Merge ORs it into what is there, Replace
// takes its place, Restore makes it at a free key.

// mergeScript ORs the upload into the target, or makes it the target if there
// is none. It returns the number of commands, the target's header and a status; if
// the upload was taken, also the set cells before and after, 1 if this call made the
// filter, and the birth number.
var mergeScript = uploadScript(`local w = {0, 1, 0}
if ARGV[1] ~= '0' then
  w = call('BITFIELD_RO', KEYS[1], ` + LuaWords + `)
end
local ttl = left()
if ARGV[1] == '0' then
  if call('STRLEN', KEYS[1]) > tonumber(ARGV[3]) then return {n, 0, uploadTooLong} end
elseif ttl ~= -2 then
  if w[1] == 0 then return {n, 0, uploadNoHeader} end
  if w[1] ~= tonumber(ARGV[1]) then return {n, w[1], uploadRefused} end
  if ARGV[11] ~= '0' and math.floor(w[4] / tonumber(ARGV[11])) ~= tonumber(ARGV[12]) then
    return {n, w[1], uploadKind, w[4]}
  end
  if w[3] == tonumber(ARGV[7]) then return {n, w[1], uploadTaken, 0, tonumber(ARGV[2]), 1, w[3]} end
end
if ttl == -2 and ARGV[8] == '1' then return {n, 0, uploadRefused} end
local whole, refusal = complete()
if refusal then return refusal end
if not whole then return {n, w[1], uploadLost} end
if ttl == -2 then
  refusal = replace(false, -1)
  if refusal then return refusal end
  return {n, tonumber(ARGV[1]), uploadTaken, 0, tonumber(ARGV[2]), 1, tonumber(ARGV[7])}
end
local before = call('BITCOUNT', KEYS[1], ARGV[9], ARGV[10], 'BIT')
call('BITOP', 'OR', KEYS[2], KEYS[1], KEYS[2])
local after = call('BITCOUNT', KEYS[2], ARGV[9], ARGV[10], 'BIT')
refusal = become(math.max(ttl, 0))
if refusal then return refusal end
if w[2] == 0 and ARGV[5] ~= '0' then
  call('PEXPIRE', KEYS[1], ARGV[5], 'NX')
  call('SETBIT', KEYS[1], '127', '1')
end
return {n, w[1], uploadTaken, before, after, 0, w[3]}`)

// Merged is what a Merge did.
type Merged struct {
	Bytes, Requests, Commands int64
	Before, After             int64 // set cells
	Created                   bool
	Birth                     int64 // 0 in a Bare string
}

// Merge uploads a body and ORs it into the string, or makes the string of it.
func (r *Record) Merge(ctx context.Context, body Body, c Moves) (Merged, error) {
	var answers []int64
	done, err := r.bring(ctx, body, c, func(u *upload) (err error) {
		must := "0"
		if r.MustExist {
			must, u.ttl = "1", 0 // it settles nothing
		}
		args := []string{strconv.FormatInt(r.NewBirth(), 10), must, body.First, body.Last}
		answers, err = u.take(ctx, mergeScript, append(args, r.kindArgs()...)...)
		return err
	})
	switch {
	case err != nil:
		return done, err
	case len(answers) != 4:
		return done, WrongCount(len(answers), 4)
	case answers[1] < answers[0]:
		return done, ErrNegative
	}
	done.Before, done.After, done.Created, done.Birth = answers[0], answers[1], answers[2] == 1, answers[3]
	return done, nil
}

// bring uploads the parts of a body, and then calls take, which runs a script.
func (r *Record) bring(ctx context.Context, body Body, c Moves, take func(*upload) error) (Merged, error) {
	u := r.newUpload(body, &c)
	err := u.send(ctx, c)
	if err == nil {
		err = take(u)
	}
	if err != nil {
		u.drop(ctx)
	}
	return Merged{Bytes: u.bytes.Load(), Requests: u.requests.Load(), Commands: u.commands.Load()}, err
}

// replaceScript makes the upload the target, if the target is missing, or if
// its header is ARGV[1] or ARGV[8] and its bits 53 to 63 are 0.
var replaceScript = uploadScript(`local w = call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64', 'GET', 'u11', '53')
local ttl = left()
if ttl ~= -2 then
  if w[3] == tonumber(ARGV[7]) then return {n, w[1], uploadTaken} end
  if w[1] == 0 then return {n, 0, uploadNoHeader} end
  if w[4] ~= 0 then return {n, w[1], uploadOther} end
  if w[1] ~= tonumber(ARGV[1]) and w[1] ~= tonumber(ARGV[8]) then return {n, w[1], uploadRefused} end
else
  w = {0, 0, 0}
end
local whole, refusal = complete()
if refusal then return refusal end
if not whole then return {n, w[1], uploadLost} end
refusal = replace(w[2] == 1, ttl)
if refusal then return refusal end
return {n, tonumber(ARGV[1]), uploadTaken}`)

// Replace uploads a body and makes it the string. If another header is there,
// onOther gets the error and returns that header if the body may replace it too,
// and otherwise the error.
func (r *Record) Replace(ctx context.Context, body Body, c Moves,
	onOther func(context.Context, error) (header int64, err error),
) error {
	_, err := r.bring(ctx, body, c, func(u *upload) error {
		birth := format.NewBirth(lots.Uint64(), cmp.Or(body.Rate, r.Rate))
		run := func(old int64) error {
			_, err := u.take(ctx, replaceScript, strconv.FormatInt(birth, 10), strconv.FormatInt(old, 10))
			return err
		}
		err := run(r.Header)
		if err != nil {
			var old int64
			if old, err = onOther(ctx, err); err == nil {
				err = run(old) // once more, for another header
			} else {
				err = untouchedUnlessRepeated(err, u.repeated)
			}
		}
		return u.resolve(ctx, birth, err)
	})
	return err
}

// resolve asks what became of a script that was sent more than once, or whose
// answer was lost: if the target has the call's birth number, the script ran.
func (u *upload) resolve(ctx context.Context, birth int64, err error) error {
	if err == nil || !u.repeated || fault.Is(err, upstash.ErrRecordTooLarge) {
		return err
	}
	ctx, cancel := u.remaining(ctx)
	defer cancel()
	if u.rec.isMade(ctx, birth) {
		return nil
	}
	return fault.MayHaveRun(err)
}

// restoreScript makes the upload the target if the target's key is free.
var restoreScript = uploadScript(`if call('EXISTS', KEYS[1]) == 1 then
  n = n + 1
  local w = redis.pcall('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u53', '64')
  if w.err then w = {0, 0} end
  if w[2] == tonumber(ARGV[7]) then return {n, w[1], uploadTaken} end
  return {n, w[1], uploadExists}
end
local whole, refusal = complete()
if refusal then return refusal end
if not whole then return {n, 0, uploadLost} end
refusal = replace(false, -1)
if refusal then return refusal end
return {n, tonumber(ARGV[1]), uploadTaken}`)

// Restore uploads a whole string with its kind's own word, and makes it the
// target with the record's TTL and a new birth number. If the key is taken, the
// error is ErrKeyExists.
func (r *Record) Restore(ctx context.Context, body Body, c Moves) (Merged, error) {
	return r.bring(ctx, body, c, func(u *upload) error {
		birth := format.NewBirth(lots.Uint64(), body.Rate)
		_, err := u.take(ctx, restoreScript, strconv.FormatInt(birth, 10))
		return u.resolve(ctx, birth, err)
	})
}

// isMade asks the primary whether the string has the birth number of a call,
// which the call wrote together with the header. It returns false without an
// answer.
func (r *Record) isMade(ctx context.Context, birth int64) bool {
	reply, err := r.Client.Do(ctx, r.Identity().Command())
	if err != nil {
		return false
	}
	id, _ := ParseIdentity(reply) // zeros after an error
	return id == [2]int64{r.Header, birth}
}

// take runs the script that takes the upload, and returns the answers behind the
// status. The first three are the number of commands that the script called, the
// target's header, or 0, and the status.
func (u *upload) take(ctx context.Context, script *upstash.Script, args ...string,
) (rest []int64, err error) {
	r, late := u.rec, "0"
	if u.late.Load() {
		late = "1"
	}
	args = append([]string{
		strconv.FormatUint(u.setBits, 10), strconv.Itoa(len(u.data)),
		strconv.Itoa(int(scratchTTL / time.Second)), Milliseconds(u.ttl), late,
	}, args...)
	u.requests.Add(1)
	reply, err := r.Client.Do(ctx, r.Script(script, u.keys, args...).Repeatable(true).Timeout(serverTime(len(u.data))))
	answers, err := integers(reply, err, nil)
	if fault.Is(err, upstash.ErrRecordTooLarge) {
		// The parts are there, so no attempt took them, and they do not fit.
		return nil, fault.Untouched(r.Failed(err))
	}
	u.repeated = u.repeated || reply.MaybeRepeated() || err != nil && !upstash.SafeToRetry(err)
	if err != nil {
		return nil, r.Failed(err)
	}
	words, err := noNulls(answers)
	if err != nil {
		return nil, err
	}
	if len(words) < 3 {
		return nil, WrongCount(len(words), 3)
	}
	u.commands.Add(1 + words[0])
	rest = words[3:]
	return rest, u.judge(words[2], words[1], rest)
}

// judge returns the error of a status, from the target's header and the answers
// behind the status.
func (u *upload) judge(status, header int64, rest []int64) error {
	switch status {
	case uploadTaken:
		if !u.rec.Headed() {
			return nil
		}
		return u.rec.Learn(header)
	case uploadLost:
		if u.repeated {
			return ErrTaken
		}
		return fault.Untouched(ErrLoadLost)
	case uploadExists:
		if u.repeated {
			return errTakenKey
		}
		return fault.Untouched(errTakenKey)
	}
	return untouchedUnlessRepeated(u.refusal(status, header, rest), u.repeated)
}

// refusal returns why the target is none for the upload.
func (u *upload) refusal(status, header int64, rest []int64) error {
	r := u.rec
	switch status {
	case uploadNoHeader:
		return r.Refuse(ErrNoHeader)
	case uploadTooLong:
		return fmt.Errorf("%w of this geometry: the string is longer than %d bytes", format.ErrNotFilter, len(u.data))
	}
	err := r.Learn(header)
	switch {
	case status == uploadOther && err == nil:
		return r.Refuse(format.ErrHeaderBits)
	case status == uploadKind && len(rest) != 1:
		return WrongCount(len(rest), 1)
	case status == uploadKind: // its header is ours
		err = r.learnKind(rest[0])
	}
	return orContradiction(err)
}
