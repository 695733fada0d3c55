// Package coredeps tests what the packages upstash and bloom are made of: the
// list below has every module and every internal package that they use, on
// which platform, and why. What is not on the list fails, and so does what is on
// the list and not used.
package coredeps

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

const module = "github.com/upbloom/upbloom"

// platforms are where something is used.
type platforms int

const (
	native platforms = 1 << iota
	js
	wasip1
	everywhere = native | js | wasip1
)

// uses has each module by its path, and each internal package of this module by
// its path in it.
var uses = map[string]struct {
	on  platforms
	why string
}{
	"github.com/zeebo/xxh3":             {everywhere, "the hash of items"},
	"github.com/klauspost/cpuid/v2":     {native, "xxh3 asks it what the processor can do"},
	"golang.org/x/sys":                  {native, "cpuid needs it"},
	"github.com/goccy/go-json":          {native, "reads the envelope of an answer, texts, and values of any type"},
	"github.com/valyala/fasthttp":       {native, "writes requests and parses answers"},
	"github.com/valyala/bytebufferpool": {native, "fasthttp needs it"},
	"github.com/klauspost/compress":     {native, "fasthttp needs it to compress, which the client does not"},
	"github.com/molecule-man/go-brrr":   {native, "fasthttp needs it to compress, which the client does not"},
	"golang.org/x/net":                  {native, "httpproxy says whether the environment has a proxy"},
	"golang.org/x/text":                 {native, "httpproxy needs it, for names of hosts"},
	module + "/internal/pttl":           {everywhere, "both packages read an answer of PTTL as a duration"},
	module + "/internal/door":           {everywhere, "what package upstash does for bloom and the tests alone"},
	module + "/internal/synced":         {everywhere, "bloom says which calls share sync tokens"},
	module + "/internal/dialctx":        {native, "the simulation runs the product's own transport in memory"},
	module + "/internal/lots":           {everywhere, "recordings set bloom's random numbers"},
	module + "/internal/human":          {everywhere, "errors and advice have numbers for people"},
	module + "/upstash/internal/json":   {everywhere, "the bounded reader of integers and lists, and all JSON on wasm"},
	module + "/upstash/internal/quiet":  {everywhere, "errors that hold nothing of a request or an answer"},
	module + "/upstash/internal/conn":   {everywhere, "sockets, TLS, proxies, the pool; on wasm the questions in errors"},
	module + "/bloom/internal/opsize":   {everywhere, "bloom splits batches by the length of their operations"},
	module + "/bloom/internal/cells":    {everywhere, "digests, positions, sizes"},
	module + "/bloom/internal/fault":    {everywhere, "errors say what may have run"},
	module + "/bloom/internal/engine":   {everywhere, "one Redis string of any kind"},
	module + "/bloom/internal/format":   {everywhere, "what the bits of a string mean"},
}

// Packages of the standard library that the core does without. Edge platforms
// limit the size of a module.
var (
	unwanted       = []string{"regexp", "testing"}
	unwantedOnWasm = append([]string{
		"net", "net/http", "crypto/tls", "crypto/rand", "math/big", "encoding/json",
	}, unwanted...)
)

func TestCoreUsesWhatIsListed(t *testing.T) {
	check(t, native, "linux", "amd64", unwanted)
}

func TestCoreUsesWhatIsListedOnJS(t *testing.T) { check(t, js, "js", "wasm", unwantedOnWasm) }

func TestCoreUsesWhatIsListedOnWASI(t *testing.T) {
	check(t, wasip1, "wasip1", "wasm", unwantedOnWasm)
}

func check(t *testing.T, on platforms, goos, goarch string, unwanted []string) {
	t.Helper()
	used, standard := deps(t, goos, goarch)
	for name := range used {
		if uses[name].on&on == 0 {
			t.Errorf("the core uses %s on %s, which is not on the list", name, goos)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		if uses[name].on&on != 0 && !used[name] {
			t.Errorf("%s is on the list for %s, and the core does not use it", name, goos)
		}
		if uses[name].why == "" {
			t.Errorf("%s is on the list without a reason", name)
		}
	}
	for _, name := range unwanted {
		if standard[name] {
			t.Errorf("the core uses package %s on %s, want it without", name, goos)
		}
	}
}

// deps returns what the two packages depend on: modules and internal packages of
// this module, and packages of the standard library.
func deps(t *testing.T, goos, goarch string) (used, standard map[string]bool) {
	t.Helper()
	cmd := exec.Command(testenv.Need(t, "go", "go"), "list", "-deps",
		"-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", module+"/upstash", module+"/bloom")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	used, standard = make(map[string]bool), make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		path, of, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case of == "":
			standard[path] = true
		case of != module:
			used[of] = true
		case strings.Contains(path, "/internal/"):
			used[path] = true
		}
	}
	if len(used) == 0 || len(standard) == 0 {
		t.Fatal("go list printed no dependencies, want some")
	}
	return used, standard
}
