// Package peertest holds tests alone: they drive the server of upstashtest
// with @upstash/redis, the official JavaScript client, and share Bloom filters
// with a JavaScript program through it. What Go code alone would pass by
// agreeing with itself must then agree with the client that is in use.
//
// The client is installed by npm from the lock file in js, without running any
// package's scripts. Without Node, or where npm cannot reach a registry, the
// tests skip, unless UPBLOOM_REQUIRE contains "node". After a change to
// js/package.json, "npm install --package-lock-only" in js renews the lock file.
package peertest
