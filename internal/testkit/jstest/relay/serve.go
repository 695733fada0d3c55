package relay

import (
	"bufio"
	"context"
	"errors"
	"io"
	"reflect"
	"slices"

	"github.com/upbloom/upbloom/upstash"
)

// Serve is the program's end of the relay, without threads: it sends the next
// call in r over tr. The error is io.EOF if there is none.
func Serve(r *bufio.Reader, w io.Writer, tr upstash.Transport) error {
	for {
		call, err := ReadCall(r)
		if err != nil {
			return err
		}
		if !call.Cancel { // of a call that has ended
			return WriteResult(w, RoundTrip(context.Background(), tr, call))
		}
	}
}

// RoundTrip sends a call over tr, until ctx ends or the call's time is over.
func RoundTrip(ctx context.Context, tr upstash.Transport, call Call) Result {
	if call.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, call.Timeout)
		defer cancel()
	}
	req := upstash.Request{URL: call.URL, Body: call.Body, MaxResponse: call.MaxResponse}
	for _, h := range call.Header {
		req.Header = append(req.Header, upstash.Header{Name: h[0], Value: h[1]})
	}
	var resp upstash.Response
	err := tr.RoundTrip(ctx, &req, &resp)
	// The fields of a Response are unexported.
	field := reflect.ValueOf(resp).FieldByName
	result := Result{
		ID: call.ID, StatusCode: resp.StatusCode, Body: resp.Body,
		Header: [][2]string{
			{"upstash-sync-token", field("syncToken").String()},
			{"retry-after", field("retryAfter").String()},
		},
	}
	if err == nil {
		return result
	}
	result.Error, result.NotSent = err.Error(), upstash.SafeToRetry(err)
	if i := slices.IndexFunc(causes, func(known error) bool { return errors.Is(err, known) }); i >= 0 {
		result.Cause = causes[i].Error()
	}
	return result
}
