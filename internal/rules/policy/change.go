package policy

import (
	"fmt"
	"strings"
)

// Limits of one candidate, where Limits says nothing else.
const (
	MaxFiles = 100         // changed, added and deleted files
	MaxBytes = 1_024 << 10 // of changed content
)

// Limits bound one candidate. The zero Limits are MaxFiles and MaxBytes, no file
// may become executable, and new names are such as Windows can hold.
type Limits struct {
	Files     int
	Bytes     int64
	AllowExec bool // new executables, and files that become one
	AnyNames  bool // new names that Windows cannot hold
	NoDelete  bool // files of the base may not be deleted
}

func (l Limits) withDefaults() Limits {
	if l.Files <= 0 {
		l.Files = MaxFiles
	}
	if l.Bytes <= 0 {
		l.Bytes = MaxBytes
	}
	return l
}

// The modes that git gives to files.
const (
	modeFile    = 0o100644
	modeExec    = 0o100755
	modeSymlink = 0o120000
	modeGitlink = 0o160000
)

// File is one side of a change. The zero File does not exist.
type File struct {
	Mode uint32 // as git writes it; 0 if the file does not exist
	Size int64  // of the content, in bytes
	Text string // all of the content, or empty if the caller has not read it
}

func (f File) exists() bool { return f.Mode != 0 }

// read reports whether all of the content is known.
func (f File) read() bool { return int64(len(f.Text)) == f.Size }

// Change is one path that differs between the base and the candidate.
type Change struct {
	Path string
	Old  File
	New  File
}

// Check returns everything for which a candidate is refused: paths by Judge,
// kinds of files, collisions, and what is over the limits. Beside are paths of
// the base among which a changed one may collide: at least the files, and the
// folders with a file that is not deleted, of each folder that a changed path
// is in; with all paths of the base the verdicts are the same. Nothing returned
// means that the candidate may go to the gates.
func (s Scope) Check(changes []Change, beside []string, limits Limits) []Verdict {
	limits = limits.withDefaults()
	if over := tooMuch(changes, limits); over.Rule != "" {
		return []Verdict{over} // A list without bounds is not worth a look.
	}
	var refused []Verdict
	for _, c := range changes {
		if v := s.Judge(c.Path); !v.Allowed {
			refused = append(refused, v)
		}
		if limits.NoDelete && c.Old.exists() && !c.New.exists() {
			refused = append(refused, Verdict{Path: c.Path, Code: CodeDeletion, Rule: "files that were there before are not deleted (no destructive actions)"})
		}
		if code, why := kindProblem(c, limits.AllowExec); why != "" {
			refused = append(refused, Verdict{Path: c.Path, Code: code, Rule: why})
		}
	}
	if !limits.AnyNames {
		refused = append(refused, refuseUnportable(changes, beside)...)
	}
	return append(refused, Collisions(pathsAfter(changes, beside))...)
}

// pathsAfter returns the changed paths that exist after a change, and what else does.
func pathsAfter(changes []Change, beside []string) (changed, all []string) {
	gone := map[string]bool{}
	for _, c := range changes {
		if c.New.exists() {
			changed = append(changed, c.Path)
		} else {
			gone[c.Path] = true
		}
	}
	for _, name := range beside {
		if !gone[name] {
			all = append(all, name)
		}
	}
	return changed, all
}

// kindProblem says why a change from one kind of file to another is refused,
// or nothing.
func kindProblem(c Change, allowExec bool) (Code, string) {
	old, now := c.Old.Mode, c.New.Mode
	switch {
	case old == modeGitlink || now == modeGitlink:
		return CodeGitlink, "submodules are never changed"
	case now == modeSymlink && old == modeFile, now == modeSymlink && old == modeExec:
		return CodeSymlink, "a file becomes a symbolic link"
	case now == modeSymlink:
		return CodeSymlink, "symbolic links are not added and lead nowhere else"
	case now == modeExec && old != modeExec && !allowExec:
		return CodeExecBit, fmt.Sprintf("mode %s → %o; only allow_exec lets a file become executable", modeText(old), now)
	case now != 0 && now != modeFile && now != modeExec:
		return CodeMode, fmt.Sprintf("mode %o is not one that a file can have", now)
	}
	return "", ""
}

func modeText(mode uint32) string {
	if mode == 0 {
		return "none"
	}
	return fmt.Sprintf("%o", mode)
}

// tooMuch names the first path over a limit.
func tooMuch(changes []Change, limits Limits) Verdict {
	var total int64
	for i, c := range changes {
		if i == limits.Files {
			return Verdict{Path: c.Path, Code: CodePatchSize, Rule: fmt.Sprintf("max_files: %d files changed, %d are allowed", len(changes), limits.Files)}
		}
		size := changedBytes(c)
		if size < 0 || size > limits.Bytes-total {
			return Verdict{Path: c.Path, Code: CodePatchSize, Rule: fmt.Sprintf("max_bytes: more than %d KB of changed content", limits.Bytes>>10)}
		}
		total += size
	}
	return Verdict{}
}

// changedBytes is the size of the lines that are new. Of content that was not
// read it is all of it.
func changedBytes(c Change) int64 {
	if !c.New.exists() {
		return 0
	}
	if !c.New.read() || !c.Old.read() || c.Old.Size == 0 {
		return c.New.Size
	}
	var size int64
	for _, line := range addedLines(c.Old.Text, c.New.Text) {
		size += int64(len(line))
	}
	return size
}

// addedLines are the lines of text that old does not have, as often as there
// are more of them, in their order and with their ends.
func addedLines(old, text string) []string {
	had := map[string]int{}
	for line := range strings.Lines(old) {
		had[line]++
	}
	var added []string
	for line := range strings.Lines(text) {
		if had[line]--; had[line] < 0 {
			added = append(added, line)
		}
	}
	return added
}
