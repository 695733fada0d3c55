package systemtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// losing carries requests to the database, and then cancels the call's context
// instead of returning an answer. The cause is the error of another call.
type losing struct {
	next   upstash.Transport
	cancel context.CancelCauseFunc // if nil, nothing is lost
	cause  error
}

func (l *losing) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	err := l.next.RoundTrip(ctx, req, resp)
	if l.cancel == nil {
		return err
	}
	l.cancel(l.cause)
	return context.Cause(ctx)
}

// A loseFunc makes a call whose answer is lost. The call must return an error
// that wraps the other call's, and claims no item.
type loseFunc func(name string, call func(ctx context.Context) error)

// eachLost calls test with a client and a loseFunc, once for each error of
// another call. The database is empty each time.
func eachLost(t *testing.T, test func(c *upstash.Client, other error, lose loseFunc)) {
	server := upstashtest.NewServer(t)
	transport := httptransport.New(nil)
	defer transport.Close()
	for _, other := range []error{
		bloom.ErrNotFound, bloom.ErrUncertain, bloom.ErrNoTTL, bloom.ErrNotFilter, bloom.ErrRecreated,
		&bloom.MismatchError{}, &upstash.Error{StatusCode: 400, Message: "NOPERM no"},
		&upstash.Error{StatusCode: 400, Message: "WRONGTYPE no"},
		&bloom.BatchError{Items: make([]bloom.ItemState, 3), Err: upstash.ErrClosed},
		&bloom.BatchError{Items: []bloom.ItemState{bloom.ItemDone}, Err: bloom.ErrNoTTL},
		upstash.ErrClosed, fmt.Errorf("app: %w", bloom.ErrNotFound),
	} {
		server.FlushAll()
		l := &losing{next: transport, cause: other}
		test(server.Client(upstash.WithTransport(l)), other, func(name string, call func(context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			l.cancel = cancel
			err := call(ctx)
			l.cancel = nil
			if err == nil || bloom.InFilter(err) || !errors.Is(err, other) {
				t.Errorf("%s, %v: got %v, InFilter %v", name, other, err, bloom.InFilter(err))
			}
		})
	}
}

// TestAnotherCallsErrorDecidesNoItem: such an error must not make items in the
// database look missing, nor unknown ones look added.
func TestAnotherCallsErrorDecidesNoItem(t *testing.T) {
	eachLost(t, func(c *upstash.Client, other error, lose loseFunc) {
		f := bloomtest.Handle(t, c, bloom.Config{Capacity: 100, FPRate: 0.01, MissingIsEmpty: true})
		lose("Add", func(ctx context.Context) error {
			_, err := f.Add(ctx, "a")
			if upstash.SafeToRetry(err) {
				t.Errorf("Add, %v: %v is safe to retry", other, err)
			}
			return err
		})
		lose("AddAll", func(ctx context.Context) error {
			_, err := f.AddAll(ctx, []string{"x", "y", "z"})
			var batch *bloom.BatchError
			if !errors.As(err, &batch) || batch.Count(bloom.ItemUnknown) != 3 || upstash.SafeToRetry(err) {
				t.Errorf("AddAll, %v: got %v, want three items of unknown state", other, err)
			}
			return err
		})
		lose("Exists", func(ctx context.Context) error {
			_, err := f.Exists(ctx, "a")
			return err
		})
		if found, err := f.Exists(t.Context(), "x"); !found || err != nil {
			t.Errorf("%v: afterwards Exists = %v, %v, want true", other, found, err)
		}
	})
}

// It is not known whether a write to a Cuckoo ran, so it is not repeated.
func TestAnotherCallsErrorDecidesNoCopy(t *testing.T) {
	eachLost(t, func(c *upstash.Client, other error, lose loseFunc) {
		f, err := bloom.NewCuckoo(c, bloomtest.Key, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		uncertain := func(write func(context.Context, string) (bool, error)) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := write(ctx, "a")
				if !errors.Is(err, bloom.ErrUncertain) || upstash.SafeToRetry(err) {
					t.Errorf("a Cuckoo, %v: got %v, want ErrUncertain", other, err)
				}
				return err
			}
		}
		lose("Cuckoo.Add", uncertain(f.Add))
		lose("Cuckoo.Remove", uncertain(f.Remove))
	})
}

func TestAnotherCallsErrorDecidesNoLayer(t *testing.T) {
	eachLost(t, func(c *upstash.Client, _ error, lose loseFunc) {
		f, err := bloom.NewScalable(c, bloomtest.Key, bloom.ScalableConfig{Capacity: 100, FPRate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		lose("Scalable.Add", func(ctx context.Context) error {
			_, err := f.Add(ctx, "a")
			return err
		})
	})
}
