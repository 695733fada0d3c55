package upstash

import "context"

// noTransport serves platforms without sockets. Go's net package on
// wasip1 is a fake inside the process whose dial errors look like passing
// faults, so it is not even tried.
type noTransport struct{}

func newDefaultTransport(endpoint, int) Transport { return noTransport{} }

func (noTransport) RoundTrip(context.Context, *Request, *Response) error {
	return NotSent(ErrNoTransport)
}
