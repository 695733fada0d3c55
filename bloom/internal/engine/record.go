package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A core is one Redis string: its key, the header it should have, and a
// handle's knowledge of it. Every type of this package in Redis is made of
// records. It is safe for concurrent use.
type Core struct {
	Client       *upstash.Client
	Key          string
	Items        Items         // how an item is written and read
	Shape        Shape         // nil for a plain filter
	Meaning      meaning       // says what a strange word means
	Header       int64         // the word at bit 0; 0 in the Bare layout
	Ttl          time.Duration // to settle with; 0 for none
	Must         bool          // a write to a missing filter creates nothing
	Nearest      bool          // the nearest region is asked first
	NearestFirst bool          // and only its "yes" counts

	// Only what the primary said is remembered: a replica may speak of the
	// past.
	Verified atomic.Bool           // the header was seen and is ours
	refused  atomic.Pointer[error] // why nothing more is written
	settling atomic.Bool           // a settling command is under way; Bare: was sent
	NoRESP2  atomic.Bool           // the server sends no RESP2
}

func (r *Core) Headed() bool { return r.Header != 0 }

// label names the operation for the client's observer, after the caller's own
// label: "crawler bloom.Add". Without an observer it costs nothing.
func (r *Core) Label(ctx context.Context, operation string) context.Context {
	if !r.Client.Observed() {
		return ctx
	}
	if own := upstash.LabelOf(ctx); own != "" {
		operation = own + " " + operation
	}
	return upstash.WithLabel(ctx, operation)
}

// forget resets the record: like a new one, it knows nothing of its key.
func (r *Core) Forget() {
	r.Verified.Store(false)
	r.refused.Store(nil)
	if !r.Headed() {
		r.settling.Store(false)
	}
}

// mayWrite returns an error if a write is known to fail or to do harm.
func (r *Core) MayWrite() error {
	if err := r.refused.Load(); err != nil {
		return fault.Untouched(*err)
	}
	if r.Client.ReadOnly() {
		return upstash.ErrReadOnly
	}
	return nil
}

// learn compares a header word from the primary with the record's, and
// remembers the result: after another filter, nothing is written until the
// right filter, or none, was seen.
func (r *Core) Learn(word int64) error {
	err := r.Compare(word)
	switch {
	case err == nil:
		r.Verified.Store(true)
		r.refused.Store(nil)
	case fault.Is(err, ErrNotFound):
		r.Forget()
	default:
		return r.Refuse(err)
	}
	return err
}

// compare judges a header word and remembers nothing.
func (r *Core) Compare(word int64) error {
	switch word {
	case r.Header:
		return nil
	case 0:
		return ErrNotFound
	}
	return r.Meaning.OtherHeader(word)
}

// compareNear is compare for a header word that a region may have sent.
func (r *Core) CompareNear(word int64) error {
	if word == 0 && r.Header != 0 {
		return MissingNear{}
	}
	return r.Compare(word)
}

// refuse remembers why nothing more may be written.
func (r *Core) Refuse(err error) error {
	r.refused.Store(&err)
	return err
}

// failed explains an error of the primary, and remembers a key of another type.
func (r *Core) Failed(err error) error {
	err = r.Explain(err)
	if fault.Is(err, ErrNotFilter) {
		return r.Refuse(err)
	}
	return err
}

// explain adds to a server's words their meaning for a filter.
func Explain(err error) error {
	server, ok := fault.As[*upstash.Error](err)
	switch {
	case !ok:
	case server.Code() == "WRONGTYPE":
		return &wrongTypeError{err}
	case fault.Is(err, upstash.ErrRequestTooLarge):
		return fault.Errorf("bloom: the request is too large for the database: lower"+
			" Config.BatchBytes: %w", err)
	}
	return err
}

// explain also says what makes the record's string shorter, if it is too long.
func (r *Core) Explain(err error) error {
	if fault.Is(err, upstash.ErrRecordTooLarge) {
		return r.Meaning.TooLarge(err)
	}
	return Explain(err)
}

// explainRead is explain for a look-up.
func ExplainRead(err error) error {
	if fault.Is(err, upstash.ErrOutOfMemory) {
		return fault.Errorf("bloom: a BITFIELD counts as a write, which a full database refuses: free"+
			" memory, or read with upstash.WithReadOnly: %w", err)
	}
	return Explain(err)
}

// behindText is the text of a regionError if only a region has answered. It
// names the field of the type's config, which a Window has not.
func (r *Core) behindText() string {
	text := "the token may not run BITFIELD, and this answer of a BITFIELD_RO may be that of a" +
		" replica that lags: use a full token, or accept it with upstash.WithReadOnly"
	if field := r.Meaning.ReadsField(); field != "" {
		text += " or " + field
	}
	return text
}

// near reports whether look-ups go to the nearest region first.
func (r *Core) near() bool { return r.Nearest || r.Client.ReadOnly() }

// identity asks for the header and the birth number.
func (r *Core) Identity() *upstash.BitField {
	return upstash.NewBitField(r.Key).Get(U53, 0).Get(U53, BirthOffset)
}

// identityIn judges the answer to identity.
func IdentityIn(reply upstash.Reply) (id [2]int64, err error) {
	words, err := reply.Ints(nil)
	if err == nil && len(words) != len(id) {
		err = WrongCount(len(words), len(id))
	}
	for i := 0; i < len(words) && err == nil; i++ {
		id[i], err = FieldWord(words[i])
	}
	return id, err
}

// hasBirth asks the primary whether the filter is the record's and has this
// birth number. Without an answer it returns false.
func (r *Core) HasBirth(ctx context.Context, birth int64) bool {
	reply, err := r.Client.Do(ctx, r.Identity().Command())
	if err != nil {
		return false
	}
	id, err := IdentityIn(reply)
	return err == nil && id == [2]int64{r.Header, birth}
}
