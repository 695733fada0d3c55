//go:build !wasm

package jstest

import (
	"fmt"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestMemoryIsFlat: 10,000 calls leave nothing in the memory of the program or
// its host. The host keeps each JavaScript value until Go releases it.
func TestMemoryIsFlat(t *testing.T) {
	db := upstashtest.NewServer(t)
	said := node(t, []string{"UPSTASH_REDIS_REST_URL=" + db.URL, "UPSTASH_REDIS_REST_TOKEN=" + db.Token},
		"--expose-gc", "testdata/memory.mjs", WasmExec(t, "wasm_exec.js"), build(t, "build", "./manycalls"))
	var guest, host [2]int
	if _, err := fmt.Sscan(said, &guest[0], &host[0], &guest[1], &host[1]); err != nil {
		t.Fatalf("the guest printed %q, %v, want four numbers", said, err)
	}
	t.Logf("after 1,000 calls: %d bytes of the program, %d of its host; 10,000 later: %d and %d",
		guest[0], host[0], guest[1], host[1])
	if guest[1] > guest[0]+4<<20 || host[1] > host[0]+4<<20 {
		t.Error("the memory grows with the calls, want at most 4 MiB more")
	}
}
