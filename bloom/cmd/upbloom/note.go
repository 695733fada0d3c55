package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// A note is what save writes behind a filter: where it came from.
type note struct {
	Key     string     `json:"key,omitempty"`
	Host    string     `json:"host,omitempty"` // of the database
	Saved   time.Time  `json:"saved,omitzero"`
	Expires *time.Time `json:"expires,omitempty"`
	Birth   int64      `json:"birth,omitempty"`
}

// origin says where a saved filter came from.
func (n note) origin() string {
	if n.Key == "" {
		return "the file does not say of which filter it is"
	}
	return fmt.Sprintf("%s at %s, saved %s", printable(n.Key), printable(cmp.Or(n.Host, "a database")),
		n.Saved.UTC().Format("2006-01-02 15:04 MST"))
}

// noted is a saved filter with its note, as it stands in a file.
type noted struct {
	*bloom.Backup
	note note
	file string // from which it was read, printable
	head []byte // the first bytes there, to the end of the header
}

// word returns the 8 bytes of the string that begin at a bit of its header.
func (n noted) word(bit int) uint64 {
	return binary.BigEndian.Uint64(n.head[format.FrameHeadBytes+bit/8:])
}

func (n noted) WriteTo(w io.Writer) (int64, error) {
	text, err := json.Marshal(n.note)
	if err == nil && len(text) > format.MaxNoteBytes {
		n.note.Key = ""
		text, err = json.Marshal(n.note)
	}
	if err != nil {
		return 0, err
	}
	return format.WriteNoted(w, n.Backup, text)
}

// readNoted is bloom.ReadBackup.
func readNoted(r io.Reader) (noted, error) {
	buffered := bufio.NewReader(r)
	head, _ := buffered.Peek(format.FrameHeadBytes + format.HeaderBytes)
	behind := afterFrame{skip: 1 << 62}
	if len(head) >= format.FrameHeadBytes {
		n := binary.BigEndian.Uint64(head[format.FrameHeadBytes-8:])
		behind.skip = uint64(format.FrameHeadBytes+format.FrameSumBytes) + min(n, 1<<61)
	}
	out := noted{head: bytes.Clone(head)}
	var err error
	if out.Backup, err = bloom.ReadBackup(io.TeeReader(buffered, &behind)); err != nil {
		return out, err
	}
	if len(behind.trailer) > 0 && json.Unmarshal(format.Note(behind.trailer), &out.note) != nil {
		out.note = note{} // one of another program may say other things
	}
	return out, nil
}

// readFile reads a saved file.
func readFile(name string) (noted, error) {
	f, err := os.Open(name)
	if err != nil {
		return noted{}, err
	}
	defer f.Close()
	return readNoted(f)
}

// afterFrame keeps what follows a frame.
type afterFrame struct {
	skip    uint64
	trailer []byte
}

func (t *afterFrame) Write(p []byte) (int, error) {
	within := min(t.skip, uint64(len(p)))
	t.skip -= within
	t.trailer = append(t.trailer, p[within:]...)
	return len(p), nil
}

// An identity says which filter a string is.
type identity struct {
	header, birth, word int64
	zeros               bool          // bits 117 to 126, as in every filter
	left                time.Duration // until it expires, or 0
}

// sure reports whether no random string is such a filter.
func (i identity) sure() bool { return i.birth&format.Marker != 0 && i.zeros }

// identities reads which filters are at the keys. That of a key without a string is
// zero.
func (a *app) identities(ctx context.Context, keys []string) ([]identity, error) {
	var cmds []upstash.Command
	for _, key := range keys {
		cmds = append(cmds, upstash.NewBitField(key).Get("u53", 0).Get("u53", format.BirthOffset).Get("u10", 117).
			Get("u53", format.KindOffset).ReadOnly().Command(), upstash.Cmd("PTTL", key))
	}
	replies, err := a.client.Pipeline(ctx, cmds...)
	if err != nil {
		return nil, err
	}
	out := make([]identity, len(keys))
	for i := range out {
		n, err := replies[2*i].Ints(nil)
		if err != nil || len(n) != 4 {
			continue
		}
		out[i] = identity{header: n[0].Int64, birth: n[1].Int64, zeros: n[2].Int64 == 0, word: n[3].Int64}
		if left, err := replies[2*i+1].Int64(); err == nil && left > 0 {
			out[i].left = time.Duration(left) * time.Millisecond
		}
	}
	return out, nil
}
