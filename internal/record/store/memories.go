package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const memoryByNumber = `SELECT body FROM memories WHERE workspace_id = $1 AND n = $2`

// Memory returns entry n of a workspace's memory, or ErrNotFound.
func (r *Reader) Memory(ctx context.Context, workspace string, n int64) (loop.Memory, error) {
	return r.oneMemory(ctx, memoryByNumber, workspace, n)
}

// LockMemory is Memory for an entry that the transaction changes.
func (t *Tx) LockMemory(ctx context.Context, workspace string, n int64) (loop.Memory, error) {
	return t.oneMemory(ctx, memoryByNumber+`{for_update}`, workspace, n)
}

func (r *Reader) oneMemory(ctx context.Context, query, workspace string, n int64) (loop.Memory, error) {
	m, err := scanBody[loop.Memory](r.queryRow(ctx, query, workspace, n))
	if errors.Is(err, sql.ErrNoRows) {
		err = loop.ErrNotFound
	}
	if err != nil {
		err = fmt.Errorf("read memory #%d: %w", n, err)
	}
	return m, err
}

// MemoryQuery selects entries of a workspace's memory.
type MemoryQuery struct {
	Workspace string
	Loop      string // id: only what is for this loop or for every loop; empty: all
	Active    bool   // only those that count
	Before    int64  // only those with a lower number; 0: all
	Limit     int
}

const (
	memoriesBefore = `SELECT body FROM memories WHERE workspace_id = $1 AND n < $2 AND ($3 = '' OR loop_id IN ('', $3)) ORDER BY n DESC LIMIT $4`
	activeBefore   = `SELECT body FROM memories WHERE workspace_id = $1 AND n < $2 AND ($3 = '' OR loop_id IN ('', $3)) AND state = 'active' ORDER BY n DESC LIMIT $4`
)

// Memories lists entries of a workspace's memory, the highest number first.
func (r *Reader) Memories(ctx context.Context, q MemoryQuery) ([]loop.Memory, error) {
	query := memoriesBefore
	if q.Active {
		query = activeBefore
	}
	list, err := collect(ctx, r, query, scanBody[loop.Memory], q.Workspace, cmp.Or(q.Before, math.MaxInt64), q.Loop, q.Limit)
	if err != nil {
		return nil, fmt.Errorf("read the memory: %w", err)
	}
	return list, nil
}

const countProposed = `SELECT count(*) FROM memories WHERE workspace_id = $1 AND proposed_by = $2 AND state = 'proposed'`

// ProposedMemories is how many entries that runs of a loop proposed are still proposals.
func (r *Reader) ProposedMemories(ctx context.Context, workspace, loopID string) (n int, err error) {
	if err = r.queryRow(ctx, countProposed, workspace, loopID).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what the loop proposed: %w", err)
	}
	return n, nil
}

const (
	memoriesByDigest = `SELECT body FROM memories WHERE workspace_id = $1 AND digest IN ({list}) ORDER BY n{for_update}`
	// lockMemoryCount returns the highest number, and lets nobody else give one before
	// the transaction ends.
	lockMemoryCount = `UPDATE workspaces SET memories = memories WHERE id = $1 RETURNING memories`
	setMemoryCount  = `UPDATE workspaces SET memories = $1 WHERE id = $2`
)

// ChangeMemories reads the entries with any of the digests, of which nobody else changes
// one in between, and writes those that change returns. One without a number is new and
// gets the next. Change may be called twice: it must always begin from what it is given.
// What was written is returned, with its numbers.
func (t *Tx) ChangeMemories(
	ctx context.Context, workspace string, digests []string, change func(known []loop.Memory) []loop.Memory,
) ([]loop.Memory, error) {
	read := func() (changed []loop.Memory, added int64, err error) {
		known, err := collectInParts(ctx, &t.Reader, memoriesByDigest, scanBody[loop.Memory], digests, workspace)
		if err != nil {
			return nil, 0, fmt.Errorf("read the memory: %w", err)
		}
		changed = change(known)
		for _, m := range changed {
			if m.N == 0 {
				added++
			}
		}
		return changed, added, nil
	}
	changed, added, err := read()
	if err != nil {
		return nil, err
	}
	var last int64
	if added > 0 {
		if err := t.queryRow(ctx, lockMemoryCount, workspace).Scan(&last); err != nil {
			return nil, fmt.Errorf("number a memory: %w", err)
		}
		if t.native.postgres != nil { // Another transaction may have added the same meanwhile.
			if changed, added, err = read(); err != nil {
				return nil, err
			}
		}
	}
	for i := range changed {
		m := &changed[i]
		if m.N > 0 {
			t.SaveMemory(workspace, *m)
			continue
		}
		last++
		m.N = last
		if _, err := t.exec(ctx, insertMemory, workspace, m.N, m.Digest(), m.LoopID, m.ProposedBy(), string(m.State), encode(m)); err != nil {
			return nil, fmt.Errorf("add memory #%d: %w", m.N, err)
		}
	}
	if added > 0 {
		if _, err := t.exec(ctx, setMemoryCount, last, workspace); err != nil {
			return nil, fmt.Errorf("number a memory: %w", err)
		}
	}
	return changed, nil
}

const (
	insertMemory = `INSERT INTO memories (workspace_id, n, digest, loop_id, proposed_by, state, body) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	updateMemory = `UPDATE memories SET state = $1, body = $2 WHERE workspace_id = $3 AND n = $4`
)

// SaveMemory writes an entry that LockMemory returned, with what was changed of it. What
// it says and for whom stays.
func (t *Tx) SaveMemory(workspace string, m loop.Memory) {
	t.execLast(fmt.Sprintf("save memory #%d", m.N), updateMemory, string(m.State), encode(m), workspace, m.N)
}
