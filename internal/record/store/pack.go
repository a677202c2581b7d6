package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// packedKind is the kind of a row that holds many events of a run, compressed. It has the
// number of the last of them. No event that is read from the store is of this kind.
const packedKind = "packed"

const (
	packedTogether = 500               // events in one row, at most
	packedText     = 64 << 20          // bytes of them as JSON, at most
	packedAtOnce   = 100               // runs in one transaction
	packedLookedAt = 20 * packedAtOnce // runs that one call of PackTranscripts looks at
	vacuumFrom     = 16 << 20          // bytes that are free in a SQLite file before it is worth the work
	vacuumUpTo     = 512 << 20         // bytes in use, at most: nobody can write meanwhile
)

var (
	beforePack = fault.New("store.pack.commit.before")
	afterPack  = fault.New("store.pack.commit.after")
)

// Packed says what became of transcripts.
type Packed struct {
	Runs   int64 `json:"runs"`   // whose transcripts were compressed
	Events int64 `json:"events"` // that they have
	Before int64 `json:"before"` // bytes of their texts
	After  int64 `json:"after"`  // bytes that hold them now
}

const packable = `
SELECT id, seq FROM runs WHERE seq > $1 AND state = 'ended' AND owed = 0 AND ended_ms < $2 AND ended_ms > 0 ORDER BY seq LIMIT $3`

// PackTranscripts compresses the events of runs that ended before a time. They are read as
// before. It looks at some runs in the order of their firing, those after a sequence number,
// and returns that of the last one; it is the same again if there are no more.
func (s *Store) PackTranscripts(ctx context.Context, after int64, before time.Time) (p Packed, last int64, err error) {
	var ids []string
	last = after
	err = s.View(ctx, func(r *Reader) error {
		rows, err := collect(ctx, r, packable, func(row interface{ Scan(...any) error }) (id string, err error) {
			return id, row.Scan(&id, &last)
		}, after, millis(before), packedLookedAt)
		ids = rows
		return err
	})
	if err != nil {
		return p, after, err
	}
	for part := range slices.Chunk(ids, packedAtOnce) {
		var now Packed
		if err := beforePack.Hit(ctx); err != nil {
			return p, after, err
		}
		err := s.Update(ctx, func(tx *Tx) (err error) {
			now, err = tx.pack(ctx, part)
			return err
		})
		if err != nil {
			return p, after, fmt.Errorf("compress transcripts: %w", err)
		}
		p.Runs, p.Events, p.Before, p.After = p.Runs+now.Runs, p.Events+now.Events, p.Before+now.Before, p.After+now.After
		if err := afterPack.Hit(ctx); err != nil {
			return p, after, err
		}
	}
	return p, last, nil
}

const (
	lockEnded    = `SELECT id FROM runs WHERE id IN ({list}) AND state = 'ended' AND owed = 0 ORDER BY id{for_update}`
	transcriptOf = `SELECT run_id, seq, at_ms, phase, kind, body FROM events WHERE run_id = $1 ORDER BY seq`
	dropEvents   = `DELETE FROM events WHERE run_id = $1`
)

// pack compresses the events of runs. Two nodes never do so with one run: its row is locked.
func (t *Tx) pack(ctx context.Context, runs []string) (p Packed, err error) {
	runs, err = collectInParts(ctx, &t.Reader, lockEnded, scanID, runs)
	if err != nil || len(runs) == 0 {
		return p, err
	}
	for _, run := range runs { // One at a time: a transcript may be long.
		events, err := collect(ctx, &t.Reader, transcriptOf, scanTranscript, run)
		if err != nil {
			return p, err
		}
		if len(events) == 0 || slices.ContainsFunc(events, func(e loop.Event) bool { return e.Kind == packedKind }) {
			continue
		}
		rows, before, after, err := packEvents(events)
		if err != nil {
			return p, err
		}
		if after >= before { // A few words are shorter as they are.
			continue
		}
		if _, err := t.exec(ctx, dropEvents, run); err != nil {
			return p, err
		}
		if err := t.insertRows(ctx, insertEvents, rows); err != nil {
			return p, err
		}
		p.Runs, p.Events, p.Before, p.After = p.Runs+1, p.Events+int64(len(events)), p.Before+before, p.After+after
	}
	return p, nil
}

// packEvents makes the rows that hold the events of a run.
func packEvents(events []loop.Event) (rows [][]any, before, after int64, err error) {
	const ofRow = 40 // bytes, about, that a row takes beside its text
	for part := range slices.Chunk(events, packedTogether) {
		var text bytes.Buffer
		plain, err := json.Marshal(part)
		if err != nil {
			return nil, 0, 0, err
		}
		if len(plain) > packedText {
			return nil, 0, math.MaxInt64, nil // It would not be read again.
		}
		zip, err := gzip.NewWriterLevel(&text, gzip.BestCompression)
		if err == nil {
			_, err = zip.Write(plain)
			err = errors.Join(err, zip.Close())
		}
		if err != nil {
			return nil, 0, 0, err
		}
		last := part[len(part)-1]
		body := base64.StdEncoding.EncodeToString(text.Bytes())
		for _, e := range part {
			before += int64(len(e.Text)) + ofRow
		}
		after += int64(len(body)) + ofRow
		rows = append(rows, []any{last.RunID, last.Seq, millis(last.At), string(last.Phase), packedKind, body})
	}
	return rows, before, after, nil
}

// unpack reads the events of one row. A restored store may be anybody's: what is more than
// packEvents makes is refused, and not held in memory.
func unpack(packed string) (part []loop.Event, err error) {
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(zip, packedText+1))
	if err == nil && len(plain) > packedText {
		err = fmt.Errorf("it has more than %d bytes", packedText)
	}
	if err == nil {
		err = json.Unmarshal(plain, &part)
	}
	if err == nil && len(part) > packedTogether {
		err = fmt.Errorf("it has %d events, and at most %d are compressed together", len(part), packedTogether)
	}
	return part, err
}

// unpackEvents returns the first events after a number, with those of packed rows in their
// place.
func unpackEvents(rows []loop.Event, after int64, limit int) ([]loop.Event, error) {
	var events []loop.Event
	for _, row := range rows {
		if len(events) >= limit {
			break
		}
		if row.Kind != packedKind {
			events = append(events, row)
			continue
		}
		part, err := unpack(row.Text)
		if err != nil {
			return nil, fmt.Errorf("read the compressed transcript of run %s: %w", row.RunID, err)
		}
		events = append(events, slices.DeleteFunc(part, func(e loop.Event) bool { return e.Seq <= after })...)
	}
	return events[:min(limit, len(events))], nil
}

// Vacuum makes a SQLite file smaller if a quarter of it is free, and reports whether it
// did. A large file is left alone unless any size will do, because nobody can write
// meanwhile. PostgreSQL does so by itself.
func (s *Store) Vacuum(ctx context.Context, anySize bool) (freed int64, err error) {
	if s.pool != nil {
		return 0, nil
	}
	var pages, free, size int64
	row := s.r.QueryRowContext(ctx, `SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size`)
	if err := row.Scan(&pages, &free, &size); err != nil {
		return 0, s.explain("look for free pages of the", err)
	}
	if free*size < vacuumFrom || free*4 < pages || !anySize && (pages-free)*size > vacuumUpTo {
		return 0, nil
	}
	err = retryWhileBusy(ctx, s.commitCounter(ctx), func() error {
		_, err := s.w.ExecContext(ctx, `VACUUM`)
		return err
	})
	if err != nil {
		return 0, s.explain("vacuum the", err)
	}
	return free * size, nil
}
