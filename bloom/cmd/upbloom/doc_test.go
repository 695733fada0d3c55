package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
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

// Help is read in a terminal, which may have 100 columns. Each command explains
// itself, but for help.
func TestHelpFitsATerminal(t *testing.T) {
	sh := newShell(t)
	for _, c := range append((&app{}).root().Commands, &cli.Command{Description: description("upbloom")}) {
		for line := range strings.Lines(sh.want(0, "OPTIONS:", "", strings.Fields(c.Name+" --help")...)) {
			if n := utf8.RuneCountInString(line) - 1; n > 100 {
				t.Errorf("%s: %d columns: %s", c.Name, n, line)
			}
		}
		if c.Description == "" && c.Name != "help" {
			t.Errorf("%s has no description", c.Name)
		}
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

// The JSON of a filter's state has each field of its Stats.
func TestStateHasAllOfStats(t *testing.T) {
	s := bloom.Stats{
		Kind: bloom.KindWindow, Geometry: bloom.Geometry{Bits: 1, Hashes: 2, Scheme: bloom.SchemeXXH3}, Seeded: true,
		Bytes: 3, SetBits: 4, Fill: 5, Items: 6, Capacity: 7, FPRate: 8, LiveFPRate: 9, Saturated: true, Damaged: true,
		TTL: 10 * time.Second, PaneSpan: 11 * time.Second, Span: 12 * time.Second, MaxParts: 13,
		Parts: []bloom.Part{{
			Bits: 14, Bytes: 15, SetBits: 16, Fill: 17, Items: 18, Capacity: 19, LiveFPRate: 20, Saturated: true, Newest: true,
		}},
	}
	for _, v := range []reflect.Value{reflect.ValueOf(s), reflect.ValueOf(s.Parts[0])} {
		for field, value := range v.Fields() {
			if value.IsZero() {
				t.Errorf("%s.%s is not set here", v.Type(), field.Name)
			}
		}
	}
	var b strings.Builder
	if err := writeJSON(&b, stateOf("key", s)); err != nil {
		t.Fatal(err)
	}
	const want = `{"key":"key","kind":"window","scheme":"xxh3","bits":1,"hashes":2,"seeded":true,"bytes":3,"setBits":4,` +
		`"saturated":true,"ttl":10,"fill":5,"items":6,"rate":9,"capacity":7,"rateAtCapacity":8,"parts":[{"bits":14,"bytes":15,` +
		`"setBits":16,"fill":17,"items":18,"capacity":19,"rate":20,"saturated":true,"newest":true}],"maxParts":13,` +
		`"paneSeconds":11,"spanSeconds":12,"damaged":true}` + "\n"
	if b.String() != want {
		t.Errorf("%s, want %s", &b, want)
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
