package listen

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	settleTime      = 300 * time.Millisecond // without a change, after which it is looked what has changed
	burstTime       = 2 * time.Second        // after which it is looked although changes go on
	mostDefinitions = 1000                   // folders of definitions of one checkout that are watched
	mostDirs        = 4096                   // folders of this node that are watched; others are only looked at again and again
	// restShare is how many times as long as it took a look at files has to be in the past
	// before the next one, so that a checkout in which programs build costs little.
	restShare = 20
)

// noFiles is what a source says whose files changed while nobody looked at them.
const noFiles = "files were created, changed or removed while nobody looked"

// filewatch watches files. It is for one goroutine.
type filewatch struct {
	*Listener

	notify  *fsnotify.Watcher // nil: the system lends none
	dirs    map[string]bool   // that are watched
	before  map[string]files  // by workspace: as they were last looked at
	globs   map[string][]string
	looked  time.Time
	took    time.Duration
	crowded bool // more folders could be watched than are
	reloads bool // the file of a definition has changed
}

// watchFiles looks at files when the system says that they have changed, and again and
// again. It also sees that definitions have changed, and that a kill switch was cleared.
func (n *Listener) watchFiles(ctx context.Context, fresh signal) {
	w := &filewatch{Listener: n, dirs: map[string]bool{}, before: map[string]files{}, globs: map[string][]string{}}
	var events chan fsnotify.Event
	var errs chan error
	if notify, err := fsnotify.NewWatcher(); err != nil {
		n.Log.InfoContext(ctx, "files are only looked at now and then", slog.String("error", err.Error()))
	} else {
		defer func() { _ = notify.Close() }()
		w.notify, events, errs = notify, notify.Events, notify.Errors
	}
	const never = time.Duration(1<<63 - 1)
	timer := time.NewTimer(never)
	defer timer.Stop()
	var first time.Time // of the changes that nobody has looked at yet
	due := func(at time.Time) {
		if first.IsZero() {
			first = at
		}
		wait := max(min(settleTime, first.Add(burstTime).Sub(at)), w.looked.Add(restShare*w.took).Sub(at), 0)
		timer.Reset(wait)
	}
	look := func() {
		if w.look(ctx) { // What changed before a folder was watched was not told.
			due(w.looked)
		}
	}
	rescan := time.NewTicker(rescanGap)
	defer rescan.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-fresh: // Which loops listen was read again.
			look()
		case <-rescan.C:
			look()
		case <-timer.C:
			first = time.Time{}
			if w.reloads {
				w.reloads = false
				w.Reload()
			}
			look()
		case <-errs: // Some changes were not told.
			due(n.Now())
		case e := <-events:
			if w.isNews(e) {
				due(n.Now())
			}
		}
	}
}

// isNews reports whether a change may concern a file of a loop, and tells what it says of
// definitions and switches.
func (w *filewatch) isNews(e fsnotify.Event) bool {
	name, dir := filepath.Base(e.Name), filepath.Dir(e.Name)
	delete(w.dirs, e.Name) // If it was a folder it is another one now.
	if filepath.Base(dir) == ".loops" || filepath.Base(filepath.Dir(dir)) == ".loops" {
		switch {
		case name == "PAUSED":
			w.Wake()
		case name == "loop.config.yaml", filepath.Base(dir) == ".loops":
			w.reloads = true
			return true
		}
		return false
	}
	return !isIgnored(name) && e.Op != fsnotify.Chmod
}

// look looks at all files of all loops that listen to some. It reports whether more folders
// are watched than before.
func (w *filewatch) look(ctx context.Context) (more bool) {
	began := w.Now()
	watched := map[string]bool{}
	listens := w.listens(loop.OnFile)
	for _, p := range w.Places() {
		if ctx.Err() != nil {
			return false
		}
		for _, dir := range definitionDirs(p.Root) {
			watched[dir] = true
		}
		var here []listening
		var globs []string
		for _, s := range listens {
			if s.WorkspaceID == p.ID {
				here, globs = append(here, s), append(globs, s.on.What)
			}
		}
		if len(here) == 0 {
			delete(w.before, p.ID)
			continue
		}
		found, err := scan(p.Root, globs)
		for _, dir := range found.dirs {
			watched[dir] = true
		}
		w.recordFiles(ctx, p, here, globs, found.files, err)
	}
	more = w.watch(ctx, watched)
	w.looked = w.Now()
	w.took = w.looked.Sub(began)
	return more
}

// recordFiles records which files of a workspace look otherwise than before.
func (w *filewatch) recordFiles(ctx context.Context, p Place, here []listening, globs []string, found files, err error) {
	before, known := w.before[p.ID]
	for _, s := range here {
		failed := err
		if failed == nil {
			now := found.of(s.on.What)
			was := before.of(s.on.What)
			failed = w.record(ctx, s, func(state string, seenBefore bool) seen {
				payload := now.changes(was)
				if !known || !slices.Contains(w.globs[p.ID], s.on.What) || payload == "" {
					payload = noFiles
				}
				look := seen{before: state, known: seenBefore, now: now.digest(), payload: payload, quiet: !seenBefore}
				if inbox := w.Formats.Of(s.Protocol).Inbox; inbox != nil && s.on.What == inbox.File(s.Name) {
					look.payload = urgentEntries(inbox, p.Root, s.on.What)
					look.quiet = look.payload == ""
				}
				return look
			})
		}
		if ctx.Err() == nil {
			w.Tell(s.Loop, s.subject(), failed)
		}
		if failed != nil {
			err = failed // What was not recorded is compared again.
		}
	}
	if err == nil {
		w.before[p.ID], w.globs[p.ID] = found, globs
	}
}

// urgentEntries lists the urgent entries that wait in an inbox, one a line: no other change of
// it fires its loop.
func urgentEntries(inbox *format.Inbox, root, name string) string {
	file, err := projection.ReadFile(filepath.Join(root, filepath.FromSlash(name)), projection.MaxFile)
	if err != nil {
		return ""
	}
	return strings.Join(inbox.Urgent(file.Content), "\n")
}

// watch makes the system tell of changes in these folders and in no others. It reports
// whether one was added.
func (w *filewatch) watch(ctx context.Context, wanted map[string]bool) (added bool) {
	if w.notify == nil {
		return false
	}
	for dir := range w.dirs {
		if !wanted[dir] {
			_ = w.notify.Remove(dir) // It may be gone.
			delete(w.dirs, dir)
		}
	}
	refused := 0
	for dir := range wanted {
		switch {
		case w.dirs[dir]:
		case len(w.dirs) >= mostDirs:
			refused++
		default:
			if err := w.notify.Add(dir); err != nil {
				refused++
				continue
			}
			w.dirs[dir], added = true, true
		}
	}
	if crowded := refused > 0; crowded != w.crowded {
		w.crowded = crowded
		w.Log.InfoContext(ctx, "folders are only looked at now and then", slog.Int("folders", refused))
	}
	return added
}

// definitionDirs lists the folders in which definitions are.
func definitionDirs(root string) []string {
	top := filepath.Join(root, ".loops")
	folder, err := os.Open(top)
	if err != nil {
		return []string{root} // One may be made.
	}
	defer func() { _ = folder.Close() }()
	entries, _ := folder.ReadDir(mostDefinitions) // What cannot be listed is looked at now and then.
	dirs := []string{top}
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(top, e.Name()))
		}
	}
	return dirs
}
