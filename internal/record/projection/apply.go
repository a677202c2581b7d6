package projection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeWrite  = fault.New("projection.write.before")
	beforeSync   = fault.New("projection.sync.before")
	beforeRename = fault.New("projection.rename.before")
	afterRename  = fault.New("projection.rename.after")
	beforeAppend = fault.New("projection.append.before")
	afterAppend  = fault.New("projection.append.after")
)

// applyChange writes one change. A change can be applied again after a crash: what
// is there already is left alone.
func (m Memory) applyChange(ctx context.Context, root *os.Root, ch loop.Change) error {
	name := filepath.FromSlash(ch.Path)
	switch ch.Kind {
	case loop.ChangeEdit:
		return m.applyEdit(ctx, root, name, ch)
	case loop.ChangeAppend:
		return appendLine(ctx, root, name, ch)
	case loop.ChangeAside:
		return moveAside(root, name, ch)
	case loop.ChangeStep, loop.ChangeRow, loop.ChangeDeliver, loop.ChangeReceive, loop.ChangeCommit, loop.ChangePush:
		return fmt.Errorf("change %q is not one of a file: %w", ch.Kind, errors.ErrUnsupported)
	}
	return fmt.Errorf("change %q: %w", ch.Kind, errors.ErrUnsupported)
}

// applyEdit merges an edit into a file, so that what a person wrote meanwhile stays,
// and replaces the file.
func (m Memory) applyEdit(ctx context.Context, root *os.Root, name string, ch loop.Change) error {
	now, err := readInRoot(root, name)
	if err != nil {
		return err
	}
	if now.TooBig {
		return fmt.Errorf("it has grown over %d bytes: %w", MaxFile, fs.ErrExist)
	}
	content := ch.Content
	if now.Exists && now.Content != ch.Before {
		var left []string
		merge := mergeLines
		if ch.Merge != "" {
			var known bool
			if merge, known = m.Mergers[ch.Merge]; !known {
				return fmt.Errorf("merge as %q: %w", ch.Merge, errors.ErrUnsupported)
			}
		}
		if content, left = merge(ch.Before, ch.Content, now.Content); len(left) > 0 && m.NotMerged != nil {
			m.NotMerged(ch.Path, left)
		}
	}
	if now.Exists && now.Content == content {
		// Whoever wrote it may have died before its name was durable, or before
		// somebody else made the file what it is.
		return errors.Join(removeTemporary(root, name), durable.SyncFolderIn(root, path.Dir(ch.Path)))
	}
	return replaceFile(ctx, root, name, content)
}

func readInRoot(root *os.Root, name string) (File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	return readBounded(file, err, MaxFile)
}

// replaceFile writes a file so that its name always means a complete old or a
// complete new version, also after a power cut.
func replaceFile(ctx context.Context, root *os.Root, name, content string) error {
	dir := path.Dir(filepath.ToSlash(name))
	if err := durable.MkdirAll(root, dir, 0o755); err != nil {
		return err
	}
	if err := beforeWrite.Hit(ctx); err != nil {
		return err
	}
	// It is removed first, because a link of that name would be written through.
	if err := removeTemporary(root, name); err != nil {
		return err
	}
	tmp := temporaryName(name)
	if err := writeSynced(ctx, root, tmp, content); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	if err := beforeRename.Hit(ctx); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	if err := root.Rename(tmp, name); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	if err := afterRename.Hit(ctx); err != nil {
		return err
	}
	return durable.SyncFolderIn(root, dir)
}

// temporaryName is the name under which a new version of a file is written. It is
// always the same, so that crashes leave at most one such file.
func temporaryName(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".pawl-tmp")
}

// removeTemporary removes what a crash may have left under the temporary name.
func removeTemporary(root *os.Root, name string) error {
	err := root.Remove(temporaryName(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func writeSynced(ctx context.Context, root *os.Root, name, content string) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err == nil {
		err = beforeSync.Hit(ctx)
	}
	if err == nil {
		err = durable.SyncFile(file)
	}
	return errors.Join(err, file.Close())
}

// tailSize is how much of a log's end is searched for a line that an earlier
// process may have appended already.
const tailSize = 64 << 10

// appendLine adds a line at the end, once: a line that is there already is not added
// again, and half a line that a power cut left is completed.
func appendLine(ctx context.Context, root *os.Root, name string, ch loop.Change) error {
	dir := path.Dir(filepath.ToSlash(name))
	if err := durable.MkdirAll(root, dir, 0o755); err != nil {
		return err
	}
	if err := beforeAppend.Hit(ctx); err != nil {
		return err
	}
	// A root follows links that stay inside of it, whatever the flags say.
	info, err := root.Lstat(name)
	fresh := err != nil
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND|openFlags, 0o644)
	if err != nil {
		return err
	}
	err = lockFile(file)
	if err == nil {
		err = appendTo(file, ch)
	}
	if err == nil {
		err = durable.SyncFile(file)
	}
	if err == nil && fresh {
		err = durable.SyncFolderIn(root, dir)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return afterAppend.Hit(ctx)
}

func appendTo(file *os.File, ch loop.Change) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	tail := make([]byte, min(info.Size(), tailSize))
	if _, err := file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	line := ch.Content + "\n"
	if info.Size() == 0 {
		line = ch.Before + line // The header of a new file.
	}
	last := string(tail[strings.LastIndexByte(string(tail), '\n')+1:])
	switch {
	case strings.Contains("\n"+string(tail), "\n"+ch.Content+"\n"):
		return nil
	case strings.HasPrefix(ch.Content, last):
		line = line[len(last):]
	default:
		line = "\n" + line
	}
	_, err = file.WriteString(line)
	return err
}

// moveAside renames a file that cannot be used, once. A name without a slash is one in the
// folder of the file, and any other a path from the top.
func moveAside(root *os.Root, name string, ch loop.Change) error {
	to := filepath.FromSlash(ch.Content)
	if !strings.Contains(ch.Content, "/") {
		to = filepath.Join(filepath.Dir(name), to)
	}
	if _, err := root.Lstat(to); err == nil {
		return nil // Moved by the process that died.
	}
	if now, err := readInRoot(root, name); err == nil && !now.TooBig && ch.Before != "" && now.Content != ch.Before {
		return nil // Somebody has repaired it since.
	}
	from, into := path.Dir(filepath.ToSlash(name)), path.Dir(filepath.ToSlash(to))
	if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if into != from {
		if err := durable.MkdirAll(root, into, 0o755); err != nil {
			return err
		}
	}
	if err := root.Rename(name, to); err != nil {
		return err
	}
	err := durable.SyncFolderIn(root, into)
	if into != from {
		err = errors.Join(err, durable.SyncFolderIn(root, from))
	}
	return err
}
