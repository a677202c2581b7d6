package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/safeopen"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	headPrefix = "refs/heads/"
	ownPrefix  = "refs/pawl/"
	seenPrefix = "refs/remotes/"
)

// ErrRefMoved means that a ref did not have the expected value, and nothing
// was changed. Read it again and decide anew.
var ErrRefMoved = errors.New("ref moved")

// Ref is a ref and the object that it names.
type Ref struct{ Name, ID string }

// CheckRef refuses a name that git's check-ref-format refuses, and every name
// that is neither a branch (refs/heads/), nor a note of where a remote's branch was seen
// (refs/remotes/), nor pawl's own (refs/pawl/).
func CheckRef(ref string) error {
	if !slices.ContainsFunc([]string{headPrefix, seenPrefix, ownPrefix}, func(below string) bool { return strings.HasPrefix(ref, below) }) {
		return fmt.Errorf("ref %q is not below %s, %s or %s", ref, headPrefix, seenPrefix, ownPrefix)
	}
	if rule := refRule(ref); rule != "" {
		return fmt.Errorf("ref name %.200q %s", ref, rule)
	}
	if name := strings.TrimPrefix(ref, headPrefix); name == "HEAD" || name[0] == '-' {
		return fmt.Errorf("ref name %q is not a branch name", ref)
	}
	return nil
}

// refRule names the rule of check-ref-format that a name breaks.
func refRule(ref string) string {
	switch {
	case len(ref) > 1024:
		return "is too long"
	case strings.Contains(ref, ".."), strings.Contains(ref, "@{"):
		return "holds .. or @{"
	case strings.HasSuffix(ref, "."), strings.HasSuffix(ref, "/"):
		return "ends with a dot or a slash"
	}
	for i := range len(ref) {
		if c := ref[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return fmt.Sprintf("holds the character %q", c)
		}
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return fmt.Sprintf("has the component %q", part)
		}
	}
	return ""
}

// UpdateRef sets ref to the object id if its value is old; with an empty old
// it must not exist. ErrRefMoved means that it had another value, and
// loop.ErrNotFound that the object does not exist.
func (r *Repo) UpdateRef(ctx context.Context, ref, id, old string) error {
	if err := r.Format.Check(id); err != nil {
		return fmt.Errorf("update %s: %w", ref, err)
	}
	err := r.changeRef(ctx, "update", ref, old, "update-ref", "-m", r.reflogMessage(), "--no-deref", ref, id)
	if program.Status(err) == 0 {
		return err
	}
	if _, gone := r.git.Output(ctx, nil, "cat-file", "-e", id); program.Status(gone) != 0 {
		return fmt.Errorf("update %s: object %s: %w", ref, id, loop.ErrNotFound)
	}
	return err
}

// DeleteRef removes ref if its value is old. ErrRefMoved means that it had another
// value.
func (r *Repo) DeleteRef(ctx context.Context, ref, old string) error {
	// Git deletes whatever is there if it is told no value.
	if err := r.Format.Check(old); err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	return r.changeRef(ctx, "delete", ref, old, "update-ref", "-m", r.reflogMessage(), "--no-deref", "-d", ref)
}

// reflogMessage is what the reflog says about a movement.
func (r *Repo) reflogMessage() string {
	if r.by == "" {
		return "pawl"
	}
	return "pawl: " + r.by
}

func (r *Repo) changeRef(ctx context.Context, verb, ref, old string, args ...string) error {
	err := CheckRef(ref)
	if err == nil && old != "" {
		err = r.Format.Check(old)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, ref, err)
	}
	_, err = r.git.Output(ctx, nil, append(args, old)...) // To git, too, an empty value means that the ref must not exist.
	if err == nil {
		return nil
	}
	if program.Status(err) == 0 { // Git did not come to an end of its own.
		return fmt.Errorf("%s %s: %w", verb, ref, err)
	}
	// Git has one exit status for everything, so the ref itself is asked.
	now, _, lookErr := r.Ref(ctx, ref)
	if lookErr == nil && now != old {
		return fmt.Errorf("%s %s: %w: it is %s and not %s", verb, ref, ErrRefMoved, orMissing(now), orMissing(old))
	}
	return fmt.Errorf("%s %s: %w", verb, ref, errors.Join(err, lookErr))
}

func orMissing(id string) string {
	if id == "" {
		return "missing"
	}
	return id
}

// Ref returns the object that a ref names, and whether the ref exists.
func (r *Repo) Ref(ctx context.Context, ref string) (id string, ok bool, err error) {
	if err := CheckRef(ref); err != nil {
		return "", false, fmt.Errorf("read ref: %w", err)
	}
	if ctx.Err() != nil {
		return "", false, fmt.Errorf("read ref %s: %w", ref, context.Cause(ctx))
	}
	if id, known := r.refInFiles(ref); known {
		return id, id != "", nil
	}
	refs, err := r.forEachRef(ctx, ref)
	if err != nil {
		return "", false, err
	}
	for _, found := range refs {
		if found.Name == ref {
			return found.ID, true, nil
		}
	}
	return "", false, nil
}

// maxPackedRefs is how many bytes of packed refs are read. Git finds one of more faster.
const maxPackedRefs = 1 << 20

// refInFiles reads a ref from the files of the repository. A ref that is there has its
// object name, and one that is missing has none; where neither is plain, known is false.
func (r *Repo) refInFiles(ref string) (id string, known bool) {
	if hasRefTable(r.CommonDir) {
		return "", false
	}
	// A ref that is packed meanwhile is removed only after that.
	for _, read := range []func() ([]byte, error){
		func() ([]byte, error) { return readSmall(filepath.Join(r.CommonDir, filepath.FromSlash(ref)), 128) },
		func() ([]byte, error) {
			text, err := readSmall(filepath.Join(r.CommonDir, "packed-refs"), maxPackedRefs)
			before, _, found := bytes.Cut(text, []byte(" "+ref+"\n"))
			if err == nil && found {
				return before[bytes.LastIndexByte(before, '\n')+1:], nil
			}
			return nil, cmp.Or(err, fs.ErrNotExist)
		},
	} {
		text, err := read()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		id = strings.TrimSuffix(string(text), "\n")
		return id, err == nil && r.Format.Check(id) == nil && strings.Trim(id, "0") != ""
	}
	return "", true
}

// readSmall reads a regular file of at most that many bytes.
func readSmall(name string, most int64) ([]byte, error) {
	f, info, err := safeopen.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// Refs lists the refs below a prefix that ends with a slash, sorted by name.
func (r *Repo) Refs(ctx context.Context, prefix string) ([]Ref, error) {
	if !strings.HasSuffix(prefix, "/") || refRule(strings.TrimSuffix(prefix, "/")) != "" || prefix[0] == '-' {
		return nil, fmt.Errorf("list refs: prefix %q is not a ref name and a slash", prefix)
	}
	return r.forEachRef(ctx, prefix)
}

func (r *Repo) forEachRef(ctx context.Context, pattern string) ([]Ref, error) {
	out, err := r.git.Output(ctx, nil, "for-each-ref", "--format=%(objectname) %(refname)", pattern)
	if err != nil {
		return nil, fmt.Errorf("list refs %s: %w", pattern, err)
	}
	var refs []Ref
	for line := range bytes.Lines(out) {
		id, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if !ok {
			return nil, fmt.Errorf("list refs %s: unexpected line %q", pattern, line)
		}
		refs = append(refs, Ref{Name: name, ID: id})
	}
	return refs, nil
}

// Tips returns the objects that refs name, by the full names of the refs; a name that ends
// with /* means all below it, and a ref that does not exist is left out. It starts git only
// if the repository keeps its refs in another form than files.
func (r *Repo) Tips(ctx context.Context, names ...string) (map[string]string, error) {
	tips, err := r.Dirs.Refs(names...)
	if !errors.Is(err, gitdir.ErrRefStorage) {
		return tips, err
	}
	tips = map[string]string{}
	for _, name := range names {
		refs, err := r.forEachRef(ctx, strings.TrimSuffix(name, "*"))
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			if ref.Name == name || strings.HasSuffix(name, "*") {
				tips[ref.Name] = ref.ID
			}
		}
	}
	return tips, nil
}
