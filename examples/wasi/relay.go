package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// relay sends a guest's requests. One relay serves one guest.
type relay struct {
	base      string // the only URL for the guest, from baseOf
	transport http.RoundTripper
	pending   []byte // an answer for which the guest had no room
}

// exchange is the function of the guest's import; reactor/transport.go says
// what it promises. The addresses and lengths come from the guest. If one is
// wrong, exchange panics: a trap for the guest.
func (r *relay) exchange(ctx context.Context, guest api.Module,
	request, n uint32, timeout uint64, maxBody uint32, answer, room uint32,
) uint32 {
	if n > 0 {
		message, ok := guest.Memory().Read(request, n)
		if !ok {
			panic("exchange: the request is outside the guest's memory")
		}
		ctx, cancel := context.WithTimeout(callerOf(ctx), time.Duration(timeout))
		defer cancel()
		r.pending = r.answer(ctx, message, int64(maxBody))
	}
	length := uint32(len(r.pending))
	if length <= room {
		if !guest.Memory().Write(answer, r.pending) {
			panic("exchange: the answer is outside the guest's memory")
		}
		r.pending = nil
	}
	return length
}

// answer sends one request and returns one answer, whatever happens.
func (r *relay) answer(ctx context.Context, message []byte, maxBody int64) []byte {
	req, sent, err := parseRequest(message)
	if err != nil {
		return failure("not sent", err)
	}
	if !below(r.base, req.URL.String()) {
		return []byte(refusal)
	}
	resp, err := r.transport.RoundTrip(req.WithContext(ctx))
	notSent := err != nil && !sent.stop()
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		// Over HTTP/2 a read outlives ctx if the answer begins before the request is
		// out, and the server takes no more of that.
		stop := context.AfterFunc(ctx, func() { _ = resp.Body.Close() })
		defer stop()
		if resp.ContentLength > maxBody {
			return tooLarge(resp)
		}
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return failure("canceled", ctx.Err())
	case notSent:
		return failure("not sent", err)
	case err != nil && ctx.Err() != nil:
		return failure("timeout", ctx.Err())
	case err != nil:
		return failure("failed", quiet(err))
	case int64(len(body)) > maxBody:
		return tooLarge(resp)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n", resp.StatusCode)
	for name, values := range resp.Header {
		fmt.Fprintf(&b, "%s: %s\n", name, values[0])
	}
	b.WriteByte('\n')
	b.Write(body)
	return b.Bytes()
}

// refusal looks like the answer of a proxy that forbids a request. It tells
// the guest: nothing ran, and another try would end the same way.
const refusal = "403\n\n" + `{"error":"the host lets this guest ask its own database only"}`

// baseOf brings a database's URL to the form of package upstash's requests: no
// slash at the end, the scheme and the host in lower case. For one that cannot be
// parsed it returns ""; the guest says what is wrong with it.
func baseOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/")
}

// below reports whether target is base or a path below it. A server or a proxy
// may resolve "..", and unescape the path before, or take "\\" for "/".
func below(base, target string) bool {
	rest, ok := strings.CutPrefix(target+"/", base+"/")
	for ok {
		if slices.Contains(strings.FieldsFunc(rest, isSlash), "..") {
			return false
		}
		plain, err := url.PathUnescape(rest)
		if err != nil || plain == rest {
			return true
		}
		rest = plain
	}
	return false
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

func failure(outcome string, err error) []byte {
	return fmt.Appendf(nil, "%s: %v", outcome, err)
}

// quiet returns err without what net/http quotes of a malformed answer, which may
// repeat the request.
func quiet(err error) error {
	var field textproto.ProtocolError
	if errors.As(err, &field) { // quotes without quotation marks
		return errors.New("the answer has a malformed header")
	}
	if before, _, quotes := strings.Cut(err.Error(), `"`); quotes {
		return errors.New(before + "…")
	}
	return err
}

func tooLarge(resp *http.Response) []byte { return fmt.Appendf(nil, "too large: %d", resp.StatusCode) }

// parseRequest reads the guest's text form. It copies the body, because the
// guest's memory may move when the guest runs again.
func parseRequest(message []byte) (*http.Request, *sentBody, error) {
	r := textproto.NewReader(bufio.NewReader(bytes.NewReader(message)))
	target, err := r.ReadLine()
	if err != nil {
		return nil, nil, err
	}
	header, err := r.ReadMIMEHeader()
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(r.R)
	if err != nil {
		return nil, nil, err
	}
	body := &sentBody{text: text}
	reader, _ := body.open()
	req, err := http.NewRequest(http.MethodPost, target, reader)
	if err != nil {
		return nil, nil, err
	}
	req.Header, req.ContentLength, req.GetBody = http.Header(header), int64(len(text)), body.open
	return req, body, nil
}
