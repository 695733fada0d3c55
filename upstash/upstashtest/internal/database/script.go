package database

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// flagAllowOOM is the flag of a script that runs in a full database too.
const flagAllowOOM = "allow-oom"

const (
	errNoScript     = Failure("NOSCRIPT No matching script. Please use EVAL.")
	errShebang      = Failure("ERR Invalid script shebang")
	errTooManyKeys  = Failure("ERR Number of keys can't be greater than number of args")
	errNegativeKeys = Failure("ERR Number of keys can't be negative")
	errNotReadOnly  = Failure("ERR Can not execute a script with write flag using *_ro command.")
	errScriptFlush  = Failure("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	flagKeyLocking  = "allow-key-locking"
	flagNoWrites    = "no-writes"
	shebangEngine   = "#!lua"
	shebangFlags    = "flags="
)

// knownFlags are the flags of Redis 7.0 and one of the service. With the latter
// a script locks only the keys it names, and not the whole database. Here it
// makes no difference, because commands run one at a time.
var knownFlags = []string{
	flagNoWrites, flagAllowOOM, "allow-stale", "no-cluster", "allow-cross-slot-keys", flagKeyLocking,
}

// shebang is a script's first line, if it begins with "#!".
type shebang struct {
	declared bool
	flags    []string
	// body is the script without the line. Its line break stays: errors name
	// the same lines.
	body string
}

func (s shebang) has(flag string) bool { return slices.Contains(s.flags, flag) }

// mayWrite reports whether the line declares a script that writes. The service's
// own flag alone declares nothing, because the server takes it from what it
// sends to a Redis.
func (s shebang) mayWrite() bool {
	ownOnly := len(s.flags) == 1 && s.flags[0] == flagKeyLocking
	return s.declared && !ownOnly && !s.has(flagNoWrites)
}

// refusedWhenFull reports whether a full database refuses a script. Redis 7.0
// runs one without a first line. It refuses commands of it, until one has
// written.
func (s shebang) refusedWhenFull() bool { return s.mayWrite() && !s.has(flagAllowOOM) }

// parseShebang reads the first line of a script as Redis does.
func parseShebang(text string) (s shebang, f Failure) {
	if !strings.HasPrefix(text, "#!") {
		return shebang{body: text}, ""
	}
	end := strings.IndexByte(text, '\n')
	if end < 0 {
		return s, errShebang
	}
	s.declared, s.body = true, text[end:]
	words := strings.Fields(text[:end])
	if words[0] != shebangEngine {
		return s, Failure("ERR Unexpected engine in script shebang: " + words[0])
	}
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, shebangFlags)
		if !ok {
			return s, Failure("ERR Unknown lua shebang option: " + word)
		}
		for flag := range strings.SplitSeq(list, ",") {
			if !slices.Contains(knownFlags, flag) {
				return s, Failure("ERR Unexpected flag in script shebang: " + flag)
			}
			s.flags = append(s.flags, flag)
		}
	}
	return s, ""
}

// withoutKeyLocking returns the script for Redis 7.0: without the service's own
// flag, and without the line if it has no other flag. A line with a mistake
// stays, for Redis to report.
func withoutKeyLocking(text string) string {
	s, f := parseShebang(text)
	if f != "" || !s.has(flagKeyLocking) {
		return text
	}
	rest := slices.DeleteFunc(s.flags, func(flag string) bool { return flag == flagKeyLocking })
	if len(rest) == 0 {
		return s.body
	}
	return shebangEngine + " " + shebangFlags + strings.Join(rest, ",") + s.body
}

// scriptSum returns the sum by which EVALSHA names a script.
func scriptSum(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// runsScript reports whether a command has a script as text, or names it by its
// sum.
func runsScript(name string) (byText, byName bool) {
	switch name {
	case "EVAL", "EVAL_RO":
		return true, false
	case "EVALSHA", "EVALSHA_RO":
		return false, true
	}
	return false, false
}

// RunsScript reports whether a command runs a script or a function.
func RunsScript(args []string) bool {
	name := strings.ToUpper(args[0])
	byText, byName := runsScript(name)
	return byText || byName || name == "FCALL" || name == "FCALL_RO"
}

// script is a compiled script.
type script struct {
	sum  string
	head shebang
	code *lua.FunctionProto
}

// scripts holds the scripts of EVAL and SCRIPT LOAD by their sums.
type scripts map[string]*script

// load returns a script by its text, and compiles it if it is new.
func (all scripts) load(text string) (*script, Failure) {
	sum := scriptSum(text)
	if s := all[sum]; s != nil {
		return s, ""
	}
	head, f := parseShebang(text)
	if f != "" {
		return nil, f
	}
	chunk, err := parse.Parse(strings.NewReader(head.body), scriptName)
	var code *lua.FunctionProto
	if err == nil {
		code, err = lua.Compile(chunk, scriptName)
	}
	if err != nil {
		return nil, Failure("ERR Error compiling script (new function): " + oneLine(err.Error()))
	}
	all[sum] = &script{sum: sum, head: head, code: code}
	return all[sum], ""
}

// oneLine returns s without line breaks, which an error reply cannot have.
func oneLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(strings.TrimSpace(s))
}

// scriptName is what errors call a script, as in Redis.
const scriptName = "user_script"
