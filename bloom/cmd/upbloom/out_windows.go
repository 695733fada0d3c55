package main

import "syscall"

// readerGone are the errors of a write to a pipe that nobody reads: broken, or
// being closed (ERROR_NO_DATA).
var readerGone = []error{syscall.ERROR_BROKEN_PIPE, syscall.Errno(232)}
