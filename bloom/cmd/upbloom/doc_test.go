package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/pages"
)

// TestDoc: the doc of the program says where it is installed from, lists its
// commands with their arguments, and the exit statuses.
func TestDoc(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(pages.Text(t, "main.go", "go install ")), "\n")
	module, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(string(module), "module "), "\n")
	if want := "go install " + path + "/bloom/cmd/upbloom@latest"; lines[0] != want || lines[1] != "" {
		t.Errorf("the doc begins with %q, want %q", lines[:2], want)
	}
	var a app
	commands := a.root().Commands
	commands = slices.DeleteFunc(commands, func(c *cli.Command) bool { return c.Name == "help" })
	if len(commands) != len(lines)-2 {
		t.Errorf("the doc has %d commands, want %d", len(lines)-2, len(commands))
	}
	for i, c := range commands {
		line, _, _ := strings.Cut(lines[i+2], "   ")
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "upbloom" || words[1] != c.Name {
			t.Fatalf("command %d of the doc is %q, want %s", i, line, c.Name)
		}
		var values string // of its flags
		for _, word := range words[2:] {
			if flag, ok := strings.CutPrefix(word, "--"); ok {
				at := slices.IndexFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), flag) })
				if at < 0 {
					t.Fatalf("%q: there is no flag %s", line, word)
				}
				values += c.Flags[at].String()
			} else if !strings.Contains(c.ArgsUsage+values, strings.TrimSuffix(word, "]")) {
				t.Errorf("%q: %s is not among its arguments %q", line, word, c.ArgsUsage)
			}
		}
	}
	var statuses []int
	for line := range strings.Lines(pages.Text(t, "main.go", "0    ")) {
		number, _, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(number); err == nil {
			statuses = append(statuses, n)
		}
	}
	want := []int{
		0, exitNo, exitUsage, exitFilter, exitDatabase, exitUnknown, exitInterrupted, exitNoReader,
	}
	if !reflect.DeepEqual(statuses, want) {
		t.Errorf("the doc has the statuses %v, want %v", statuses, want)
	}
}

// info and ls say the same of a filter of each kind, and every field of ls is
// in info. A sharded filter has a line of ls for each shard: the numbers of its
// strings are their sums.
func TestInfoSaysWhatListSays(t *testing.T) {
	kinds := map[string][]string{"filter": nil}
	for _, k := range otherKinds {
		kinds[k.kind] = k.flags
	}
	for kind, flags := range kinds {
		t.Run(kind, func(t *testing.T) {
			sh := newShell(t)
			sh.create("key", flags...)
			sh.want(0, "", numbered("a", 300), "add", "key", "-")
			var list []map[string]any
			decode(t, sh.want(0, "", "", "--json", "ls"), &list)
			for _, line := range list {
				if line["setBits"] == 0.0 {
					t.Errorf("ls says that no bit of %v is set", line["key"])
				}
				var one map[string]any
				decode(t, sh.want(0, "", "", "--json", "info", line["key"].(string)), &one)
				for field, want := range line {
					if got, ok := one[field]; !ok || !reflect.DeepEqual(got, want) {
						t.Errorf("%v: info says %q: %v, and ls %v", line["key"], field, got, want)
					}
				}
			}
			if kind != shardedKind {
				return
			}
			var one map[string]any
			decode(t, sh.want(0, "", "", "--json", "info", "key"), &one)
			for field := range list[0] {
				want := list[0][field]
				switch field {
				case "key", "kind", "fill", "items", "rate", "capacity", "rateAtCapacity": // of the whole
					continue
				case "setBits", "bytes":
					sum := 0.0
					for _, line := range list {
						sum += line[field].(float64)
					}
					want = sum
				}
				if got := one[field]; !reflect.DeepEqual(got, want) {
					t.Errorf("info says %q: %v, and ls of the shards %v", field, got, want)
				}
			}
			for i, part := range one["parts"].([]any) {
				for field, got := range part.(map[string]any) {
					if want := list[i][field]; !reflect.DeepEqual(got, want) {
						t.Errorf("shard %d: info says %q: %v, and ls %v", i, field, got, want)
					}
				}
			}
		})
	}
}

// The text of info begins with what the filter is.
func TestInfoBeginsWithTheKind(t *testing.T) {
	sh := newShell(t)
	for flag, begins := range map[string]string{
		"": "filter ", "--window=1d": "window ", "--scalable": "layers ", "--cuckoo": "cuckoo ", "--shards=2": "sharded ",
	} {
		key := "key" + flag
		sh.create(key, strings.Fields(flag)...)
		if out := sh.want(0, "", "", "info", key); !strings.HasPrefix(out, begins) {
			t.Errorf("info of %q says\n%s", flag, out)
		}
	}
}

// The JSON of a cuckoo filter has what its text shows.
func TestInfoOfCuckooHasItsCapacity(t *testing.T) {
	sh := newShell(t)
	sh.create("key", "--cuckoo")
	sh.want(0, " of 1,002", "", "info", "key")
	one := sh.info("key")
	if one.Capacity != 1002 || one.RateFull <= 0 || one.RateFull > 0.01 {
		t.Errorf("the capacity is %d, and the rate there %v", one.Capacity, one.RateFull)
	}
}

// The JSON of a window and of a scalable filter has what their text shows.
func TestInfoOfPartsHasTheirSizes(t *testing.T) {
	sh := newShell(t)
	sh.create("days", "--window", "1d", "--panes", "2")
	sh.want(0, "finds an item for 24h1s, and forgets it within 2d12s\npanes            4 of 12h3s", "", "info", "days")
	s := sh.info("days")
	if len(s.Parts) != 4 || s.PaneSpan != 12*3600+3 || s.Span != 24*3600+1 {
		t.Errorf("%d panes of %v s, which find an item for %v s", len(s.Parts), s.PaneSpan, s.Span)
	}
	sh.create("key", "--scalable")
	sh.want(0, "", numbered("a", 3_000), "add", "key", "-")
	text := sh.want(0, "layers           2 of 5\n", "", "info", "key")
	s = state{}
	decode(t, sh.want(0, "", "", "--json", "info", "key"), &s)
	if len(s.Parts) != 2 || s.MaxParts != 5 {
		t.Errorf("%d layers of %d", len(s.Parts), s.MaxParts)
	}
	for i, layer := range s.Parts {
		if line := fmt.Sprintf("about %s of %s items, %s bits", human.Count(layer.Items),
			human.Count(uint64(1000<<(2*i))), human.Count(layer.Bits)); !strings.Contains(text, line) {
			t.Errorf("the text lacks %q:\n%s", line, text)
		}
	}
}

// documented are the types of the sections of the doc.
var documented = map[string]reflect.Type{
	"ls, info; before and after of replace and restore":     reflect.TypeFor[state](),
	"parts; holds of load":                                  reflect.TypeFor[part](),
	"ls, of a filter that cannot be read":                   reflect.TypeFor[unread](),
	"check, add, remove":                                    reflect.TypeFor[answer](),
	"create":                                                reflect.TypeFor[made](),
	"load, replace, save, restore":                          reflect.TypeFor[moved](),
	"from of restore":                                       reflect.TypeFor[note](),
	"ls --total, of each kind, and of all":                  reflect.TypeFor[sum](),
	"one that failed, of rm, save and restore with --match": reflect.TypeFor[failedOne](),
	"ttl":                         reflect.TypeFor[expiring](),
	"rm":                          reflect.TypeFor[removed](),
	"calc":                        reflect.TypeFor[costs](),
	"ways of calc":                reflect.TypeFor[cost](),
	"seed":                        reflect.TypeFor[secret](),
	"doctor":                      reflect.TypeFor[finding](),
	"serve":                       reflect.TypeFor[served](),
	"an error, on standard error": reflect.TypeFor[failure](),
}

// The doc of the program lists the fields of each type that is printed as JSON,
// and no others, those in parentheses that may be missing.
func TestDocOfJSON(t *testing.T) {
	said := make(map[string]map[string]bool) // whether a field of a section may be missing
	section := ""
	for line := range strings.Lines(pages.Text(t, "main.go", "ls, info; ")) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, " ") {
			section = strings.TrimSuffix(line, ":")
			said[section] = make(map[string]bool)
			continue
		}
		if strings.HasPrefix(line, "    ") { // goes on
			continue
		}
		names, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		inside := false
		for name := range strings.SplitSeq(names, ", ") {
			inside = inside || strings.HasPrefix(name, "(")
			said[section][strings.Trim(name, "()")] = inside
			inside = inside && !strings.HasSuffix(name, ")")
		}
	}
	known := make(map[string]bool)
	for section, typ := range documented {
		want := make(map[string]bool)
		for _, f := range reflect.VisibleFields(typ) {
			if tag, ok := f.Tag.Lookup("json"); ok {
				name, option, _ := strings.Cut(tag, ",")
				want[name] = option == "omitempty" || option == "omitzero"
				known[name] = true
			}
		}
		if !maps.Equal(said[section], want) {
			t.Errorf("%s: the doc has %v, want %v", section, said[section], want)
		}
		delete(said, section)
	}
	if len(said) > 0 {
		t.Errorf("sections of no type: %v", said)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	tag := regexp.MustCompile("`json:\"(\\w+)")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tag.FindAllStringSubmatch(string(text), -1) {
			if !known[m[1]] && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s: the doc lacks %q: add its type to documented", file, m[1])
			}
		}
	}
}
