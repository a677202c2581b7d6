package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// RunLog is a run log as the chain has it, schema pawl.audit-log/v1.
type RunLog struct {
	Schema  string `json:"schema"`
	Loop    string `json:"loop"`
	Path    string `json:"path"`
	Lines   int    `json:"lines"`
	Earlier int    `json:"earlier"` // lines from before the chain, taken over as they are
	Text    string `json:"text"`
	Changed bool   `json:"changed"`        // the file says something else
	Kept    string `json:"kept,omitempty"` // what the file became when it was written anew

	Chain string `json:"-"` // id of the chain
	Was   string `json:"-"` // what the file says
}

// RunLog makes the run log of a spine loop from its audit chain, in exactly the
// bytes that its runs would have written. It is refused for a chain that is
// broken.
func (s *Service) RunLog(ctx context.Context, name string) (RunLog, error) {
	c, err := s.logged(ctx, name)
	if err != nil {
		return RunLog{}, err
	}
	l := RunLog{Schema: "pawl.audit-log/v1", Loop: c.Loop, Path: logPath(c.Loop), Chain: c.Chain}
	if l.Was, err = s.readLog(l.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("read %s: %w", l.Path, err)
	}
	told := s.written(&c, accounts(c.Entries))
	earlier := compareLog(l.Was, l.Path, c.Entries[0].At.Truncate(time.Second), told).earlier
	var b strings.Builder
	b.WriteString(runlog.Header(c.Loop))
	for _, line := range earlier {
		b.WriteString(line + "\n")
	}
	for _, a := range told {
		if forms := a.lines(l.Path); forms != nil {
			b.WriteString(forms[0] + "\n")
			l.Lines++
		}
	}
	l.Earlier, l.Text = len(earlier), b.String()
	l.Changed = l.Text != l.Was
	return l, nil
}

// logged returns the chain of a loop that keeps a run log. It is intact.
func (s *Service) logged(ctx context.Context, name string) (c Chain, err error) {
	if name == All {
		return c, fmt.Errorf("make a run log of no loop: %w", loop.ErrNotFound)
	}
	chains, err := s.chains(ctx, name)
	if err != nil {
		return c, err
	}
	if len(chains) == 0 || len(chains[0].Entries) == 0 && len(chains[0].Breaks) == 0 {
		return c, &loop.Fault{
			Exit: loop.ExitNotFound, What: name + " has no audit chain yet", Err: loop.ErrNotFound,
			Fix: "its first run begins one: {1}", Actions: []loop.Command{loop.PawlCommand("run", name)},
		}
	}
	c = chains[0]
	switch {
	case !s.ws.Formats.Of(c.Protocol).KeepsLog:
		return c, &loop.Fault{
			Exit: loop.ExitUsage, What: "make the run log of " + name, Why: "a loop of protocol " + c.Protocol + " keeps none",
			Fix: "name a loop of protocol spine",
		}
	case len(c.Breaks) > 0:
		return c, &loop.Fault{
			Exit: loop.ExitError, What: "make the run log of " + name, Why: c.Breaks[0].String() + ": a log that is made from it would prove nothing",
			Fix: "restore the store from a backup; {1} says more", Actions: []loop.Command{loop.PawlCommand("audit verify", name)},
		}
	}
	return c, nil
}

// rewrites bounds how often a log is written anew because runs end meanwhile.
const rewrites = 5

// RewriteLog writes the run log of a loop anew from its audit chain. The file
// that was there is kept beside it; that it is done is an entry of the chain
// before it is. A loop with a live run is a *loop.HeldError.
func (s *Service) RewriteLog(ctx context.Context, by loop.Actor, name string) (RunLog, error) {
	var kept string
	for n := range rewrites {
		l, err := s.RunLog(ctx, name)
		if err != nil {
			return l, err
		}
		if !l.Changed {
			l.Changed, l.Kept = n > 0, kept
			return l, nil
		}
		if err := s.notLive(ctx, l); err != nil {
			return l, err
		}
		if l.Was != "" {
			l.Kept = l.Path + ".before-" + s.ws.Now().UTC().Format("20060102T150405.000Z")
			kept = cmp.Or(kept, l.Kept)
		}
		err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
			return tx.LinkBy(ctx, by, l.Chain, loop.LinkLog, "", map[string]any{
				"verb": "rewrite", "path": l.Path, "kept": l.Kept, "before": digest(l.Was), "after": digest(l.Text),
			})
		})
		if err == nil {
			err = s.writeLog(l)
		}
		if err != nil {
			return l, fmt.Errorf("write %s anew: %w", l.Path, err)
		}
	}
	return RunLog{}, &loop.Fault{
		Exit: loop.ExitHeld, What: "write the run log of " + name + " anew", Why: "somebody writes to it again and again",
		Fix: "pause the loop, and see who writes there",
	}
}

func (s *Service) notLive(ctx context.Context, l RunLog) error {
	var run loop.Run
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		run, err = r.Live(ctx, l.Chain)
		return err
	})
	if lookup.Absent(err) {
		return nil
	}
	if err == nil {
		err = s.held(l.Loop, run)
	}
	return err
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// writeLog keeps the old file and puts the new one in its place, so that the
// name always means a complete file.
func (s *Service) writeLog(l RunLog) error {
	root, err := os.OpenRoot(s.ws.Root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := durable.MkdirAll(root, path.Dir(l.Path), 0o755); err != nil {
		return err
	}
	if l.Kept != "" {
		if err := writeNew(root, l.Kept, l.Was); err != nil {
			return err
		}
	}
	fresh := l.Path + ".new-" + digest(l.Text)[:12]
	if err := root.Remove(filepath.FromSlash(fresh)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeNew(root, fresh, l.Text); err != nil {
		return err
	}
	if err := root.Rename(filepath.FromSlash(fresh), filepath.FromSlash(l.Path)); err != nil {
		return err
	}
	return durable.SyncFolderIn(root, path.Dir(l.Path))
}

// writeNew writes and syncs a file that must not exist, so that nothing is
// written through a link.
func writeNew(root *os.Root, name, text string) error {
	file, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, durable.SyncFile(file), file.Close())
}
