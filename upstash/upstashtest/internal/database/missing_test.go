package database

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// missingBegins is the line of doc.go above the list of missing commands.
const missingBegins = "// These commands of Redis 7.0 are missing there:\n//\n"

// TestMissingCommandsAreListed compares the list in doc.go of upstashtest with
// the commands of Redis 7.0 that the database in memory lacks.
func TestMissingCommandsAreListed(t *testing.T) {
	p := newPair(t)
	info, _ := p.red.Do([]string{"INFO", "server"}).(Bulk)
	if !strings.Contains(string(info), "redis_version:7.0.") {
		t.Skip("the list is about Redis 7.0")
	}
	var missing []string
	rows, _ := p.red.Do([]string{"COMMAND"}).(Array)
	for _, el := range rows {
		row := el.(Array)
		name := strings.ToUpper(string(row[0].(Bulk)))
		if _, fit := p.red.table[name]; !fit || refused[name] {
			continue
		}
		if _, has := inMemory[name]; !has {
			missing = append(missing, name)
			continue
		}
		for _, sub := range row[9].(Array) {
			words := strings.Split(strings.ToUpper(string(sub.(Array)[0].(Bulk))), "|")
			if words[1] != "HELP" && unknownSubcommand(p.mem, words, sub.(Array)[1].(int64)) {
				missing = append(missing, strings.Join(words, " "))
			}
		}
	}
	slices.Sort(missing)
	doc, err := os.ReadFile("../../doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), missingBegins)
	list, _, _ := strings.Cut(rest, "//\n")
	want := wrapped(missing)
	if !found || list != want {
		t.Errorf("doc.go has the list\n%s\nwant\n%s", list, want)
	}
}

// unknownSubcommand runs a subcommand with as many words as it needs.
func unknownSubcommand(db *Memory, words []string, arity int64) bool {
	for n := max(arity, -arity); int64(len(words)) < n; {
		words = append(words, "x")
	}
	f, _ := db.Do(words).(Failure)
	text := strings.ToLower(string(f))
	return strings.Contains(text, "unknown subcommand") || strings.Contains(text, "not supported")
}

// wrapped returns the list as the lines of an indented block.
func wrapped(names []string) string {
	var b strings.Builder
	line := "//\t"
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		if len(line)+len(name) > 76 {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = "//\t"
		}
		line += name + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}
