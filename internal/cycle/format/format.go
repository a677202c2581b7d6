// Package format declares what a format of loops is: a name, the files in which its loops are
// defined, the protocol by which a run of it goes, and what else of a workspace is its own.
//
// Each format is a value of its folder in internal/formats; the program lists them once. The
// package knows none of them, and writes nothing.
package format

import (
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Format is one way in which loops are kept. Of everything but Name and Protocol the zero
// value means that the format has nothing of the kind.
type Format struct {
	Name     string          // of its protocol in rows, and before the colon of a loop's full name
	Protocol engine.Protocol // how a run of it goes

	Files    Files                                       // where its loops are defined; nil: only the store has them
	Readable func(files engine.Files, loop string) error // why the memory of a loop cannot be read before it runs
	Memory   func(root string) []string                  // files and folders beside .loops that its runs write, relative to the workspace
	KeepsLog bool                                        // run-log.md of the loop's folder has a line for each run

	// New returns the files of a new loop, in the order in which they should be written: the
	// last one makes the folder a loop.
	New   func(LoopRequest) ([]NewFile, error)
	Inbox *Inbox    // where a loop is asked for something
	Tasks *TaskFile // what other formats can take over
	Goals *Goals    // how loops are made that need no file

	// HasStep returns nil if a run can work on a step of which the loop has no row yet, and
	// loop.ErrNotFound if there is none with this key.
	HasStep func(ctx context.Context, r *store.Reader, workspaceID, key string) error
	// NoRepeat says why a run of the loop with this name cannot be done once more; nil: it can.
	NoRepeat func(name string, run loop.Run) *loop.Fault
}

// Inbox is a file of each loop of which only urgent entries fire the loop.
type Inbox struct {
	File   func(loop string) string      // relative to the workspace, with slashes
	Urgent func(content string) []string // the urgent entries that wait, one line each
}

// TaskFile is a file with tasks.
type TaskFile struct {
	Name  string // of the file
	Dir   string // has a folder with such a file for each agent
	Parse func(text string) ([]loop.ListedTask, []readiness.Finding)
}

// Goals makes definitions of loops that have a goal and no file.
type Goals struct {
	// Until is the definition of a loop that works until a command passes.
	Until func(command, name string, scope []string) loop.Definition
	// IsUntil reports whether a definition is one of Until.
	IsUntil func(loop.Definition) bool
	// Review is the definition of a loop that runs a command once and shows what it left to a
	// gate.
	Review func(name, goal, command string, gate loop.Gate) loop.Definition
}

// List is the formats that this program has.
type List []Format

// Of returns the format with a name, or the zero Format if the name is unknown.
func (l List) Of(name string) Format {
	return l.first(func(f Format) bool { return f.Name == name })
}

func (l List) first(fits func(Format) bool) Format {
	if i := slices.IndexFunc(l, fits); i >= 0 {
		return l[i]
	}
	return Format{}
}

// Protocol returns the protocol of a format, or nil if the name is unknown.
func (l List) Protocol(name string) engine.Protocol { return l.Of(name).Protocol }

// ByFile reports whether files of the workspace define the loops of a format.
func (l List) ByFile(name string) bool { return l.Of(name).Files != nil }

// New returns the files of a new loop in .loops. A format of the list must have New.
func (l List) New(r LoopRequest) ([]NewFile, error) {
	return l.first(func(f Format) bool { return f.New != nil }).New(r)
}

// Tasks returns the file of tasks that can be taken over. A format of the list must have one.
func (l List) Tasks() TaskFile {
	return *l.first(func(f Format) bool { return f.Tasks != nil }).Tasks
}

// Goals returns the format whose loops need no file. A format of the list must have Goals.
func (l List) Goals() Format {
	return l.first(func(f Format) bool { return f.Goals != nil })
}
