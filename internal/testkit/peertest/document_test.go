package peertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// piece is a program of the document with its arguments. It answers for each
// item.
type piece struct {
	Program string   `json:"program"`
	Key     string   `json:"key"`
	Seed    uint64   `json:"seed,string"`
	N       uint64   `json:"n"`
	P       float64  `json:"p"`
	Items   []string `json:"items"`
}

// job is the input of a driver.
type job struct {
	URL   string  `json:"url"`
	Token string  `json:"token"`
	Work  []piece `json:"work"`
}

// runJavaScript runs the programs of the document under Node.
func runJavaScript(t *testing.T, j job) []json.RawMessage {
	t.Helper()
	code := strings.Join(pages.Code(t, "../../../bloom/FORMAT.md", "js"), "")
	if err := os.WriteFile(filepath.Join(install(t), "format.mjs"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return drive(t, script(t, "formatdriver.mjs"), j)
}

// runPython runs the reader of the document.
func runPython(t *testing.T, j job) []json.RawMessage {
	t.Helper()
	python, dir := testenv.Python(t), t.TempDir()
	code := strings.Join(pages.Code(t, "../../../bloom/FORMAT.md", "python"), "")
	if err := os.WriteFile(filepath.Join(dir, "format_reader.py"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "py/formatdriver.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	return drive(t, cmd, j)
}

func drive(t *testing.T, cmd *exec.Cmd, j job) (answers []json.RawMessage) {
	t.Helper()
	out := feed(t, cmd, j)
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(j.Work) {
		t.Fatalf("%d answers, %v, want one to each of %d pieces of work: %s", len(answers), err, len(j.Work), out)
	}
	return answers
}

// shared are filters for both sides. "full" is so small that most words of an
// item coincide, and so full that it has false positives.
var shared = map[string]bloom.Config{
	"usual":  {Capacity: 1000, FPRate: 0.01},
	"full":   {Bits: 53 * 3, Hashes: 4},
	"seeded": {Capacity: 1000, FPRate: 1e-6, Seed: 0xfedcba9876543210},
	"large":  {Capacity: 10_000_000, FPRate: 0.001, Seed: 7},
	"most":   {Bits: 106 * 53, Hashes: 62},
}

// classic is a filter that no program of the document reads.
var classic = bloom.Config{Capacity: 100, FPRate: 0.01, Scheme: bloom.SchemeXXH3}

// readersOf fills filters from Go, and lets a reader of the document look items
// up.
func readersOf(t *testing.T, run func(*testing.T, job) []json.RawMessage) {
	server := upstashtest.NewServer(t)
	client := server.Client()
	j := job{URL: server.URL, Token: server.Token}
	var want [][]bool
	for key, cfg := range shared {
		f := bloomtest.HandleAt(t, client, key, cfg)
		items := presentItems()
		if key == "full" {
			items = items[:12]
		}
		answers(t)(f.AddAll(t.Context(), items))
		all := append(presentItems(), absentItems()...)
		j.Work = append(j.Work, piece{Program: "exists", Key: key, Seed: cfg.Seed, Items: all})
		want = append(want, answers(t)(f.ExistsAll(t.Context(), all)))
	}
	bloomtest.Create(t, bloomtest.HandleAt(t, client, "classic", classic), true)
	const none, other = "no blocked filter at this key", "the filter has another seed"
	refused := []string{none, none, other, other, other}
	for _, p := range []piece{
		{Key: "missing"},
		{Key: "classic"},
		{Key: "usual", Seed: 1},
		{Key: "seeded"},
		{Key: "seeded", Seed: 1},
	} {
		p.Program, p.Items = "exists", []string{"a"}
		j.Work = append(j.Work, p)
	}

	got := run(t, j)
	for i, w := range want {
		t.Run(j.Work[i].Key, func(t *testing.T) {
			found := decode[[]bool](t, outcome{Value: got[i]})
			equal(t, "the document's reader", found, w)
			yes := 0
			for _, f := range found {
				if f {
					yes++
				}
			}
			present := len(presentItems())
			if j.Work[i].Key == "full" && (yes == 12 || yes == len(w)) || j.Work[i].Key == "usual" && yes != present {
				t.Errorf("%d of %d items are found: the filter is too full or too empty", yes, len(w))
			}
		})
	}
	for i := len(want); i < len(got); i++ {
		if s, want := decode[string](t, outcome{Value: got[i]}), refused[i-len(want)]; s != want {
			t.Errorf("%s, seed %d: %q, want %q", j.Work[i].Key, j.Work[i].Seed, s, want)
		}
	}
}

// TestDocumentTTL: the script of FORMAT.md sets a TTL on the filter that its
// writer saw, unless the TTL is settled.
func TestDocumentTTL(t *testing.T) {
	script := pages.Code(t, "../../../bloom/FORMAT.md", "lua")[0]
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := bloomtest.HandleAt(t, s.Client(), "f", bloom.Config{Capacity: 100, FPRate: 0.01})
		exec := func(args ...string) any {
			t.Helper()
			return bloomtest.Do(t, s, args...)
		}
		settle := func(header, birth any, want int64) {
			t.Helper()
			exec("EVAL", script, "1", "f", fmt.Sprint(header), fmt.Sprint(birth), "5000")
			if ttl := exec("TTL", "f"); ttl != want {
				t.Errorf("TTL is %v, want %d", ttl, want)
			}
		}
		seen := func() (header, birth any) {
			t.Helper()
			bloomtest.MustAdd(t, f, "a")
			words := exec("BITFIELD_RO", "f", "GET", "u53", "0", "GET", "u53", "64").([]any)
			return words[0], words[1]
		}
		const none, five int64 = -1, 5
		header, old := seen()
		exec("DEL", "f")
		_, birth := seen()
		settle(header, old, none)
		settle(header.(int64)+1, birth, none)
		if _, err := f.Persist(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle(header, birth, none)
		exec("SETBIT", "f", "127", "0")
		settle(header, birth, five)
		if bit := exec("GETBIT", "f", "127"); bit != int64(1) {
			t.Errorf("bit 127 is %v, want 1", bit)
		}
	})
}

// TestDocumentReaders: the readers of FORMAT.md answer as Go does, about
// filters filled by Go.
func TestDocumentReaders(t *testing.T) {
	t.Run("javascript", func(t *testing.T) { readersOf(t, runJavaScript) })
	t.Run("python", func(t *testing.T) { readersOf(t, runPython) })
}

// TestDocumentWriter: the writer of FORMAT.md makes the same filters as Go, bit
// by bit except for the random part of the birth number.
func TestDocumentWriter(t *testing.T) {
	server := upstashtest.NewServer(t)
	client := server.Client()
	sizes := []bloom.Config{
		{Capacity: 1, FPRate: 0.9},
		{Capacity: 1000, FPRate: 0.01},
		{Capacity: 5000, FPRate: 0.003},
		{Capacity: 10_000_000, FPRate: 1e-6},
		{Capacity: 12_345_678, FPRate: 0.0123},
		{Capacity: 1000, FPRate: 0.01, Seed: 0xfedcba9876543210},
	}
	j := job{URL: server.URL, Token: server.Token}
	for i, c := range sizes {
		j.Work = append(j.Work,
			piece{Program: "size", N: c.Capacity, P: c.FPRate, Items: []string{""}},
			piece{
				Program: "add", Key: "js" + strconv.Itoa(i), Seed: c.Seed,
				N: c.Capacity, P: c.FPRate, Items: presentItems(),
			})
	}
	bloomtest.Create(t, bloomtest.HandleAt(t, client, "classic", classic), true)
	j.Work = append(j.Work, piece{Program: "add", Key: "classic", N: 1, P: 0.1, Items: []string{"a"}})

	got := runJavaScript(t, j)
	for i, c := range sizes {
		t.Run(fmt.Sprintf("n=%d,p=%v,seeded=%t", c.Capacity, c.FPRate, c.Seed != 0), func(t *testing.T) {
			g, err := c.Geometry()
			if err != nil {
				t.Fatal(err)
			}
			size := decode[[]struct {
				M uint64
				K int
			}](t, outcome{Value: got[2*i]})
			if len(size) != 1 || size[0].M != g.Bits || size[0].K != g.Hashes {
				t.Errorf("size %v, want %v", size, g)
			}
			writtenAlike(t, server, c, i, decode[[]bool](t, outcome{Value: got[2*i+1]}))
		})
	}
	if s := decode[string](t, outcome{Value: got[len(got)-1]}); s != "another filter is at this key" {
		t.Errorf("adding to another filter: %q, want \"another filter is at this key\"", s)
	}
}

// writtenAlike compares a filter of the writer with Go's filter of the same
// items.
func writtenAlike(t *testing.T, server *upstashtest.Server, c bloom.Config, i int, added []bool) {
	t.Helper()
	client := server.Client()
	ours := bloomtest.HandleAt(t, client, "go"+strconv.Itoa(i), c)
	equal(t, "new items", added, answers(t)(ours.AddAll(t.Context(), presentItems())))
	theirs, err := bloom.Open(t.Context(), client, "js"+strconv.Itoa(i), bloom.Config{Seed: c.Seed})
	if err != nil {
		t.Fatal(err)
	}
	all := append(presentItems(), absentItems()...)
	equal(t, "Go on the writer's filter", answers(t)(theirs.ExistsAll(t.Context(), all)),
		answers(t)(ours.ExistsAll(t.Context(), all)))
	js := bloomtest.StoredAt(t, server, "js"+strconv.Itoa(i))
	own := bloomtest.StoredAt(t, server, "go"+strconv.Itoa(i))
	if js[:8] != own[:8] || js[16:] != own[16:] || js[8]>>7 != 1 || js[15] != 0 ||
		js[13]&31 != own[13]&31 || js[14] != own[14] { // the rate
		t.Errorf("the two strings differ: %x..., want %x...", js[:16], own[:16])
	}
}
