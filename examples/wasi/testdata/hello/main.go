// Command hello is the smallest program with fmt. The size of the reactor is
// compared with its size.
package main

import "fmt"

func main() { fmt.Println("hello") }
