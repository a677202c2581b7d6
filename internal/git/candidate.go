package git

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// FileChange is one path that differs from the tree it is applied to.
type FileChange struct {
	Path   string // slash separated, relative to the top of the tree
	Mode   uint32 // ModeFile, ModeExec, ModeSymlink or ModeGitlink; ignored with Delete
	Delete bool
	From   string // host path of the content; empty: the object ID exists already
	ID     string // object name; with From, what the content must hash to, or empty
}

// Draft says what a candidate consists of.
type Draft struct {
	Base    string // parent commit; empty for a commit without parent
	Tree    string // tree to start from, only without Base; empty for no files
	Changes []FileChange
	Message string
	When    time.Time // date of author and committer, to the second
}

// Candidate is a commit that no ref points to, and its tree.
type Candidate struct{ Commit, Tree string }

// Candidate writes a commit with the changes applied, contents byte for byte.
// Deletions come before everything else, whatever their place in the list, and
// deleting what is not there does nothing. Nothing is written under an id that
// does not match: if a file no longer hashes to its ID, there is no commit.
// Its objects are unreferenced until UpdateRef names the commit.
func (r *Repo) Candidate(ctx context.Context, d Draft) (Candidate, error) {
	if err := r.checkDraft(d); err != nil {
		return Candidate{}, fmt.Errorf("write candidate: %w", err)
	}
	in, feed := io.Pipe()
	fed := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(feed, 64<<10)
		err := r.feed(w, d)
		if err == nil {
			err = w.Flush()
		}
		// A stream without its last word is refused by git as a whole.
		feed.Close()
		fed <- err
	}()
	out := &bounded{limit: 4 << 10}
	err := r.pipe(ctx, in, out, nil,
		"fast-import", "--quiet", "--done", "--force", "--date-format=raw", "--cat-blob-fd=1")
	in.CloseWithError(errStopped)
	r.dropCrashReport(err)
	if ferr := <-fed; ferr != nil && !errors.Is(ferr, errStopped) {
		err = ferr
	}
	if err != nil {
		return Candidate{}, fmt.Errorf("write candidate: %w", err)
	}
	return r.parseCandidate(out.String())
}

var errStopped = errors.New("git stopped reading")

func (r *Repo) checkDraft(d Draft) error {
	for _, id := range []string{d.Base, d.Tree} {
		if id == "" {
			continue
		}
		if err := r.checkID(id); err != nil {
			return err
		}
	}
	for _, c := range d.Changes {
		if err := r.checkChange(c); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repo) checkChange(c FileChange) error {
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
	if c.From == "" || c.ID != "" {
		return r.checkID(c.ID)
	}
	return nil
}

// feed writes the whole stream: contents, the commit, and the two questions.
// The branch that fast-import needs is taken back before it becomes a ref.
func (r *Repo) feed(w *bufio.Writer, d Draft) error {
	ref := "refs/pawl/tmp/" + strings.ToLower(rand.Text())
	commit := len(d.Changes) + 1
	fmt.Fprint(w, "feature done\n")
	for i, c := range d.Changes {
		if c.From == "" || c.Delete {
			continue
		}
		fmt.Fprintf(w, "blob\nmark :%d\n", i+1)
		if err := r.feedContent(w, c); err != nil {
			return err
		}
	}
	who := fmt.Sprintf("%s <%s> %d +0000", authorName, authorEmail, unixSeconds(d.When))
	message := CleanMessage(d.Message)
	fmt.Fprintf(w, "commit %s\nmark :%d\nauthor %s\ncommitter %s\ndata %d\n%s\n", ref, commit, who, who, len(message), message)
	switch {
	case d.Base != "":
		fmt.Fprintf(w, "from %s\n", d.Base)
	case d.Tree != "":
		fmt.Fprintf(w, "M 040000 %s \"\"\n", d.Tree)
	}
	feedChanges(w, d.Changes)
	fmt.Fprintf(w, "\nls :%d \"\"\nget-mark :%d\n", commit, commit)
	fmt.Fprintf(w, "reset %s\nfrom %s\n\ndone\n", ref, strings.Repeat("0", r.hexLen()))
	return nil
}

func feedChanges(w io.Writer, changes []FileChange) {
	for _, c := range changes {
		if c.Delete {
			fmt.Fprintf(w, "D %s\n", quotePath(c.Path))
		}
	}
	for i, c := range changes {
		switch {
		case c.Delete:
		case c.From != "":
			fmt.Fprintf(w, "M %o :%d %s\n", c.Mode, i+1, quotePath(c.Path))
		default:
			fmt.Fprintf(w, "M %o %s %s\n", c.Mode, c.ID, quotePath(c.Path))
		}
	}
}

// feedContent copies one file into the stream, and fails if it is no longer
// the file that was looked at.
func (r *Repo) feedContent(w io.Writer, c FileChange) error {
	if c.Mode == ModeSymlink {
		target, err := os.Readlink(c.From)
		if err != nil {
			return err
		}
		target = filepath.ToSlash(target)
		if id := r.HashBytes([]byte(target)); c.ID != "" && id != c.ID {
			return fmt.Errorf("%q changed while it was captured", c.Path)
		}
		_, err = fmt.Fprintf(w, "data %d\n%s\n", len(target), target)
		return err
	}
	f, info, err := openRegular(c.From)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(w, "data %d\n", info.Size())
	h := r.blobHash(info.Size())
	n, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(f, info.Size()))
	if err != nil {
		return fmt.Errorf("read %s: %w", c.From, err)
	}
	if n != info.Size() || c.ID != "" && hex.EncodeToString(h.Sum(nil)) != c.ID {
		return fmt.Errorf("%q changed while it was captured", c.Path)
	}
	_, err = io.WriteString(w, "\n")
	return err
}

// parseCandidate reads "040000 tree <id>\t" and "<commit>".
func (r *Repo) parseCandidate(out string) (Candidate, error) {
	f := strings.Fields(out)
	if len(f) != 4 || f[1] != "tree" || r.checkID(f[2]) != nil || r.checkID(f[3]) != nil {
		return Candidate{}, fmt.Errorf("write candidate: git answered %q", out)
	}
	return Candidate{Commit: f[3], Tree: f[2]}, nil
}

var crashReport = regexp.MustCompile(`fast_import_crash_[0-9]+`)

// dropCrashReport removes the file that fast-import leaves in the git
// directory when it is refused, and that nobody would ever remove.
func (r *Repo) dropCrashReport(err error) {
	c, ok := errors.AsType[*commandError](err)
	if !ok {
		return
	}
	if name := crashReport.FindString(c.stderr); name != "" {
		_ = os.Remove(filepath.Join(r.GitDir, name))
	}
}
