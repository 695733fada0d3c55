package database

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPanicLosesTheDatabase makes the engine panic with its lock held, both
// directly and in a script that catches errors. Nothing may then wait for the
// lock.
func TestPanicLosesTheDatabase(t *testing.T) {
	echo, had := native["ECHO"]
	native["ECHO"] = func(d *Memory, args []string) Reply {
		if args[1] == "engine" {
			return d.dispatch([]string{"KEYS", "[z-a]"}) // no regular expression
		}
		d.m.Lock()
		panic("torn\r\nin two")
	}
	defer func() {
		native["ECHO"] = echo
		if !had {
			delete(native, "ECHO")
		}
	}()
	for name, cmd := range map[string][]string{
		"alone":         {"ECHO", "x"},
		"in a script":   {"EVAL", "pcall(redis.call, 'ECHO', 'x') return redis.pcall('GET', 'k')", "0"},
		"in the engine": {"ECHO", "engine"},
	} {
		want := Lost("ERR the database is lost: ECHO made the engine panic: torn  in two")
		if name == "in the engine" {
			want = "ERR the database is lost: ECHO made the engine panic: regexp: Compile(`(?s)^\\Q\\E[z-a]\\Q\\E$`): " +
				"error parsing regexp: invalid character class range: `z-a`"
		}
		t.Run(name, func(t *testing.T) {
			db := openTestMemory(t)
			if r := db.Do(cmd); r != want {
				t.Errorf("got %v, want %v", r, want)
			}
			for _, later := range []string{"GET k", "EVAL return(1) 0", "SET k v", "ECHO x"} {
				if r := db.Do(strings.Fields(later)); r != want {
					t.Errorf("%s: got %v, want %v", later, r, want)
				}
			}
			if err := db.Broken(); err != want {
				t.Errorf("Broken() = %v, want %v", err, want)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTimeIsThePresent asks for the time after a pause of the machine in the midst
// of a tick: the next one is then far away.
func TestTimeIsThePresent(t *testing.T) {
	db := openTestMemory(t)
	db.setClock(time.Now().Add(-time.Minute))
	db.nextTick = time.Now().Add(time.Minute)
	before := time.Now().Truncate(time.Millisecond)
	parts, _ := db.Do([]string{"TIME"}).(Array)
	if len(parts) != 2 {
		t.Fatalf("TIME: %v, want two numbers", parts)
	}
	seconds, _ := parseInt(string(parts[0].(Bulk)))
	micros, _ := parseInt(string(parts[1].(Bulk)))
	if now := time.UnixMicro(seconds*1e6 + micros); now.Before(before) || now.After(time.Now()) {
		t.Errorf("TIME is %v, and was asked for after %v", now, before)
	}
}

// TestTableIsWhole sends the commands of the table that are miniredis's to it.
func TestTableIsWhole(t *testing.T) {
	db := openTestMemory(t)
	for name, c := range inMemory {
		if native[name] != nil {
			continue
		}
		db.Do([]string{"FLUSHALL"}) // what others left must not matter: they come in any order
		args := []string{name}
		for !c.fits(len(args)) {
			args = append(args, "1")
		}
		if f, _ := db.dispatch(args).(Failure); strings.HasPrefix(string(f), "ERR unknown command") {
			t.Errorf("%s: %s", name, f)
		}
	}
}

// TestGrowsIsRedis compares the commands that a full database refuses with those
// to which Redis has given the flag denyoom.
func TestGrowsIsRedis(t *testing.T) {
	p := newPair(t)
	rows, _ := p.red.Do([]string{"COMMAND"}).(Array)
	if len(rows) == 0 {
		t.Fatal("no commands")
	}
	for _, el := range rows {
		row := el.(Array)
		name := strings.ToUpper(string(row[0].(Bulk)))
		if _, has := inMemory[name]; !has {
			continue
		}
		denied := slices.Contains(row[2].(Array), Reply(Status("denyoom")))
		if Grows([]string{strings.ToLower(name)}) != denied {
			t.Errorf("Grows of %s is %v, and Redis has %v", name, !denied, denied)
		}
	}
}

// TestScriptsWhenFull runs scripts in both databases while they are full.
func TestScriptsWhenFull(t *testing.T) {
	p := newPair(t)
	p.same(t, "SET", "k", "v")
	if r := p.red.Do([]string{"CONFIG", "SET", "maxmemory", "1"}); r != Status("OK") {
		t.Fatal(r)
	}
	if err := p.mem.SetFull(true); err != nil {
		t.Fatal(err)
	}
	const set = "return redis.call('SET',KEYS[1],'w')"
	for _, text := range []string{
		set,
		"return redis.call('GET',KEYS[1])",
		"redis.call('GET',KEYS[1]) " + set,
		"redis.call('EXPIRE',KEYS[1],900) " + set,
		"redis.call('DEL',KEYS[1]) " + set,
		"redis.call('DEL','none') " + set,
		"return redis.pcall('BITFIELD',KEYS[1],'GET','u8','0')",
		"return redis.pcall('BITFIELD_RO',KEYS[1],'GET','u8','0')",
		"local r=redis.pcall('SET',KEYS[1],'x') redis.call('DEL',KEYS[1]) redis.call('SET',KEYS[1],r.err)",
		"#!lua\nreturn redis.call('GET',KEYS[1])",
		"#!lua flags=no-writes\nreturn redis.call('GET',KEYS[1])",
		"#!lua flags=no-writes\n" + set,
		"#!lua flags=allow-oom\n" + set,
		"#!lua flags=allow-stale\n" + set,
		"#!lua flags=no-writes,allow-oom\nreturn redis.call('GET',KEYS[1])",
		"#!lua flags=allow-key-locking\nreturn redis.call('GET',KEYS[1])",
		"#!lua flags=allow-key-locking\nreturn redis.pcall('SET',KEYS[1],'w').err", // the sums differ
		"#!lua flags=allow-oom,allow-key-locking\n" + set,
	} {
		for _, command := range []string{"EVAL", "EVAL_RO"} {
			p.same(t, command, text, "1", "k")
			p.same(t, "GET", "k")
		}
		p.same(t, "EVALSHA", scriptSum(text), "1", "k")
	}
}
