package bloom

import "errors"

// InFilter reports whether all items of an Add or AddAll that returned err are
// in the filter: true for nil, and for an error that only says that new or
// seen is not known, or that the TTL is not set. It is for callers who record
// what they did and don't ask whether it was new.
func InFilter(err error) bool {
	var batch *BatchError
	if errors.As(err, &batch) {
		return batch.Count(ItemDone)+batch.Count(ItemUncertain) == len(batch.Items)
	}
	return err == nil || errors.Is(err, ErrUncertain) || errors.Is(err, ErrNoTTL)
}
