package readers_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A reader is a program with one of the files, which answers questions.
type reader struct {
	in  io.Writer
	out *bufio.Reader
}

// A question is a map: a program gets only the fields of the question at hand.
type question map[string]any

func start(t *testing.T, s *upstashtest.Server, exe string, args ...string) *reader {
	t.Helper()
	cmd := exec.Command(exe, append(args, s.URL, s.Token)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", exe, err)
		}
	})
	return &reader{in, bufio.NewReader(out)}
}

// ask puts the program's answer into into, or returns its error.
func (r *reader) ask(t *testing.T, q question, into any) (failure string) {
	t.Helper()
	line, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(r.in, "%s\n", line); err != nil {
		t.Fatal(err)
	}
	line, err = r.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v: %v", q["op"], err)
	}
	var answer struct {
		OK    json.RawMessage `json:"ok"`
		Error string          `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error == "" {
		if err := json.Unmarshal(answer.OK, into); err != nil {
			t.Fatalf("%v: %s: %v", q["op"], answer.OK, err)
		}
	}
	return answer.Error
}

// want asks, and checks the answer.
func (r *reader) want(t *testing.T, q question, want any) {
	t.Helper()
	got := reflect.New(reflect.TypeOf(want))
	if failure := r.ask(t, q, got.Interface()); failure != "" {
		t.Errorf("%v: %s", q, failure)
	} else if !reflect.DeepEqual(got.Elem().Interface(), want) {
		t.Errorf("%v: %v, want %v", q, got.Elem().Interface(), want)
	}
}

// eachReader runs a test with both files, each with its own database.
func eachReader(t *testing.T, test func(t *testing.T, s *upstashtest.Server, r *reader)) {
	t.Run("typescript", func(t *testing.T) {
		s := upstashtest.NewServer(t)
		test(t, s, start(t, s, testenv.Need(t, "node", "node"), compiled(t)))
	})
	t.Run("python", func(t *testing.T) {
		s := upstashtest.NewServer(t)
		test(t, s, start(t, s, python(t), "testdata/answer.py"))
	})
}

// dist is the compiler's output folder. It is in this folder, where Node finds
// node_modules.
var dist string

func TestMain(m *testing.M) {
	code := m.Run()
	if dist != "" {
		_ = os.RemoveAll(dist)
	}
	os.Exit(code)
}

// compile makes JavaScript of the files, once for all tests.
var compile = sync.OnceValue(func() (err error) {
	if dist, err = os.MkdirTemp(".", "dist-"); err != nil {
		return err
	}
	out, err := exec.Command("node", tsc, "-p", ".", "--outDir", dist).CombinedOutput()
	if err != nil {
		return fmt.Errorf("tsc: %w\n%s", err, out)
	}
	return nil
})

const tsc = "node_modules/typescript/bin/tsc"

// compiled returns the test's program in JavaScript.
func compiled(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(tsc); err != nil {
		testenv.Missing(t, "node", "run npm ci in examples/readers first")
	}
	if err := compile(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dist, "testdata", "answer.js")
}

// python returns a Python with xxhash.
func python(t *testing.T) string {
	t.Helper()
	for _, exe := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(exe, "-c", "import xxhash").Run() == nil {
			return exe
		}
	}
	testenv.Missing(t, "python", "no python3 with the module xxhash")
	return ""
}
