package format

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Files finds and reads the definitions of a format's loops in a workspace. Its methods may
// be called concurrently, and open nothing but what Read needs.
type Files interface {
	// Find finds the definitions of all loops, sorted by name. A folder that cannot be listed
	// is an error, a *loop.Fault.
	Find(root string) ([]Source, error)
	// FindNamed finds that of the loop with this name, which is the name of a file.
	FindNamed(root, name string) (s Source, found bool, err error)
	// Read reads the files of a loop. The error is a *loop.Fault; it wraps loop.ErrNotFound if
	// they are missing.
	Read(root string, s Source) (Text, error)
	// Missing is the error for a loop whose files are not there any more.
	Missing(root, name string) *loop.Fault
	// Place says where the format has its loops.
	Place() Place
}

// Place says where a format has its loops.
type Place struct {
	Name  string   // the only one that a loop of the format has; empty: any
	Marks []string // files at the top of a folder that make it a workspace
	// Elsewhere says, after "which", why a loop.config.yaml of .loops cannot make a loop of the
	// format; empty: it can.
	Elsewhere string
}

// Source is what defines a loop, not opened.
type Source struct {
	Name   string // of the loop
	Format string
	File   string // that makes the loop, relative to the workspace
	Config string // that has its keys, relative to the workspace; empty: File has them
	Infos  Infos  // of all files that the definition depends on
}

// Edited is the file in which the keys of the loop are changed.
func (s Source) Edited() string { return cmp.Or(s.Config, s.File) }

// Compare orders sources as loops are listed: by name, then by format, byte by byte.
func (s Source) Compare(other Source) int {
	return cmp.Or(strings.Compare(s.Name, other.Name), strings.Compare(s.Format, other.Format))
}

// Text is what the files of a loop say.
type Text struct {
	File string // what messages call the text
	Body []byte // of the file, in which findings have their places
	Rest []byte // what else the definition depends on, or a digest of it
	// Document is the definition that a body makes, with all that the format adds to it. File
	// is what messages call the body.
	Document func(file string, body []byte) (*definition.Document, error)
}

// Infos are what is known of files without opening them, always in the same order; nil for
// each that is missing.
type Infos []fs.FileInfo

// Lstat looks at files. Links are not followed.
func Lstat(root string, names ...string) Infos {
	infos := make(Infos, len(names))
	for i, name := range names {
		if info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name))); err == nil {
			infos[i] = info
		}
	}
	return infos
}

// Exist reports whether one of the files is there.
func (l Infos) Exist() bool {
	return slices.ContainsFunc(l, func(i fs.FileInfo) bool { return i != nil })
}

// Same reports whether the files are as they were.
func (l Infos) Same(was Infos) bool {
	return slices.EqualFunc(l, was, func(a, b fs.FileInfo) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
	})
}

// settleTime is the least age of a file that is cached. Clocks of file systems are
// coarse: a younger file may be written again without a new time.
const settleTime = 2 * time.Second

// Settled reports whether the files would show by their times that they were written again.
func (l Infos) Settled(now time.Time) bool {
	return !slices.ContainsFunc(l, func(i fs.FileInfo) bool {
		return i != nil && (!i.Mode().IsRegular() || now.Sub(i.ModTime()) < settleTime)
	})
}

// withFiles yields the formats whose loops are defined by files.
func (l List) withFiles(yield func(Format) bool) {
	for _, f := range l {
		if f.Files != nil && !yield(f) {
			return
		}
	}
}

// Find finds the definitions of all loops, in the order of a listing.
func (l List) Find(root string) ([]Source, error) {
	var all []Source
	for f := range l.withFiles {
		found, err := f.Files.Find(root)
		if err != nil {
			return all, err
		}
		if all == nil {
			all = found
		} else if len(found) > 0 {
			all = append(all, found...)
			slices.SortFunc(all, Source.Compare)
		}
	}
	return all, nil
}

// FindNamed finds the definitions of the loops with that name, in the order of a listing.
func (l List) FindNamed(root, name string) ([]Source, error) {
	if name == "." || name == ".." || filepath.Base(name) != name {
		return nil, nil
	}
	var all []Source
	for f := range l.withFiles {
		s, found, err := f.Files.FindNamed(root, name)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, Source.Compare)
	return all, nil
}

// Defines reports whether a file defines a loop.
func (l List) Defines(root, name, format string) bool {
	all, _ := l.FindNamed(root, name) // What cannot be listed defines nothing.
	return slices.ContainsFunc(all, func(s Source) bool { return s.Format == format })
}

// MissingNamed is the error for a name that only one loop of a format can have, and that no
// file defines; nil if it is no such name.
func (l List) MissingNamed(root, name string) error {
	for f := range l.withFiles {
		if only := f.Files.Place().Name; only != "" && (name == only || name == f.Name+":"+only) {
			return f.Files.Missing(root, only)
		}
	}
	return nil
}

// OnlyNames lists the names of loops of formats that have no more than one.
func (l List) OnlyNames() (names []string) {
	for f := range l.withFiles {
		if only := f.Files.Place().Name; only != "" {
			names = append(names, only)
		}
	}
	return names
}

// Marks lists the files at the top of a folder that make it a workspace.
func (l List) Marks() (marks []string) {
	for f := range l.withFiles {
		marks = append(marks, f.Files.Place().Marks...)
	}
	return marks
}

// Names returns the names of the loops that files define, sorted.
func (l List) Names(root string) ([]string, error) {
	all, err := l.Find(root)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return slices.Compact(names), err
}

// Load reads the definition of the loop with that name. Findings with which the loop still
// runs are warnings. If there is any other, the error is a *loop.Fault and def has what could
// be read.
func (l List) Load(root, name string) (def loop.Definition, warnings []string, err error) {
	all, err := l.FindNamed(root, name)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	if len(all) == 0 {
		return loop.Definition{}, nil, definition.MissingFault(name)
	}
	return l.load(root, all[0])
}

// LoadAs is Load of the loop of that format. It reports false if no file has a definition
// with which it can run.
func (l List) LoadAs(root, name, format string) (loop.Definition, bool) {
	all, err := l.FindNamed(root, name)
	at := slices.IndexFunc(all, func(s Source) bool { return s.Format == format })
	if err != nil || at < 0 {
		return loop.Definition{}, false
	}
	def, _, err := l.load(root, all[at])
	return def, err == nil
}

func (l List) load(root string, s Source) (loop.Definition, []string, error) {
	text, err := l.Of(s.Format).Files.Read(root, s)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	return l.Parse(s, text)
}

// Parse is Load for files that were read.
func (l List) Parse(s Source, text Text) (def loop.Definition, warnings []string, err error) {
	doc, err := text.Document(text.File, text.Body)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	def, warnings, err = convert(doc, text.File, s.Name, text.Body)
	if problem := l.Elsewhere(def.Protocol); err == nil && def.Protocol != s.Format && problem != "" {
		err = &loop.Fault{
			Exit: loop.ExitNotReady, What: s.Name + " is not ready to run", Why: text.File + " says " + problem, Fix: "remove the key",
		}
	}
	return def, warnings, err
}

// Elsewhere says what is wrong with a protocol in a loop.config.yaml of .loops that has no
// effect there; empty if nothing is.
func (l List) Elsewhere(protocol string) string {
	if f := l.Of(protocol); f.Files != nil && f.Files.Place().Elsewhere != "" {
		return "protocol: " + protocol + ", which " + f.Files.Place().Elsewhere
	}
	return ""
}

// LoadFile is Load of a file wherever it lies, of a loop with that name.
func LoadFile(path, name string) (def loop.Definition, warnings []string, err error) {
	doc, text, err := definition.Load(path)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	return convert(doc, path, name, text)
}

// convert makes the definition of a loop. Messages call its text file.
func convert(doc *definition.Document, file, name string, text []byte) (def loop.Definition, warnings []string, err error) {
	def, findings := doc.Definition(name)
	if doc.Notice != "" {
		warnings = append(warnings, doc.Notice)
	}
	var problems []string
	for _, f := range findings {
		said := f.Render(file, text)
		if f.Severity == readiness.SeverityError {
			problems = append(problems, said)
			continue
		}
		warnings = append(warnings, said)
	}
	if len(problems) > 0 {
		err = &loop.Fault{
			Exit: loop.ExitNotReady, What: name + " is not ready to run", Why: strings.Join(problems, "\n"), Fix: "correct " + file,
		}
	}
	return def, warnings, err
}

// Unlistable is the error for a folder of definitions that cannot be listed; nil if it is
// only missing.
func Unlistable(what string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &loop.Fault{Exit: loop.ExitUnreadable, What: what, Why: err.Error(), Err: err, Fix: "put a readable folder there, or nothing"}
}
