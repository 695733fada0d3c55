package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

func init() { roles["awake"] = stayAwake }

// processors returns the processors this process may use.
func processors() (list []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for i := 0; len(list) < set.Count(); i++ {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list
}

func setOf(cpus ...int) *unix.CPUSet {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return &set
}

// startApart starts a process that uses one processor alone, and knows no
// other: a client's the first, a server's the last.
func startApart(client bool, start func() error) error {
	cpus := processors()
	if len(cpus) < 2 {
		return start()
	}
	cpu := cpus[len(cpus)-1]
	if client {
		cpu = cpus[0]
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, setOf(cpu)); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, setOf(cpus...)) }()
	return start()
}

// playApart calls play while this process uses the first processor alone, and
// while both it and the last one stay awake.
func playApart(ctx context.Context, play func() error) error {
	cpus := processors()
	if len(cpus) < 2 {
		return play()
	}
	ctx, rest := context.WithCancel(ctx)
	defer rest()
	for _, cpu := range []int{cpus[0], cpus[len(cpus)-1]} {
		if _, err := startRole(ctx, "awake", strconv.Itoa(cpu)); err != nil {
			return err
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if err := useProcessors(cpus[0]); err != nil {
		return err
	}
	defer func() { _ = useProcessors(cpus...) }()
	return play()
}

// useProcessors sets the processors of all threads of this process.
func useProcessors(cpus ...int) error {
	tasks, err := filepath.Glob("/proc/self/task/*")
	for _, task := range tasks {
		id, _ := strconv.Atoi(filepath.Base(task))
		if e := unix.SchedSetaffinity(id, setOf(cpus...)); e != nil && e != unix.ESRCH && err == nil {
			err = fmt.Errorf("processors of thread %d: %w", id, e)
		}
	}
	return err
}

// stayAwake keeps a processor from falling asleep: it uses what nobody else
// wants.
func stayAwake(args []string) (string, error) {
	cpu, err := strconv.Atoi(args[0])
	if err != nil {
		return "", err
	}
	began := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		if err == nil {
			err = unix.SchedSetaffinity(0, setOf(cpu))
		}
		began <- err
		for turns := new(atomic.Uint64); err == nil; {
			turns.Add(1)
		}
	}()
	return fmt.Sprint(os.Getpid()), <-began
}
