package http1

import (
	"bufio"
	"bytes"
	"io"
	"slices"

	"github.com/upbloom/upbloom/upstash/internal/ascii"
)

// atOnce is the room, in bytes, for a body before it has come.
const atOnce = 64 << 10

// AppendBody reads the body and appends it to dst. The body ends after its
// length, after its last chunk and trailer, or with the connection. AppendBody
// returns [ErrLongBody] as soon as it knows of more than limit bytes. Memory
// follows the bytes as they come, not their announcement. Beside an error it
// returns a part of the body, in the memory of dst or in a larger one.
func (h *Head) AppendBody(dst []byte, r *bufio.Reader, limit int) ([]byte, error) {
	f := &h.framing
	switch {
	case f.bodiless:
		return dst, nil
	case f.chunked:
		return h.appendChunks(dst, r, limit)
	case !f.sized:
		return appendRest(dst, r, limit)
	case f.length > int64(limit):
		return dst, ErrLongBody
	}
	return appendBytes(dst, r, int(f.length))
}

// appendBytes appends n bytes to dst.
func appendBytes(dst []byte, r io.Reader, n int) ([]byte, error) {
	dst = slices.Grow(dst, min(n, atOnce))
	for n > 0 {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(n, len(dst)))
		}
		got, err := r.Read(dst[len(dst):min(cap(dst), len(dst)+n)])
		dst, n = dst[:len(dst)+got], n-got
		if err != nil && n > 0 {
			return dst, err
		}
	}
	return dst, nil
}

// appendRest appends all bytes until the connection ends.
func appendRest(dst []byte, r io.Reader, limit int) ([]byte, error) {
	for start := len(dst); ; {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, max(len(dst), 512))
		}
		got, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+got]
		switch {
		case len(dst)-start > limit:
			return dst, ErrLongBody
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
		}
	}
}

// maxExtensions is the most bytes of extensions in all chunks of a body
// together. None has a meaning for this client.
const maxExtensions = 16 << 10

// appendChunks appends the data of all chunks, and reads the trailer.
func (h *Head) appendChunks(dst []byte, r *bufio.Reader, limit int) ([]byte, error) {
	extensions := 0
	for start := len(dst); ; {
		line, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			return dst, ErrNotHTTP
		}
		if err != nil {
			return dst, err
		}
		size, extension, ok := parseChunk(line)
		if extensions += extension; !ok || extensions > maxExtensions {
			return dst, ErrNotHTTP
		}
		if size == 0 {
			return dst, h.readTrailer(r)
		}
		if size > int64(limit-(len(dst)-start)) {
			return dst, ErrLongBody
		}
		if dst, err = appendBytes(dst, r, int(size)); err != nil {
			return dst, err
		}
		end, err := r.Peek(2)
		if err != nil {
			return dst, err
		}
		if string(end) != "\r\n" {
			return dst, ErrNotHTTP
		}
		_, _ = r.Discard(2)
	}
}

// parseChunk parses the line before the data of a chunk: its size in hex, and
// the length of its extension.
func parseChunk(line []byte) (size int64, extension int, ok bool) {
	line, ok = bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || !isText(line) {
		return 0, 0, false
	}
	digits, rest, extended := bytes.Cut(line, []byte(";"))
	if !extended {
		digits = trimBlanksRight(digits)
	}
	for _, c := range digits {
		n, ok := unhex(c)
		if !ok {
			return 0, 0, false
		}
		size = size<<4 | n
	}
	return size, len(rest), 0 < len(digits) && len(digits) <= 15 // which fit into an int64
}

func unhex(c byte) (int64, bool) {
	switch c = ascii.Lower(c); {
	case isDigit(c):
		return int64(c - '0'), true
	case 'a' <= c && c <= 'f':
		return int64(c-'a') + 10, true
	}
	return 0, false
}

// readTrailer reads the fields after the last chunk. They have no meaning for
// this client.
func (h *Head) readTrailer(r *bufio.Reader) error {
	b, err := peekSection(r, "")
	if err == ErrLongHead {
		return ErrNotHTTP
	}
	if err != nil {
		return err
	}
	var f framing
	if !f.parse(b, nil) || f.sized || f.chunked {
		return ErrNotHTTP
	}
	h.KeepAlive = h.KeepAlive && !f.closes
	_, _ = r.Discard(len(b))
	return nil
}
