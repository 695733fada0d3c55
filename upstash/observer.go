package upstash

import "time"

// Event tells of one attempt. It holds no key, no item and no token.
type Event struct {
	// Command is the command's name; PIPELINE or MULTI-EXEC for several.
	Command string
	// Commands is how many commands the request carries.
	Commands int
	// Attempt counts from 1.
	Attempt int
	// StatusCode is the HTTP status, 0 where no response came.
	StatusCode int
	// Duration is the time from the start of the attempt to the whole response.
	Duration time.Duration
	// BytesOut and BytesIn are the sizes of the two bodies.
	BytesOut, BytesIn int
	// Err is nil, a *Error, or the cause that a *CallError would wrap.
	Err error
}
