// Package systemtest tests package bloom from outside, by its public names:
// with a Redis, with other processes, under faults, at a key that holds
// something else, in a full database. It also counts the cost of each call, and
// checks histories of calls over sockets and processes.
package systemtest
