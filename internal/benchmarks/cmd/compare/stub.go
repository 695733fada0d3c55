package main

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"
)

// memory answers requests from memory once origin has answered one like them.
type memory struct {
	origin string
	mu     sync.RWMutex
	known  map[string][]byte
}

func (m *memory) serve(c *fasthttp.RequestCtx) {
	var buf [256]byte
	kind := appendKind(buf[:0], c.Path(), c.PostBody())
	m.mu.RLock()
	reply, ok := m.known[string(kind)]
	m.mu.RUnlock()
	if !ok {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(resp)
		c.Request.Header.CopyTo(&req.Header)
		req.SetBody(c.PostBody())
		req.SetRequestURI(m.origin + string(c.Path()))
		if err := fasthttp.Do(req, resp); err != nil {
			c.Error(err.Error(), fasthttp.StatusBadGateway)
			return
		}
		reply = bytes.Clone(resp.Body())
		if resp.StatusCode() != fasthttp.StatusOK {
			c.Error(string(reply), resp.StatusCode())
			return
		}
		m.mu.Lock()
		m.known[string(kind)] = reply
		m.mu.Unlock()
	}
	c.SetContentType("application/json")
	c.SetBody(reply)
}

// appendKind appends the path, the number of strings in the body, and its
// first three strings.
func appendKind(dst, path, body []byte) []byte {
	dst = append(dst, path...)
	dst = strconv.AppendInt(dst, int64(bytes.Count(body, []byte{'"'})), 10)
	quotes := 0
	for i, c := range body {
		if c == '"' {
			quotes++
		}
		if quotes == 6 {
			return append(dst, body[:i]...)
		}
	}
	return append(dst, body...)
}
