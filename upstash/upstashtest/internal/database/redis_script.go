package database

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// infoCalls is the command that returns how often each command ran so far.
var infoCalls = []string{"INFO", "commandstats"}

// callsIn adds up the reply to infoCalls, of lines such as
// "cmdstat_get:calls=21,usec=175,...".
func callsIn(t Table, r Reply) (sum Calls) {
	text, _ := r.(Bulk)
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		calls, _, _ := strings.Cut(rest, ",")
		name, _, _ = strings.Cut(name, "|")
		if n, err := strconv.ParseInt(calls, 10, 64); err == nil {
			sum.add(t, name, n)
		}
	}
	return sum
}

// translated is a command as it is sent to Redis.
type translated struct {
	cmd    []string
	script bool              // it runs a script
	finish func(Reply) Reply // turns Redis' reply into that of the service
}

// translate turns a command of the service into one of Redis 7.0. A script
// loses the service's own flag. To clients it keeps the sum of the text they
// sent.
func (r *Redis) translate(args []string) translated {
	t := translated{cmd: args, finish: func(reply Reply) Reply { return reply }}
	name := strings.ToUpper(args[0])
	byText, byName := runsScript(name)
	t.script = RunsScript(args)
	switch {
	case name == "SCAN":
		cmd, types := withoutType(args)
		t.cmd = cmd
		t.finish = func(reply Reply) Reply {
			if types {
				return addTypes(reply, r.Do)
			}
			return reply
		}
	case name == "COPY":
		t.finish = func(reply Reply) Reply {
			if reply == errSameObject {
				return int64(0) // as the service answers
			}
			return reply
		}
	case byText:
		t.cmd = with(args, 1, r.rename(args[1]))
	case byName:
		t.cmd = with(args, 1, r.sum(args[1]))
	case name != "SCRIPT" || len(args) < 3:
	case strings.EqualFold(args[1], "LOAD"):
		t.cmd = with(args, 2, r.rename(args[2]))
		t.finish = func(reply Reply) Reply {
			if _, ok := reply.(Bulk); ok {
				return Bulk(scriptSum(args[2]))
			}
			return reply
		}
	case strings.EqualFold(args[1], "EXISTS"):
		for i := 2; i < len(args); i++ {
			t.cmd = with(t.cmd, i, r.sum(args[i]))
		}
	}
	return t
}

// with returns args with another word at i. It does not change args.
func with(args []string, i int, word string) []string {
	if args[i] == word {
		return args
	}
	out := append([]string(nil), args...)
	out[i] = word
	return out
}

// rename returns the script for Redis, and keeps Redis' sum of it if that
// differs.
func (r *Redis) rename(text string) string {
	body := withoutKeyLocking(text)
	if body != text {
		r.renamed[scriptSum(text)] = scriptSum(body)
	}
	return body
}

// sum returns Redis' sum of a script.
func (r *Redis) sum(sent string) string {
	if sum, ok := r.renamed[strings.ToLower(sent)]; ok {
		return sum
	}
	return sent
}

// killLimit is longer than the five seconds for which Redis, by default, lets
// no client kill a script.
const killLimit = 10 * time.Second

// killScript ends a script that ran out of time: it could keep Redis busy for
// ever. Redis does not end a script after its first write.
func (r *Redis) killScript(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.asOperator(killLimit, "SCRIPT", "KILL")
	}
}
