package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Rows of turns that are in no transaction yet are noted in a file of pawl's home,
// while they are counted. Store and disk may be away when a turn ends; whoever
// concludes the run later still charges what its agent used.

const (
	notesSuffix = ".turns"
	// notesWidth is more than the rows of an iteration usually take up. A file of
	// that size is made while there is room on the disk and only written over later.
	notesWidth = 8 << 10
	maxNotes   = 1 << 20
)

func (e *Engine) notesFile(runID string) string { return e.runDir(runID) + notesSuffix }

// noteTurns writes the rows down that are not saved yet, with what is known of the
// turn under way. The caller holds turns.mu.
func (j *journal) noteTurns(ctx context.Context) {
	rows := slices.Clone(j.turns.unsaved)
	if j.turns.live != nil {
		rows = append(rows, j.turns.live.now().row)
	}
	text, err := json.Marshal(rows)
	if err != nil || bytes.Equal(text, j.turns.last) {
		return
	}
	j.turns.last = text
	if err = j.writeNotes(append(text, bytes.Repeat([]byte(" "), max(0, notesWidth-len(text)))...)); err != nil {
		j.engine.Log.WarnContext(ctx, "what a turn uses cannot be noted", slog.String("run", j.id.ID), slog.String("error", err.Error()))
	}
}

func (j *journal) writeNotes(text []byte) error {
	if j.turns.file == nil {
		name := j.engine.notesFile(j.id.ID)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		j.turns.file = f
	}
	// It never gets shorter: what is left behind the rows would be no JSON.
	text = append(text, bytes.Repeat([]byte(" "), max(0, j.turns.length-len(text)))...)
	j.turns.length = len(text)
	_, err := j.turns.file.WriteAt(text, 0)
	return err
}

// noteLive is noteTurns for the watcher: nothing is written between turns.
func (j *journal) noteLive(ctx context.Context) {
	j.turns.mu.Lock()
	defer j.turns.mu.Unlock()
	if j.turns.live != nil {
		j.noteTurns(ctx)
	}
}

// withNoted adds the turns to those of the store that a process noted and did not
// save. A turn whose end is in the store stays as it is.
func (c *cycle) withNoted(turns []loop.Turn) []loop.Turn {
	file, err := projection.ReadFile(c.notesFile(c.run.ID), maxNotes)
	var noted []loop.Turn
	if err != nil || json.Unmarshal([]byte(file.Content), &noted) != nil {
		return turns
	}
	for _, row := range noted {
		i := slices.IndexFunc(turns, func(t loop.Turn) bool { return t.N == row.N })
		switch {
		case row.RunID != c.run.ID || row.N < 1:
		case i < 0:
			turns = append(turns, row)
		case turns[i].Ended == "" && (row.Ended != "" || row.Usage.ChargedTokens() > turns[i].Usage.ChargedTokens()):
			turns[i] = row
		}
	}
	slices.SortFunc(turns, func(a, b loop.Turn) int { return a.N - b.N })
	return turns
}
