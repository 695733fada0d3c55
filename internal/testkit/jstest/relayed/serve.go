package relayed

import (
	"bufio"
	"context"
	"errors"
	"io"
	"reflect"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/upstash"
)

// Serve is the program's end of the relay, without threads: it sends the next
// call in r over tr. The error is io.EOF if there is none.
func Serve(r *bufio.Reader, w io.Writer, tr upstash.Transport) error {
	for {
		call, err := relay.ReadCall(r)
		if err != nil {
			return err
		}
		if !call.Cancel { // of a call that has ended
			return relay.WriteResult(w, roundTrip(tr, call))
		}
	}
}

func roundTrip(tr upstash.Transport, call relay.Call) relay.Result {
	ctx := context.Background()
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
	result := relay.Result{
		ID: call.ID, StatusCode: resp.StatusCode, Body: resp.Body,
		Header: [][2]string{
			{"upstash-sync-token", field("syncToken").String()},
			{"retry-after", field("retryAfter").String()},
		},
	}
	if err != nil {
		result.Failed, result.Error, result.NotSent = true, err.Error(), upstash.SafeToRetry(err)
		result.Cause = causeOf(err)
	}
	return result
}

// causes are the errors known to both ends.
var causes = map[relay.Cause]error{
	relay.TooLarge:         upstash.ErrResponseTooLarge,
	relay.NoTransport:      upstash.ErrNoTransport,
	relay.Canceled:         context.Canceled,
	relay.DeadlineExceeded: context.DeadlineExceeded,
}

func causeOf(err error) relay.Cause {
	for cause, known := range causes {
		if errors.Is(err, known) {
			return cause
		}
	}
	return relay.NoCause
}
