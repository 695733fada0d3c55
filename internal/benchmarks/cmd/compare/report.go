package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// report is the output of a run. If there is a folder, each part is also a file
// there, next to the plots.
type report struct {
	out    io.Writer
	folder string
	text   bytes.Buffer
	err    error // of the output

	targets []target // the measured ones
	facts   []string // for the first screen of a README
}

// printf prints. If it fails, the part's end returns the error.
func (r *report) printf(format string, args ...any) {
	fmt.Fprintf(&r.text, format, args...)
	if _, err := fmt.Fprintf(r.out, format, args...); err != nil {
		r.err = err
	}
}

// begin starts a part, and writes where and when it was measured.
func (r *report) begin(o options) {
	r.text.Reset()
	turns := ""
	if o.turn > 0 {
		turns = fmt.Sprintf("; %d rounds, turns of %v", o.rounds, o.turn)
	}
	r.printf("%s, %s; load before %s%s.\n\n",
		machine(), time.Now().UTC().Format("2006-01-02 15:04 MST"), load(), turns)
}

func machine() string {
	return fmt.Sprintf("%s, %d CPUs, %s %s/%s",
		processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// end writes how busy the machine was, and then the part's file.
func (r *report) end(part string) error {
	r.printf("Load after: %s.\n\n", load())
	if r.err != nil || r.folder == "" {
		return r.err
	}
	text := append(bytes.TrimRight(r.text.Bytes(), "\n"), '\n')
	return os.WriteFile(filepath.Join(r.folder, part+".md"), text, 0o644)
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(text), "model name\t: ")
	if name, _, ok := strings.Cut(rest, "\n"); ok {
		return name
	}
	return "unknown processor"
}

// load returns the load averages of 1, 5 and 15 minutes.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}

// play plays the contests and prints their tables.
func (r *report) play(a *arena, o options, contests []*contest) error {
	for _, c := range contests {
		if err := c.play(a.ctx, o.settings); err != nil {
			return err
		}
		r.judge(c)
		r.learn(c)
		r.printf("%s\n", c.table())
	}
	return nil
}
