// Package peertest holds tests alone: they drive the server of upstashtest with
// @upstash/redis, the official JavaScript client, and with two packages built
// on it, @upstash/ratelimit and @upstash/lock; they share Bloom filters with a
// JavaScript program, and run the programs of bloom/FORMAT.md. What Go code
// alone would pass by agreeing with itself must then agree with the programs
// that are in use.
//
// The client is installed by npm from the lock file in js, without running any
// package's scripts. Without Node, or if npm cannot reach a registry, the tests
// skip, unless UPBLOOM_REQUIRE contains "node". After a change to
// js/package.json, "npm install --package-lock-only" in js renews the lock
// file.
package peertest
