// Package peertest contains only tests. They drive the server of upstashtest
// with @upstash/redis, the official JavaScript client, and with two packages
// built on it, @upstash/ratelimit and @upstash/lock. They share Bloom filters
// with a JavaScript program, and run the programs of bloom/FORMAT.md. A mistake
// common to our client and our server shows up here. And they run "upbloom
// doctor" on two servers of others, which lack what it needs.
//
// The tests of JavaScript run if UPBLOOM_REQUIRE contains "node". npm then installs
// the packages from the lock file in js, without running their scripts. After a
// change to js/package.json, run "npm install --package-lock-only" in js to renew
// the lock file.
package peertest
