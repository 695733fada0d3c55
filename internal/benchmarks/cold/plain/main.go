// Command plain sets seven bits with net/http and encoding/json and ends. The
// command upbloom next to it is compared with it. With the build tag xxh3, it
// uses upbloom's hash instead of the standard library's.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
)

func main() {
	args := []string{"BITFIELD", "cold:" + hashName}
	for i, x := uint64(0), digest("user-123@example.com"); i < 7; i++ {
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
