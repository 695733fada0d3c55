package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A scene is what the database and the folder are like in a section of the
// runbook. KEY is a filter for 1,000 items, which holds those of FILE, and BACKUP
// has it. The scene comes after that, and step before each command.
type scene struct {
	set  func(sh *shell)
	step func(sh *shell, command string)
}

// write makes a file in the working folder.
func (sh *shell) write(name, text string) {
	sh.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		sh.t.Fatal(err)
	}
}

// lost makes a new filter in place of the one that was evicted.
func lost(sh *shell) {
	sh.exec("DEL", "KEY")
	sh.want(0, "", "", "add", "-n", "1k", "KEY", "new")
}

var scenes = map[string]scene{
	"Everything is yes": {set: func(sh *shell) {
		sh.exec("DEL", "KEY")
		sh.write("FILE", numbered("a", 120_000))
		sh.want(0, "", "", "load", "--force", "-n", "10k", "KEY", "FILE")
	}},
	"Yes too often": {set: func(sh *shell) {
		sh.want(0, "", numbered("b", 490), "load", "KEY")
	}},
	"Somebody else wrote into the key": {set: func(sh *shell) {
		sh.exec("EVAL", "for i = 192, 5192 do redis.call('SETBIT', KEYS[1], i, 1) end", "1", "KEY")
	}},
	"Many filters": {set: func(sh *shell) {
		for _, key := range []string{"tenant:1", "tenant:2", "tenant:3"} {
			sh.create(key)
		}
	}},
	"A member is no": {set: lost},
	"The filter is missing": {
		set: func(sh *shell) { sh.exec("DEL", "KEY") },
		step: func(sh *shell, command string) { // one way instead of the other
			if strings.Contains(command, "-n 1M") {
				sh.exec("DEL", "KEY")
			}
		},
	},
	"Another size": {set: func(sh *shell) { sh.want(0, "", "a\n", "replace", "--yes", "--min-items", "1", "-n", "10k", "KEY") }},
	"Other data": {set: func(sh *shell) {
		sh.exec("DEL", "KEY")
		sh.exec("RPUSH", "KEY", "a")
	}},
	"Uncertain": {set: func(sh *shell) { sh.want(0, "", "", "add", "KEY", "ITEM") }},
	"The quota": {set: func(sh *shell) {
		sh.s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
			return upstashtest.CommandError("ERR max requests limit exceeded. Limit: 500000, Usage: 500000")
		})
	}},
	"The database is full": {
		set: func(sh *shell) {
			sh.exec("DEL", "KEY")
			sh.create("KEY")
			sh.create("OLD")
		},
		step: func(sh *shell, _ string) {
			sh.s.SetFull(sh.exec("EXISTS", "OLD") == int64(1))
		},
	},
	"The wrong token": {set: func(sh *shell) { sh.env[1] += "x" }},
	"Too slow":        {},
	"The bill":        {},
	"After a restore of the database": {set: func(sh *shell) {
		sh.want(0, "", "a\nb\n", "replace", "--yes", "KEY")
	}},
	"A blocked name got through": {set: func(sh *shell) {
		sh.write("FILE", "ads.example\ntracker.example\n")
		sh.want(0, "", "ads.example,2026-01-31\ntracker.example,2026-02-01\n", "replace", "--yes", "KEY")
	}},
	"Handled twice": {set: func(sh *shell) {
		sh.exec("DEL", "KEY")
		sh.create("KEY", "--window", "1h")
	}},
	"A revoked token got through": {set: func(sh *shell) {
		sh.exec("DEL", "KEY")
		sh.create("KEY", "--window", "1h")
		sh.want(0, "", "", "add", "KEY", "ITEM")
	}},
	"A person wants to be deleted": {set: func(sh *shell) {
		sh.write("FILE", numbered("a", 500))
		sh.create("CUCKOO", "--cuckoo")
		sh.want(0, "", "", "add", "CUCKOO", "ITEM")
		sh.create("PERSON")
	}},
	"Back to yesterday":      {set: func(sh *shell) { sh.want(0, "", numbered("b", 600), "replace", "KEY") }},
	"The save is refused":    {set: lost},
	"The replace is refused": {set: func(sh *shell) { sh.write("FILE", numbered("a", 1200)) }},
}

// TestRunbook runs each command of the runbook in its section's scene: what stands
// behind the # is its exit status and in its output.
func TestRunbook(t *testing.T) {
	text, err := os.ReadFile("../../RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	all := len(pages.Code(t, "../../RUNBOOK.md", "bash"))
	parts := strings.Split(string(text), "\n## ")
	for _, part := range parts[1:] {
		title, _, _ := strings.Cut(part, "\n")
		link := "[" + title + "](#" + strings.ReplaceAll(strings.ToLower(title), " ", "-") + ") |\n"
		if !strings.Contains(parts[0], link) {
			t.Errorf("the table of symptoms lacks %s", link)
		}
		blocks := slices.DeleteFunc(pages.Cut("RUNBOOK.md", part), func(b pages.Block) bool { return b.Language == "shell" })
		all -= len(blocks)
		t.Run(title, func(t *testing.T) {
			scene, ok := scenes[title]
			if !ok || len(blocks) == 0 {
				t.Fatalf("scene %v, %d blocks", ok, len(blocks))
			}
			t.Chdir(t.TempDir())
			sh := newShell(t)
			sh.write("FILE", "ITEM\n"+numbered("a", 500))
			sh.want(0, "", "", "load", "-n", "1k", "KEY", "FILE")
			sh.want(0, "saved", "", "save", "KEY", "BACKUP")
			if scene.set != nil {
				scene.set(sh)
			}
			for _, b := range blocks {
				for line := range strings.Lines(b.Text) {
					sh.follows(scene, line)
				}
			}
		})
	}
	if all != 0 {
		t.Errorf("%d blocks stand in no section", all)
	}
}

// follows runs a line of the runbook.
func (sh *shell) follows(s scene, line string) {
	sh.t.Helper()
	command, says, ok := strings.Cut(strings.TrimSpace(line), "  # ")
	args := strings.Fields(command)
	if !ok || args[0] != "upbloom" {
		sh.t.Fatalf("%q: want a command of upbloom, and what it says behind a #", line)
	}
	status := 0
	if number, words, ok := strings.Cut(strings.TrimPrefix(says, "exit "), ": "); ok && strings.HasPrefix(says, "exit ") {
		n, err := strconv.Atoi(number)
		if err != nil {
			sh.t.Fatalf("%q: %v", line, err)
		}
		status, says = n, words
	}
	if s.step != nil {
		s.step(sh, command)
	}
	for i, arg := range args { // as a shell does
		args[i] = strings.Trim(arg, "'")
	}
	sh.want(status, says, "", args[1:]...)
}
