package engine

import (
	"context"
	"strings"

	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// loopFiles is the memory of a target's loop.
func (e *Engine) loopFiles(t Target) projection.Memory {
	m := projection.Memory{Home: e.Home, Root: t.Workspace.Root, Loop: t.Loop.ID}
	if p, ok := t.Protocol.(FileMergers); ok {
		m.Mergers = p.Mergers()
	}
	return m
}

// applyPending writes recorded file changes into the workspace.
func (h *heldRun) applyPending(ctx context.Context) error {
	m := h.loopFiles(h.target)
	m.NotMerged = func(path string, lines []string) {
		h.said.Note("%s was edited by hand meanwhile, and keeps that: not changed are %s", path, strings.Join(lines, " | "))
	}
	if err := h.admitChanges(h.pending); err != nil {
		return err
	}
	done, err := m.Write(ctx, h.run, h.pending)
	h.applied = append(h.applied, h.pending[:done]...)
	h.pending = h.pending[done:]
	return err
}

// finishFiles writes what the ended runs of a loop left unwritten.
func (e *Engine) finishFiles(ctx context.Context, t Target, pending []loop.PendingChange) error {
	if len(pending) == 0 {
		return nil
	}
	if err := e.admitChanges(pending); err != nil {
		return err
	}
	if _, err := e.loopFiles(t).Write(ctx, loop.Run{}, pending); err != nil {
		return err
	}
	return e.Store.Update(ctx, func(tx *store.Tx) error { return tx.Applied(ctx, pending) })
}
