// Package bootdef makes the loop of a workspace that follows the boot protocol: it
// reads AGENT_LINK.md, and completes the loop's definition with what that file says.
//
// It reads the link and where its paths lead, and nothing else: neither the boot
// repository nor the memory. It writes nothing.
package bootdef

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/ground/safeopen"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Name is that of the loop.
const Name = "boot"

// LinkFile is the file at the top of a workspace that makes the loop.
const LinkFile = "AGENT_LINK.md"

// Link is an AGENT_LINK.md as it was found.
type Link struct {
	bootlink.Link

	Source   []byte
	Findings []bootlink.Finding // the link must not be used if there is one
}

// Read reads the AGENT_LINK.md of the workspace at root. The error is a *loop.Fault with
// exit status 3, which wraps loop.ErrNotFound, or 4.
func Read(root string) (Link, error) {
	src, err := readBounded(filepath.Join(root, LinkFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Link{}, MissingFault(root)
	}
	if err != nil {
		return Link{}, &loop.Fault{
			Exit: loop.ExitUnreadable, What: LinkFile + " cannot be read", Why: err.Error(), Fix: "put a regular, readable file there", Err: err,
		}
	}
	l := Link{Source: src}
	l.Link, l.Findings = bootlink.ParseLink(src)
	if len(l.Findings) == 0 {
		l.Findings = append(l.findGlobs(), l.findEscapes(root)...)
	}
	return l, nil
}

// MissingFault is the error for a workspace without an AGENT_LINK.md.
func MissingFault(root string) *loop.Fault {
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: "the loop boot cannot run", Why: "there is no " + LinkFile + " in " + root, Err: loop.ErrNotFound,
		Fix:     "make it: {1}; if another branch has it, check that branch out",
		Actions: []loop.Command{loop.PawlCommand("boot init").WithFlag("boot", "REPOSITORY@REF").WithBlanks("REPOSITORY@REF")},
	}
}

func readBounded(name string) ([]byte, error) {
	f, _, err := safeopen.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than allowed tells ParseLink that the file is too large.
	return io.ReadAll(io.LimitReader(f, bootlink.MaxBytes+1))
}

// Fault returns the *loop.Fault of a link that must not be used, with every finding and
// its place; nil if it may be used.
func (l Link) Fault() error {
	if len(l.Findings) == 0 {
		return nil
	}
	f := &loop.Fault{Exit: loop.ExitUnreadable, What: LinkFile + " cannot be used", Fix: "correct it; {1} says whether it is in order", Actions: []loop.Command{loop.PawlCommand("boot check")}}
	lines := make([]string, len(l.Findings))
	for i, finding := range l.Findings {
		lines[i] = LinkFile + ":" + finding.String() + " (" + string(finding.Reason) + ")"
		if finding.Reason == loop.ReasonLinkOlder {
			f.Fix, f.Actions = "{1} shows what it would change", []loop.Command{loop.PawlCommand("boot migrate")}
		}
	}
	f.Why = strings.Join(lines, "\n")
	return f
}

// Paths are the files of the memory.
func (l Link) Paths() []string { return []string{l.State, l.Tasks, l.Changelog} }

// findGlobs reports paths that would mean others as globs of a scope.
func (l Link) findGlobs() (found []bootlink.Finding) {
	for _, name := range append(l.Paths(), l.Directories...) {
		if strings.ContainsAny(name, "*?[]{}!") {
			found = append(found, l.finding(name, "has a character of a pattern (* ? [ ] { } !); rename it"))
		}
	}
	return found
}

// findEscapes reports paths that symbolic links lead out of the workspace.
func (l Link) findEscapes(root string) (found []bootlink.Finding) {
	top, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil // Whoever opens the workspace says so.
	}
	for _, name := range append(l.Paths(), l.Directories...) {
		at := top
		for part := range strings.SplitSeq(path.Clean(name), "/") {
			at = filepath.Join(at, part)
			info, err := os.Lstat(at)
			if err != nil {
				break // What is not there leads nowhere.
			}
			if info.Mode()&fs.ModeSymlink == 0 {
				continue
			}
			if at, err = filepath.EvalSymlinks(at); err != nil || at != top && !strings.HasPrefix(at, top+string(filepath.Separator)) {
				found = append(found, l.finding(name, "leads out of the workspace by a symbolic link; put a real file or directory there"))
				break
			}
		}
	}
	return found
}

// finding is one about a path.
func (l Link) finding(name, problem string) bootlink.Finding {
	f := bootlink.Finding{Reason: loop.ReasonLinkMalformed, Message: readiness.Quote(name) + " " + problem}
	f.Line, f.Column = l.Place(name)
	return f
}

// Place returns where a value is written in a table of the link, from 1; the beginning of
// the file if it is not.
func (l Link) Place(value string) (line, column int) {
	for text := range bytes.Lines(l.Source) {
		line++
		column = 1
		for i, cell := range strings.Split(string(text), "|") {
			if i > 0 && strings.Trim(cell, " \t\r\n`") == value {
				return line, column + utf8.RuneCountInString(cell[:strings.Index(cell, value)])
			}
			column += utf8.RuneCountInString(cell) + 1
		}
	}
	return 1, 1
}

// Document returns the definition of the loop: the text of its loop.config.yaml, which may
// be empty, completed by what the link and the protocol say. File is what errors call
// the text. The link must not have findings.
//
// The directories of the link and the files of the memory are in the scope, beside what
// the text adds; scratch/ is not, and the link itself is protected.
func (l Link) Document(file string, text []byte) (*definition.Document, error) {
	doc := &definition.Document{}
	if len(bytes.TrimSpace(text)) > 0 {
		var err error
		if doc, err = definition.Parse(file, text); err != nil {
			return nil, err
		}
	}
	if at, said := doc.Scalar("protocol"); said && at.Text != loop.ProtocolBoot {
		f := readiness.Finding{
			Severity: readiness.SeverityError, Key: "protocol", Line: at.Line, Column: at.Column,
			Message: "protocol: " + readiness.Quote(at.Text) + " is not that of a workspace with " + LinkFile + "; remove the key, or rename the loop's folder",
		}
		return nil, &loop.Fault{Exit: loop.ExitNotReady, What: Name + " is not ready to run", Why: f.Render(file, text), Fix: "correct " + file}
	}
	doc.Default("name", Name)
	doc.OfFormat(loop.ProtocolBoot)
	doc.Default("pattern", "custom")
	doc.Default("tier", string(loop.TierAssisted))
	doc.Default("goal", "Work on one task of "+l.Tasks+" at a time, by the rules of the boot repository.")
	doc.Default("permission_mode", permissionMode(doc))
	doc.Default("worktree", "true")
	doc.Default("escalation", "what the rules or the stop lines of the boot repository leave to a person, and whatever needs a change outside of the scope or the sandbox")
	doc.Default("kill_switch", ".loops/"+Name+"/PAUSED exists")
	doc.MakeOptional("cadence", "budget_tokens", "verify", "guard", "land_via")
	doc.Include("scope", l.scope()...)
	doc.Include("protect", LinkFile)
	return doc, nil
}

// permissionMode is the one that fits the tier, as a new loop has it.
func permissionMode(doc *definition.Document) string {
	if tier, _ := doc.Scalar("tier"); tier.Text == string(loop.TierUnattended) {
		return "bypassPermissions"
	}
	return "dontAsk"
}

func (l Link) scope() []string {
	var globs []string
	for _, dir := range l.Directories {
		if dir != bootlink.Scratch && !strings.HasPrefix(dir, bootlink.Scratch) {
			globs = append(globs, dir+"**")
		}
	}
	return append(globs, l.Paths()...)
}
