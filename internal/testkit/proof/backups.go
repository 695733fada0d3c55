package proof

import (
	"context"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// Backups hold the first Backup that a client of a history took. All clients, of
// this process, restore this one.
type Backups struct {
	mu    sync.Mutex
	first *bloom.Backup
}

// String says whether there is one, for the story of a seed: an address would
// differ from run to run.
func (b *Backups) String() string {
	if b == nil {
		return "none"
	}
	return "some"
}

// backupPart makes several parts of a filter that has grown.
const backupPart = 8 << 10

// take takes a Backup. It answers whether this is the first one.
func (b *Backups) take(ctx context.Context, c *upstash.Client, key string) (Result, error) {
	taken, err := bloom.TakeBackup(ctx, c, key, bloom.WithPartBytes(backupPart))
	if err != nil {
		return Result{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	isFirst := b.first == nil
	if isFirst {
		b.first = taken
	}
	return Result{Yes: []bool{isFirst}}, nil
}

// restore restores the first Backup, or does nothing if there is none.
func (b *Backups) restore(ctx context.Context, c *upstash.Client, key string, ttl time.Duration) (Result, error) {
	b.mu.Lock()
	first := b.first
	b.mu.Unlock()
	if first == nil {
		return Result{End: NotRun}, nil
	}
	l, err := first.Restore(ctx, c, key, ttl, bloom.WithPartBytes(backupPart))
	return Result{Yes: []bool{l.Created}}, err
}
