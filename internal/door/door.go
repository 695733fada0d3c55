// Package door is what package upstash does for the rest of this module, and
// for nobody else. Package upstash sets the functions. They take and return its
// types as any, because it imports this package. Who imports package upstash
// may call them; the arguments must be of the types that are named.
package door

// MaxRequest returns the limit of upstash.WithMaxRequest of an *upstash.Client,
// in bytes.
var MaxRequest func(client any) int
