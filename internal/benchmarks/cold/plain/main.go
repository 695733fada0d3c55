// Command plain sets seven bits with net/http and encoding/json and ends. The
// command upbloom next to it is compared with it.
package main

import (
	"bytes"
	"encoding/json" // the peer is net/http with encoding/json
	"fmt"
	"hash/fnv"
	"log"
	"net/http"
	"os"
	"strconv"
)

func main() {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte("user-123@example.com"))
	args := []string{"BITFIELD", "cold:plain"}
	for i, x := uint64(0), hash.Sum64(); i < 7; i++ {
		args = append(args, "SET", "u1", strconv.FormatUint((x+i*(x>>32))%9_585_059, 10), "1")
	}
	body, err := json.Marshal(args)
	if err != nil {
		log.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, os.Getenv("UPSTASH_REDIS_REST_URL"), bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("UPSTASH_REDIS_REST_TOKEN"))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	var reply struct {
		Result []int64
		Error  string
	}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		log.Fatal(err)
	}
	if reply.Error != "" {
		log.Fatal(reply.Error)
	}
	isNew := false
	for _, bit := range reply.Result {
		isNew = isNew || bit == 0
	}
	fmt.Println(isNew)
}
