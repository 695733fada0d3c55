package bloom

import "github.com/upbloom/upbloom/upstash"

// is is errors.Is, except that it does not look at what a *upstash.CallError
// wraps. That may be the error of another call, as the cause of a context is:
// what this package concludes from an error must be of the call at hand.
func is(err, target error) bool {
	_, ok := search(err, func(e error) (struct{}, bool) {
		if e == target {
			return struct{}{}, true
		}
		x, ok := e.(interface{ Is(error) bool })
		return struct{}{}, ok && x.Is(target)
	})
	return ok
}

// as is errors.As with the limit of is. It returns the error that it finds.
func as[T error](err error) (T, bool) {
	return search(err, func(e error) (T, bool) {
		found, ok := e.(T)
		return found, ok
	})
}

// search returns the first thing that look finds in err and what it wraps.
func search[T any](err error, look func(error) (T, bool)) (found T, ok bool) {
	if err == nil {
		return found, false
	}
	if found, ok = look(err); ok {
		return found, true
	}
	switch e := err.(type) {
	case *upstash.CallError:
	case interface{ Unwrap() error }:
		return search(e.Unwrap(), look)
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			if found, ok = search(each, look); ok {
				return found, true
			}
		}
	}
	return found, false
}
