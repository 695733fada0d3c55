package upstash

import "context"

// noTransport is for platforms without sockets. Go's net package on wasip1 is a
// fake inside the process. Its dial errors look like passing faults, so the
// client does not try it.
type noTransport struct{}

func newDefaultTransport(endpoint, int) Transport { return noTransport{} }

func (noTransport) RoundTrip(context.Context, *Request, *Response) error {
	return NotSent(ErrNoTransport)
}
