package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// answered is an HTTP answer with its headers and its encoding, which the
// client of package upstash does not show.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// post sends a command once, with the names and values of headers. It is in no
// recording.
func (p *patient) post(ctx context.Context, command []string, header ...string) (answered, error) {
	return p.postTo(ctx, "", command, header...)
}

// postTo sends a value as JSON to a path below the URL.
func (p *patient) postTo(ctx context.Context, path string, v any, header ...string) (answered, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return answered{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	url := strings.TrimRight(p.url, "/") + path
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answered{}, errors.New("the URL cannot be asked") // its text may hold a secret
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for this host alone
	}}
	resp, err := client.Do(r)
	if err != nil {
		return answered{}, fmt.Errorf("%w: %w", errLost, errors.Unwrap(err)) // without the URL
	}
	defer resp.Body.Close()
	a := answered{status: resp.StatusCode, header: resp.Header}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return a, err
}

// askRegion asks in several ways where the database is, because no way is
// documented.
func askRegion(ctx context.Context, p *patient) (string, error) {
	got, err := p.post(ctx, []string{"GET", p.key("text")})
	if err != nil {
		return "", err
	}
	var found []string
	for name, values := range got.header {
		if strings.Contains(strings.ToLower(name), "region") {
			found = append(found, name+": "+strings.Join(values, ", "))
		}
	}
	for line := range strings.Lines(p.info(ctx)) {
		if strings.Contains(strings.ToLower(line), "region") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	if len(found) > 0 {
		slices.Sort(found)
		return strings.Join(found, "; "), nil
	}
	if p.write > 2*p.read+10*time.Millisecond {
		return fmt.Sprintf("it is not named, but a write takes %v more than a read: a region near here"+
			" answers reads, and the primary is elsewhere", p.write-p.read), nil
	}
	return "", skipped{errors.New("the database does not name it; reads and writes are about as fast")}
}

// info returns the reply to INFO, or "" if the database does not know it.
func (p *patient) info(ctx context.Context) string {
	reply, err := p.client.Do(ctx, upstash.Cmd("INFO"))
	if err != nil {
		return ""
	}
	text, _ := reply.Text()
	return text
}

// askWrongToken asks both paths, because some servers guard only the first.
func askWrongToken(ctx context.Context, p *patient) (string, error) {
	command := []string{"GET", p.key("text")}
	status := 0
	for _, q := range []struct {
		what, path string
		body       any
	}{{"a command", "", command}, {"a pipeline", "/pipeline", [][]string{command}}} {
		got, err := p.postTo(ctx, q.path, q.body, "Authorization", "Bearer upbloom-doctor")
		if err != nil {
			return "", err
		}
		if status = got.status; status != http.StatusUnauthorized && status != http.StatusForbidden {
			return "", wrongf("status %d to %s: whoever knows the URL may use the database", status, q.what)
		}
	}
	return "status " + strconv.Itoa(status), nil
}

func askSyncToken(ctx context.Context, p *patient) (string, error) {
	const name = "Upstash-Sync-Token"
	set := []string{"SET", p.key("text"), "a", "EX", seconds(scratchTTL)}
	got, err := p.post(ctx, set)
	if err != nil {
		return "", err
	}
	token := got.header.Get(name)
	if token == "" {
		return "", errors.New("none: if the database has read regions, one of them may miss this process's" +
			" last write")
	}
	if got, err = p.post(ctx, []string{"GET", p.key("text")}, name, token); err != nil {
		return "", err
	}
	if got.status != http.StatusOK {
		return "", wrongf("status %d to a read that sends it back", got.status)
	}
	return "sent with a write, taken with a read", nil
}

// askEviction asks for the policy by CONFIG or by INFO.
func askEviction(ctx context.Context, p *patient) (string, error) {
	policy := ""
	if reply, err := p.client.Do(ctx, upstash.Cmd("CONFIG", "GET", "maxmemory-policy")); err == nil {
		if parts, err := reply.Array(); err == nil && len(parts) == 2 {
			policy, _ = parts[1].Text()
		}
	}
	for line := range strings.Lines(p.info(ctx)) {
		if value, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok && policy == "" {
			policy = strings.TrimSpace(value)
		}
	}
	switch policy {
	case "noeviction":
		return "off", nil
	case "":
		return "", skipped{errors.New("the database does not say: make sure in its settings that eviction" +
			" is off")}
	}
	return "", fmt.Errorf("%q: after an eviction the next Add makes an empty filter, which answers no to what"+
		" was added: turn eviction off, or set MustExist", policy)
}

// mostAway is how far a clock may be off. A Window asks the server for its time
// and allows for 2 s.
const mostAway = 2 * time.Second

func askClock(ctx context.Context, p *patient) (string, error) {
	start := time.Now()
	reply, err := p.client.Do(ctx, upstash.Cmd("TIME"))
	if err != nil {
		return "", fmt.Errorf("not told, and a Window cannot be written without it: %w", err)
	}
	trip := time.Since(start)
	parts, err := reply.Array()
	if err != nil || len(parts) != 2 {
		return "", wrongf("%d parts, %v", len(parts), err)
	}
	var n [2]int64
	for i, part := range parts {
		text, err := part.Text()
		if err == nil {
			n[i], err = strconv.ParseInt(text, 10, 64)
		}
		if err != nil {
			return "", wrongf("%v", err)
		}
	}
	away := start.Add(trip / 2).Sub(time.UnixMicro(n[0]*1e6 + n[1])).Round(time.Millisecond)
	how := "ahead of"
	if away < 0 {
		away, how = -away, "behind"
	}
	// The difference is rounded, and TIME may come in whole milliseconds.
	most := (trip / 2).Truncate(time.Millisecond) + 2*time.Millisecond
	says := fmt.Sprintf("this machine's is %v %s the database's, give or take %v", away, how, most)
	if away > mostAway {
		return "", errors.New(says)
	}
	return says, nil
}

func askReadOnly(ctx context.Context, p *patient) (string, error) {
	url, token := os.Getenv("UPSTASH_REDIS_REST_URL"), os.Getenv("UPSTASH_REDIS_REST_READONLY_TOKEN")
	if url == "" {
		url, token = os.Getenv("KV_REST_API_URL"), os.Getenv("KV_REST_API_READ_ONLY_TOKEN")
	}
	if token == "" {
		return "", skipped{errors.New("set UPSTASH_REDIS_REST_READONLY_TOKEN or KV_REST_API_READ_ONLY_TOKEN")}
	}
	client, err := upstash.New(url, token)
	if err != nil {
		return "", err
	}
	defer client.Close()
	read := upstash.NewBitField(p.key("fields")).Get("u53", 0).ReadOnly()
	if n, err := client.BitField(ctx, read); err != nil || len(n) != 1 {
		return "", fmt.Errorf("it cannot look up: %w", err)
	}
	_, err = client.Do(ctx, upstash.Cmd("SET", p.key("text"), "a", "EX", seconds(scratchTTL)))
	if !errors.Is(err, upstash.ErrNoPermission) {
		return "", wrongf("a write with it: %v", err)
	}
	return "looks up, and cannot write", nil
}
