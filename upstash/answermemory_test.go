//go:build !race

package upstash

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestReadingTakesAFewTimesTheAnswer: reading an answer takes at most 8 times
// its length in memory, however small its elements are.
func TestReadingTakesAFewTimesTheAnswer(t *testing.T) {
	const length = 1 << 20
	array := func(element string) string {
		return `{"result":[` + strings.Repeat(element+",", length/(len(element)+1)) + element + `]}`
	}
	members := strings.Repeat(`"name":1,`, length/9)
	for name, tt := range map[string]struct {
		body   string
		binary bool
	}{
		"digits":         {array("1"), false},
		"nulls":          {array("null"), false},
		"empty strings":  {array(`""`), false},
		"empty arrays":   {array("[]"), false},
		"objects":        {array(`{"a":1}`), false},
		"members":        {"{" + members + `"result":[1]}`, false},
		"RESP2 integers": {respArray(":1\r\n", length/4), true},
		"RESP2 statuses": {respArray("+\r\n", length/3), true},
		"RESP2 nulls":    {respArray("$-1\r\n", length/5), true},
		"RESP2 arrays":   {respArray("*0\r\n", length/4), true},
		"RESP2 errors":   {respArray("-\r\n", length/3), true},
	} {
		c, _ := newFake(t, always(tt.body))
		cmd := Cmd("EVAL", "return 1", "0")
		if tt.binary {
			cmd = cmd.Binary()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := c.Do(t.Context(), cmd)
		if err != nil {
			t.Fatal(name, err)
		}
		list, err := r.Array()
		runtime.ReadMemStats(&after)
		if err != nil || len(list) == 0 {
			t.Errorf("%s: %d elements, want some: %v", name, len(list), err)
		}
		// The fake transport makes one copy.
		n := after.TotalAlloc - before.TotalAlloc - uint64(len(tt.body))
		if most := 8*uint64(len(tt.body)) + 64<<10; n > most {
			t.Errorf("%s: %d bytes allocated for %d, which are %.1f times as many", name, n, len(tt.body),
				float64(n)/float64(len(tt.body)))
		}
	}
}

// TestAnAnswerToTooMany: a million elements in the answer to a batch take no
// more memory than its commands justify.
func TestAnAnswerToTooMany(t *testing.T) {
	body := "[" + strings.Repeat(`{"result":1},`, 100_000) + `{"result":1}]`
	c, _ := newFake(t, always(body), WithRetry(0))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.Pipeline(t.Context(), Cmd("PING"), Cmd("PING"))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "100001 answers to 2 commands") {
		t.Errorf("got %v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc - uint64(len(body)); n > 64<<10 {
		t.Errorf("%d bytes allocated beside the body, want 64 KiB at most", n)
	}
}

func respArray(element string, n int) string {
	return "*" + strconv.Itoa(n) + "\r\n" + strings.Repeat(element, n)
}
