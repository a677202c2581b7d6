package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// FileChange is one path that differs from the tree it is applied to.
type FileChange struct {
	Path   string // slash separated, relative to the top of the tree
	Mode   uint32 // ModeFile, ModeExec, ModeSymlink or ModeGitlink; ignored with Delete
	Delete bool
	From   string // host path of the content; empty: it is Content, or the object ID exists already
	ID     string // object name; with From, what the content must hash to, or empty

	Content []byte // of a regular file, instead of From and ID; nil: one of these has it
}

// Draft says what a candidate consists of.
type Draft struct {
	Base    string   // commit to start from, and the parent; empty for a commit without parent
	Parents []string // instead of Base; nil: Base alone
	Tree    string   // tree to start from, only without Base; empty for no files
	Changes []FileChange
	Message string
	When    time.Time // date of author and committer, to the second

	// Hold puts a ref on the commit once it is written. What git removes before
	// there is one is written again. Nil: the commit stays without a ref.
	Hold func(ctx context.Context, commit string) error
}

// Candidate is a commit that no ref points to, and its tree.
type Candidate struct{ Commit, Tree string }

// Candidate writes a commit with the changes applied, contents byte for byte.
// Deletions come before everything else, whatever their place in the list, and
// deleting what is not there does nothing; deleting a folder deletes what is in
// it. No tree or commit is written if a file no longer hashes to its ID. Only
// the folders on the way to the changed paths are read and written. Without Hold
// the objects are unreferenced until UpdateRef names the commit.
func (s Store) Candidate(ctx context.Context, d Draft) (c Candidate, err error) {
	err = s.checkDraft(d)
	if err == nil {
		c, err = s.writeCandidate(ctx, d)
	}
	if err != nil {
		return Candidate{}, fmt.Errorf("write candidate: %w", err)
	}
	return c, nil
}

func (s Store) writeCandidate(ctx context.Context, d Draft) (c Candidate, err error) {
	blobs, err := s.Blobs(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	start, err := blobs.baseTree(d)
	if err != nil {
		return c, err
	}
	if err := blobs.checkContents(d.Changes); err != nil {
		return c, err
	}
	p := &pack{store: s}
	changes, err := p.addContents(ctx, d.Changes)
	if err != nil {
		return c, err
	}
	if c.Tree, err = blobs.editTree(start, changes, p); err != nil {
		return c, err
	}
	parents := d.Parents
	if parents == nil && d.Base != "" {
		parents = []string{d.Base}
	}
	c.Commit = p.addObject("commit", commitText(c.Tree, parents, d.Message, d.When))
	if err := p.write(ctx, blobs); err != nil {
		return Candidate{}, err
	}
	if d.Hold == nil {
		return c, blobs.checkWritten(c)
	}
	if err := d.Hold(ctx, c.Commit); err != nil {
		return Candidate{}, err
	}
	whole, err := blobs.hasAll(p)
	if err == nil && !whole {
		err = p.write(ctx, blobs) // Garbage was collected before the ref was there.
	}
	if err != nil {
		return Candidate{}, err
	}
	return c, blobs.checkWritten(c)
}

// hasAll reports whether git has all objects of a pack.
func (b *Blobs) hasAll(p *pack) (bool, error) {
	ids := make([]string, len(p.list))
	for i, o := range p.list {
		ids[i] = o.id
	}
	found, err := b.Resolve(ids...)
	return !slices.Contains(found, Object{}), err
}

// baseTree is the tree that the changes are applied to; empty for no files.
func (b *Blobs) baseTree(d Draft) (string, error) {
	name, kind := d.Base, "commit"
	if d.Base == "" {
		name, kind = d.Tree, "tree"
	}
	if name == "" {
		return "", nil
	}
	found, err := b.Resolve(name, name+"^{tree}")
	switch {
	case err != nil:
		return "", err
	case found[0].ID == "":
		return "", fmt.Errorf("%s %s: %w", kind, name, loop.ErrNotFound)
	case found[0].Kind != kind || found[1].Kind != "tree":
		return "", fmt.Errorf("object %s is a %s, not a %s", name, found[0].Kind, kind)
	}
	return found[1].ID, nil
}

// checkContents refuses changes that name a content which is not there.
func (b *Blobs) checkContents(changes []FileChange) error {
	var ids []string
	for _, c := range changes {
		if !c.Delete && c.From == "" && c.Content == nil && c.Mode != ModeGitlink {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := b.Resolve(ids...)
	if err != nil {
		return err
	}
	for i, o := range found {
		switch o.Kind {
		case "blob":
		case "":
			return fmt.Errorf("content %s: %w", ids[i], loop.ErrNotFound)
		default:
			return fmt.Errorf("content %s is a %s", ids[i], o.Kind)
		}
	}
	return nil
}

// checkWritten asks git whether it has what it was given, under the names that
// were worked out here.
func (b *Blobs) checkWritten(c Candidate) error {
	found, err := b.Resolve(c.Commit, c.Tree)
	if err == nil && (found[0].Kind != "commit" || found[1].Kind != "tree") {
		err = fmt.Errorf("git has not written the commit %s with the tree %s", c.Commit, c.Tree)
	}
	return err
}

// Commit writes a commit of an existing tree and returns its name. No ref points to it.
// The message is cleaned by CleanMessage.
func (s Store) Commit(ctx context.Context, tree string, parents []string, message string, when time.Time) (id string, err error) {
	id, err = s.writeCommit(ctx, tree, parents, message, when)
	if err != nil {
		return "", fmt.Errorf("commit tree %s: %w", tree, err)
	}
	return id, nil
}

func (s Store) writeCommit(ctx context.Context, tree string, parents []string, message string, when time.Time) (id string, err error) {
	named := append([]string{tree}, parents...)
	for _, id := range named {
		if err := s.Format.Check(id); err != nil {
			return "", err
		}
	}
	blobs, err := s.Blobs(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	found, err := blobs.Resolve(named...)
	if err != nil {
		return "", err
	}
	want := "tree"
	for i, o := range found {
		if o.Kind != want {
			return "", fmt.Errorf("there is no %s %s: %w", want, named[i], loop.ErrNotFound)
		}
		want = "commit"
	}
	p := &pack{store: s}
	id = p.addObject("commit", commitText(tree, parents, message, when))
	return id, p.write(ctx, blobs)
}

func commitText(tree string, parents []string, message string, when time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, parent := range parents {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	who := fmt.Sprintf("%s <%s> %d +0000", program.AuthorName, program.AuthorEmail, unixSeconds(when))
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", who, who, CleanMessage(message))
	return b.Bytes()
}

func (s Store) checkDraft(d Draft) error {
	for _, id := range append([]string{d.Base, d.Tree}, d.Parents...) {
		if id == "" {
			continue
		}
		if err := s.Format.Check(id); err != nil {
			return err
		}
	}
	for _, c := range d.Changes {
		if err := s.checkChange(c); err != nil {
			return err
		}
	}
	return nil
}

func (s Store) checkChange(c FileChange) error {
	if err := CheckPath(c.Path); err != nil || c.Delete {
		return err
	}
	switch c.Mode {
	case ModeFile, ModeExec, ModeSymlink:
	case ModeGitlink:
		if c.From != "" {
			return fmt.Errorf("path %q: a submodule has no content", c.Path)
		}
	default:
		return fmt.Errorf("path %q has the mode %o", c.Path, c.Mode)
	}
	if c.Content != nil {
		if c.From != "" || c.ID != "" || c.Mode != ModeFile && c.Mode != ModeExec {
			return fmt.Errorf("path %q: its content is given twice, or is not that of a regular file", c.Path)
		}
		return nil
	}
	if c.From == "" || c.ID != "" {
		return s.Format.Check(c.ID)
	}
	return nil
}
