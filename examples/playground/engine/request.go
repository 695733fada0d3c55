package engine

import (
	"context"
	"errors"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// requests shows the body of a Filter's request. Nothing is sent: the client's
// transport keeps the body and fails.
type requests struct {
	kept   keeper
	filter *bloom.Filter
}

func newRequests(cfg bloom.Config) (*requests, error) {
	r := &requests{}
	client, err := upstash.New("https://example.com", "token", upstash.WithTransport(&r.kept),
		upstash.WithRetry(0))
	if err != nil {
		return nil, err
	}
	r.filter, err = bloom.New(client, "filter", cfg)
	return r, err
}

var errKept = errors.New("the page sends nothing")

type keeper struct{ body string }

func (k *keeper) RoundTrip(_ context.Context, req *upstash.Request, _ *upstash.Response) error {
	k.body = string(req.Body)
	return upstash.NotSent(errKept)
}

// after returns the body of the request of a call, which failed with err.
func (r *requests) after(_ any, err error) string {
	body := r.kept.body
	r.kept.body = ""
	if !errors.Is(err, errKept) {
		return ""
	}
	const most = 600
	if len(body) > most { // it holds only numbers, no items
		body = body[:most] + " …"
	}
	return body
}

func (r *requests) add(item string) string {
	return r.after(r.filter.Add(context.Background(), item))
}

func (r *requests) addAll(items []string) string {
	return r.after(r.filter.AddAll(context.Background(), items))
}

func (r *requests) exists(item string) string {
	return r.after(r.filter.Exists(context.Background(), item))
}
