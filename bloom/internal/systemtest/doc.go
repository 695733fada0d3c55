// Package systemtest tests package bloom as its users have it, by its public
// names alone: against a Redis or with processes of its own, under faults, at a
// key that holds something else, in a full database, and what each call costs.
package systemtest
