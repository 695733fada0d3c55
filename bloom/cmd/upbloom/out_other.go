//go:build !windows

package main

import "syscall"

// readerGone are the errors of a write to a pipe that nobody reads.
var readerGone = []error{syscall.EPIPE}
