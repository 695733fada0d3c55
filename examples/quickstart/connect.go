package main

import (
	"context"
	"os"
	"sync/atomic"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// connect returns a client of the environment's database, or of a server in
// this process. where describes the database for the report.
func connect(opts ...upstash.Option) (client *upstash.Client, where string, closeAll func(), err error) {
	if os.Getenv("UPSTASH_REDIS_REST_URL") != "" || os.Getenv("KV_REST_API_URL") != "" {
		client, err = upstash.FromEnv(opts...)
		if err != nil {
			return nil, "", nil, err
		}
		where = "the one your environment names, under a key that is deleted at the end"
		return client, where, func() { _ = client.Close() }, nil
	}
	server, err := upstashtest.Start()
	if err != nil {
		return nil, "", nil, err
	}
	client, err = upstash.New(server.URL, server.Token, opts...)
	if err != nil {
		server.Close()
		return nil, "", nil, err
	}
	closeAll = func() {
		_ = client.Close()
		server.Close()
	}
	return client, "a server inside this process, over HTTP (set UPSTASH_REDIS_REST_URL and\n" +
		"                 UPSTASH_REDIS_REST_TOKEN to use your own database)", closeAll, nil
}

// usage counts the traffic. Every attempt is one request.
type usage struct{ requests, commands, bytesOut, bytesIn atomic.Uint64 }

func (u *usage) observe(_ context.Context, e upstash.Event) {
	u.requests.Add(1)
	u.commands.Add(uint64(e.Ran + e.MayHaveRun))
	u.bytesOut.Add(uint64(e.BytesOut))
	u.bytesIn.Add(uint64(e.BytesIn))
}
