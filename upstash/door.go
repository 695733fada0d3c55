package upstash

import "github.com/upbloom/upbloom/internal/door"

func init() {
	door.MaxRequest = func(client any) int { return client.(*Client).maxRequest }
}
