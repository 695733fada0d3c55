package main

import (
	"bytes"
	"encoding/json" // the peer is net/http with encoding/json
	"errors"
	"net/http"
)

// plainSet is a client as one writes it with the standard library: net/http,
// encoding/json, and 7 independent bits in one BITFIELD. Its transport keeps a
// connection for each caller. With the default of two, 64 callers would dial
// for almost every call.
type plainSet struct {
	c          *http.Client
	url, token string
	bits
}

func newPlain(url, token, key string) plainSet {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 2048
	return plainSet{&http.Client{Transport: t}, url, token, independent(key)}
}

func (s plainSet) send(args []string) ([]int64, error) {
	body, err := json.Marshal(append([]string{"BITFIELD", s.key}, args...))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var reply struct {
		Result []int64
		Error  string
	}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return nil, err
	}
	if reply.Error != "" {
		return nil, errors.New(reply.Error)
	}
	return reply.Result, nil
}

func (s plainSet) add(items []string) error {
	_, err := s.send(s.write(items))
	return err
}

func (s plainSet) exists(items []string) ([]bool, error) {
	answers, err := s.send(s.read(items))
	if err != nil {
		return nil, err
	}
	return s.found(items, answers)
}
