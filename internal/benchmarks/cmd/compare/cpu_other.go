//go:build !unix

package main

import "time"

// cpuTime is unknown here. The columns of CPU time are 0.
func cpuTime() time.Duration { return 0 }
