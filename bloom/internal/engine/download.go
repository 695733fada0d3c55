package engine

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// How a string is read in parts. Each part comes with the header and
// the birth number, read in the same atomic step: no part is of another filter.

// partScript returns the words, the bits beside them that are 0 in every string with a
// header, the length, and the bytes ARGV[2] to ARGV[3]. ARGV[1] is the header, '0' that
// of any filter of version 1. Of other data, as header and bits show it, there are no
// bytes, and no length.
//
// ARGV[4] is '1' for the first part, of which the length counts. The script asks for it
// only if the part does not show it: one that ends early ends with the string. A missing
// string and zeros differ by it. A kind that is copied if it is longer has no bytes then.
var partScript = upstash.NewScript(LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1], ` + LuaWords + `,
  'GET', 'u11', '53', 'GET', 'u10', '117', 'GET', 'u11', '181')
local head = math.floor(w[1] / 2^45) -- 1, kind, version, scheme
local ours = w[1] == tonumber(ARGV[1])
if ARGV[1] == '0' then ours = head >= 128 and math.floor(head / 8) % 4 == 1 end
if not ours or w[5] + w[6] > 0 then
  if ARGV[4] == '1' and w[1] == 0 then w[8] = redis.call('STRLEN', KEYS[1]) end
  return w
end
local part = redis.call('GETRANGE', KEYS[1], ARGV[2], ARGV[3])
w[8], w[9] = tonumber(ARGV[2]) + #part, part
if ARGV[4] == '1' and (#part == 0 or w[8] > tonumber(ARGV[3])) then
  w[8] = redis.call('STRLEN', KEYS[1])
  if head >= 192 or head == 141 then w[9] = nil end -- layers, a window, a cuckoo table
end
return w`)

// partNumbers is how many numbers partScript returns before the bytes.
const partNumbers = 8

// A PartReader reads parts of the string with a birth number.
type PartReader struct {
	Rec   *Record
	Birth int64 // of which Read reads; 0 is a number like others
	// Near lets the nearest region answer, and remembers nothing it says.
	Near bool
}

// A Part is bytes of a string, and its words in the same step.
type Part struct {
	Bytes []byte
	Words
}

// Read returns the bytes from from up to, but without, to, or fewer if the
// string ends earlier. If the birth number is another, the error is
// ErrRecreated.
func (p PartReader) Read(ctx context.Context, from, to int) (Part, error) {
	part, err := p.ReadAny(ctx, from, to)
	if err == nil && part.Birth != p.Birth {
		return Part{}, ErrRecreated
	}
	return part, err
}

// ReadAny is Read of a filter with any birth number: the part says of which.
func (p PartReader) ReadAny(ctx context.Context, from, to int) (part Part, err error) {
	args := []string{strconv.FormatInt(p.Rec.Header, 10), strconv.Itoa(from), strconv.Itoa(to - 1), "0"}
	err = p.run(ctx, args, to-from, func(numbers []upstash.NullInt64, bytes []byte) (err error) {
		part, err = p.judge(numbers, bytes)
		return err
	})
	return part, err
}

// run sends partScript. judge gets its numbers and the bytes, most at most, or nil if it
// returned none.
func (p PartReader) run(ctx context.Context, args []string, most int,
	judge func(numbers []upstash.NullInt64, bytes []byte) error,
) error {
	keys := []string{p.Rec.Key}
	script := partScript.Cmd(keys, args...).Repeatable(true) // runs on the primary
	if p.Near {
		script = partScript.ReadOnlyCmd(keys, args...)
	}
	script = script.AllOrNothing().Binary().Timeout(partTimeout(most)) // it only reads
	return p.Rec.binary(ctx, script, func(reply upstash.Reply, err error) error {
		var answers []upstash.Reply
		if err == nil {
			answers, err = reply.Array()
		}
		if err != nil {
			return p.Rec.failedAt(p.Near, err)
		}
		if len(answers) > partNumbers+1 {
			return WrongCount(len(answers), partNumbers+1)
		}
		numbers, bytes := make([]upstash.NullInt64, min(len(answers), partNumbers)), []byte(nil)
		for i := range numbers {
			n, err := answers[i].Int64()
			if err != nil {
				return err
			}
			numbers[i] = upstash.NullInt64{Int64: n, Valid: true}
		}
		if len(answers) > partNumbers {
			if bytes, err = partIn(answers[partNumbers], most); err != nil {
				return err
			}
		}
		return judge(numbers, bytes)
	})
}

// judge takes the answer about a part apart.
func (p PartReader) judge(numbers []upstash.NullInt64, bytes []byte) (Part, error) {
	a := p.Rec.judgeWords(numbers, p.Near, false)
	switch {
	case a.Err != nil:
		return Part{}, a.Err
	case len(a.More) > 1 && a.More[0].Int64+a.More[1].Int64 != 0:
		return Part{}, format.ErrHeaderBits
	case bytes == nil:
		return Part{}, WrongCount(len(numbers), partNumbers+1)
	}
	return Part{bytes, Words{a.Birth, a.Kind}}, nil
}

// A Start is the state of a string, and its first part in the same step. A string that
// is copied and does not end in that part has no Bytes.
type Start struct {
	format.State
	Bytes []byte
}

// ReadStart reads how the string begins, its bytes from from up to, but without, to. If
// whatever is true, it may be of any header. The primary answers, and the sync token of
// its answer covers all that was acknowledged before.
//
// If the server refuses EVAL, because the token may not run it or the database is full,
// the primary tells the state alone, and the nearest region the rest of it.
func (r *Record) ReadStart(ctx context.Context, from, to int, whatever bool) (Start, error) {
	near := r.Client.ReadOnly()
	s, err := r.readStart(ctx, near, from, to, whatever)
	if near || !isForbidden(err) {
		return s, err
	}
	seen, err := r.ReadState(ctx, false)
	if err == nil && !whatever {
		err = r.Compare(int64(seen.Header.Word()))
	}
	if err != nil {
		return Start{}, err
	}
	s, err = r.readStart(ctx, true, from, to, whatever)
	if err == nil && (s.Header != seen.Header || s.Birth != seen.Birth || s.Length < seen.Length) {
		err = errChanged
	}
	return s, orChanged(err)
}

func (r *Record) readStart(ctx context.Context, near bool, from, to int, whatever bool) (s Start, err error) {
	header := "0"
	if !whatever {
		header = strconv.FormatInt(r.Header, 10)
	}
	args := []string{header, strconv.Itoa(from), strconv.Itoa(to - 1), "1"}
	err = PartReader{Rec: r, Near: near}.run(ctx, args, to-from, func(numbers []upstash.NullInt64, bytes []byte) error {
		look, err := lookIn(numbers)
		if err != nil {
			return err
		}
		if _, other := look.Words(); other == nil { // else checkLook says so
			if !whatever {
				if err := r.Compare(look.Header); err != nil {
					return err
				}
			}
			if bytes == nil && look.Length < uint64(to) {
				return WrongCount(len(numbers), partNumbers+1)
			}
		}
		s.State, err = checkLook(look, near)
		s.Bytes = bytes
		return err
	})
	return s, err
}

// lookIn returns what the numbers of partScript say. The length is missing if the string
// is no filter.
func lookIn(numbers []upstash.NullInt64) (l format.Look, err error) {
	var n [partNumbers]int64
	if len(numbers) < partNumbers-1 {
		return l, WrongCount(len(numbers), partNumbers)
	}
	for i, a := range numbers {
		n[i] = a.Int64
		if i < 4 {
			if n[i], err = FieldWord(a); err != nil {
				return l, err
			}
		}
	}
	return format.Look{
		Header: n[0], Birth: n[2], Word: n[3], Length: uint64(max(n[7], 0)),
		Stray: n[4]+n[5] != 0, StrayKind: n[6] != 0,
	}, nil
}

// readBare is Read for a Bare filter, whose parts prove nothing.
func (r *Record) readBare(ctx context.Context, from, to int) (part []byte, err error) {
	cmd := upstash.Cmd("GETRANGE", r.Key, strconv.Itoa(from), strconv.Itoa(to-1)).Binary().
		Timeout(partTimeout(to - from))
	err = r.binary(ctx, cmd, func(reply upstash.Reply, err error) error {
		if err != nil {
			return Explain(err)
		}
		part, err = partIn(reply, to-from)
		return err
	})
	return part, err
}

// partTimeout returns how long a part of n bytes may take.
func partTimeout(n int) time.Duration { return time.Duration(n/partRate) * time.Second }

// binary sends a command whose answer has bytes. It asks for RESP2, and for
// base64 if the server does not send RESP2. judge takes the answer apart.
func (r *Record) binary(ctx context.Context, cmd upstash.Command, judge func(upstash.Reply, error) error) error {
	var first error
	if !r.NoRESP2.Load() {
		first = judge(r.Client.Do(ctx, cmd))
		if first == nil || fault.NoAnswer(first) || IsAnswer(first) || isForbidden(first) {
			return first
		}
	}
	replies, err := r.Client.Pipeline(ctx, cmd)
	if err == nil {
		err = judge(replies[0], replies[0].Err())
		if err == nil {
			r.NoRESP2.Store(true)
		}
		if err == nil || IsAnswer(err) {
			return err
		}
	}
	if first != nil {
		return first // the first says more
	}
	return err
}

// isForbidden reports whether the server runs the command in no form: the token may
// not, or the database is full.
func isForbidden(err error) bool { return fault.IsDenied(err) || fault.Is(err, upstash.ErrOutOfMemory) }

// partIn returns the bytes of a reply, most at most.
func partIn(reply upstash.Reply, most int) ([]byte, error) {
	part, err := reply.Bytes()
	if err != nil {
		return nil, Explain(err)
	}
	if len(part) > most {
		return nil, fault.Errorf("bloom: %w: a part of %d bytes, and %d were asked for",
			upstash.ErrBadResponse, len(part), most)
	}
	return part, nil
}

const interrupted = "the download was interrupted"

// Download reads the bytes of a string from from up to, but without, to, in
// parts, several at once, and passes each to put, one at a time. If first is not nil,
// it is the first part. All parts are of the filter with the birth number; those of a
// Bare record prove nothing.
func (r *Record) Download(ctx context.Context, c Moves, birth int64, first []byte, from, to int,
	put func(at int, part []byte),
) error {
	read := r.readBare
	if r.Headed() {
		read = func(ctx context.Context, from, to int) ([]byte, error) {
			part, err := PartReader{r, birth, true}.Read(ctx, from, to)
			return part.Bytes, err
		}
	}
	var mu sync.Mutex
	return c.eachPart(ctx, interrupted, max(to-from, 0), func(ctx context.Context, i, a, b int) error {
		part, err := first, error(nil)
		if i > 0 || first == nil {
			part, err = read(ctx, from+a, from+b)
		}
		if err != nil {
			return orChanged(err)
		}
		if len(part) < b-a { // the string of a filter never gets shorter
			return errChanged
		}
		mu.Lock()
		defer mu.Unlock()
		put(from+a, part[:b-a])
		return nil
	})
}

// copyScript copies the string to KEYS[2], which expires after ARGV[2] seconds. A
// copy of an earlier attempt is as good. It returns the birth number and the
// length of the copy behind the words.
var copyScript = upstash.NewScript(LuaCheckHeader + `redis.call('COPY', KEYS[1], KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
w[5] = redis.call('BITFIELD_RO', KEYS[2], 'GET', 'u53', '64')[1]
w[6] = redis.call('STRLEN', KEYS[2])
return w`)

// maxStringBytes is the longest string of Redis.
const maxStringBytes = 512 << 20

// Fetch returns the string as it is at one moment. A script copies it to a scratch key,
// and the copy is read in parts and removed. birth and length are what was seen of the
// string, which does not end in its first part.
func (r *Record) Fetch(ctx context.Context, c Moves, birth int64, length int, fix func()) ([]byte, error) {
	if r.Client.ReadOnly() {
		return nil, upstash.ErrReadOnly
	}
	twin := &Record{Client: r.Client, Key: r.Key + ":save:" + scratchName(), Meaning: r.Meaning, Header: r.Header}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleLimit())
		defer cancel()
		_, _ = r.Client.Do(ctx, upstash.Cmd("UNLINK", twin.Key).Repeatable(true))
	}()
	a := r.RunScript(ctx, r.Script(copyScript, []string{twin.Key}, strconv.Itoa(int(scratchTTL/time.Second))).
		Repeatable(true).Timeout(serverTime(length)))
	made, err := a.Numbers(2)
	if err != nil {
		return nil, orChanged(err)
	}
	if made[0] != birth {
		return nil, errChanged
	}
	if made[1] < 0 || made[1] > maxStringBytes {
		return nil, ErrNegative
	}
	fix()
	data := make([]byte, made[1])
	err = twin.Download(ctx, c, birth, nil, 0, len(data), func(at int, part []byte) { copy(data[at:], part) })
	return data, err
}

// orChanged is the error of a read in a call that has seen the filter before: if
// it is gone, or another one, it is an ErrRecreated.
func orChanged(err error) error {
	if IsAnswer(err) {
		return errChanged
	}
	return err
}

// MeasureBare reads the length of a Bare filter's string. A STRLEN alone would
// go to the nearest region, which may be behind, and the parts after it: the
// BITFIELD brings both to the primary. If the server refuses the BITFIELD,
// because the token may not run it or the database is full, the STRLEN alone
// has to do.
func (r *Record) MeasureBare(ctx context.Context) (length int, err error) {
	cmds := []upstash.Command{upstash.Cmd("STRLEN", r.Key)}
	if !r.Client.ReadOnly() {
		cmds = append(cmds, upstash.NewBitField(r.Key).Get("u1", 0).Command())
	}
	replies, err := r.Client.Pipeline(ctx, cmds...)
	if fault.IsDenied(err) { // as a whole
		replies, err = r.Client.Pipeline(ctx, cmds[0])
	}
	if err != nil {
		return 0, Explain(err)
	}
	n, err := replies[0].Int64()
	switch {
	case err != nil:
		return 0, Explain(err)
	case n < 0:
		return 0, ErrNegative
	case n == 0:
		return 0, ErrBareMissing
	}
	return int(n), nil
}
