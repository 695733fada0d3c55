//go:build !linux

package main

import "context"

// Elsewhere the system decides which processor runs what.

func startApart(_ bool, start func() error) error { return start() }

func playApart(_ context.Context, play func() error) error { return play() }
