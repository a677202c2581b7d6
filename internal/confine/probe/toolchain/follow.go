package toolchain

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

const (
	maxLinks = 40 // as many as the kernel follows
	maxHead  = 4 << 10
)

// linkStages returns a path, then that path after each of its links is replaced. The
// last has no links.
func linkStages(path string) ([]string, error) {
	all := []string{filepath.Clean(path)}
	for range maxLinks {
		next, err := replaceFirstLink(all[len(all)-1])
		if err != nil {
			return nil, err
		}
		if next == "" {
			return all, nil
		}
		all = append(all, next)
	}
	return nil, fmt.Errorf("follow %s: too many links", path)
}

// replaceFirstLink returns path with its first link replaced, or an empty string if it has
// none.
func replaceFirstLink(path string) (string, error) {
	volume := filepath.VolumeName(path)
	at := volume + string(filepath.Separator)
	parts := strings.Split(strings.Trim(path[len(volume):], string(filepath.Separator)), string(filepath.Separator))
	for i, part := range parts {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			// The links before this one are replaced already, so .. is the
			// directory above.
			target = filepath.Join(filepath.Dir(at), target)
		}
		return filepath.Join(append([]string{target}, parts[i+1:]...)...), nil
	}
	return "", nil
}

// followFile shows all that a file needs to run: the file under every name on the way to
// it, its installation, its interpreter and its libraries. It returns the file's
// path without links.
func (r *resolver) followFile(ctx context.Context, path string) (string, error) {
	names, err := linkStages(path)
	if err != nil {
		return "", r.newFault(filepath.Base(path), "following "+path+": "+withoutPath(err), "reinstall "+filepath.Base(path)+", or take the broken link out of PATH")
	}
	real := names[len(names)-1]
	if r.seen[path] {
		return real, nil
	}
	r.seen[path] = true
	// Anybody may have written the project: its links must not choose what of the
	// home is shown.
	if r.area.ofProject(path) && !r.area.isVisible(real) && !isInstalled(real) {
		return "", r.untrustedLink(path, real)
	}
	r.files = append(r.files, real)
	home := r.installationOf(real)
	for _, name := range names {
		r.showName(name, home)
	}
	if err := r.addPython(ctx, names); err != nil {
		return "", err
	}
	head, err := headOf(real)
	if err != nil {
		return "", r.newFault(filepath.Base(path), "reading "+real+": "+withoutPath(err), "make "+real+" readable for this user")
	}
	switch {
	case strings.HasPrefix(head, "#!"):
		return real, r.followInterpreter(ctx, real, head)
	case !r.area.ofProject(real):
		r.showLibraries(real, 0) // A binary of the project does not choose what is shown.
	}
	return real, nil
}

func (r *resolver) untrustedLink(path, named string) error {
	return r.newFault(filepath.Base(path), path+" belongs to the project and names "+named+", which is not an installation of a program",
		"name a program that is installed, or find it by PATH: #!/usr/bin/env NAME")
}

// isInstalled reports whether a file is a program in an installation.
func isInstalled(real string) bool {
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return false
	}
	root, _ := storeOf(real)
	return root != "" || environmentOf(real) != "" || isToolchain(rootOf(real))
}

// showName binds one name of a file: the installation, if the name leads into it as the
// real path does; otherwise only the file.
func (r *resolver) showName(name string, in installation) {
	if r.area.isVisible(name) {
		return
	}
	if own := environmentOf(name); own != "" && !r.area.tooWide(own) {
		r.binds = append(r.binds, own)
		return
	}
	root, ok := strings.CutSuffix(name, in.rest)
	if real, err := filepath.EvalSymlinks(root); in.rest == "" || !ok || err != nil || real != in.root {
		r.binds = append(r.binds, name)
		return
	}
	if len(in.subs) == 0 {
		r.binds = append(r.binds, root)
		return
	}
	for _, sub := range in.subs {
		r.binds = append(r.binds, filepath.Join(root, sub))
	}
	if !slices.ContainsFunc(in.subs, func(sub string) bool { return isBelow(filepath.Join(root, sub), name) }) {
		r.binds = append(r.binds, name)
	}
}

// showTree binds a directory under every name on the way to it, except one that is
// too wide.
func (r *resolver) showTree(dir string) {
	names, err := linkStages(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		if !r.area.isVisible(name) && !r.area.tooWide(name) {
			r.binds = append(r.binds, name)
		}
	}
}

// followInterpreter follows the first line of a script.
func (r *resolver) followInterpreter(ctx context.Context, script, head string) error {
	program, word := interpreterOf(head)
	if word != "" {
		// A word is looked up as env does when the script runs.
		if err := r.resolveWord(ctx, word); err != nil {
			return err
		}
	}
	if program == "" {
		return nil
	}
	if !isThere(program) {
		return r.newFault(filepath.Base(script), script+" names the interpreter "+program+", which is not there",
			"reinstall "+filepath.Base(script)+": what it was installed with is gone")
	}
	if r.area.ofProject(script) {
		if real, err := filepath.EvalSymlinks(program); err == nil && !r.area.isVisible(real) && !isInstalled(real) {
			return r.untrustedLink(script, program)
		}
	}
	_, err := r.followFile(ctx, program)
	return err
}

// longInterpreter matches how Python's installers write an interpreter whose path is
// too long for the kernel or has spaces.
var longInterpreter = lazyregexp.New(`^#!/bin/sh\n'''exec' "?([^"\n]+?)"? "\$0" "\$@"\n`)

// interpreterOf returns the program whose path is in the first line of a script, and
// the word that env has to look up.
func interpreterOf(head string) (program, word string) {
	if m := longInterpreter.FindStringSubmatch(head); m != nil && filepath.IsAbs(m[1]) {
		return m[1], ""
	}
	first, _, _ := strings.Cut(head, "\n")
	words := strings.Fields(strings.TrimPrefix(strings.TrimSuffix(first, "\r"), "#!"))
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return "", ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0], ""
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
			if filepath.IsAbs(w) {
				return w, ""
			}
			return words[0], w
		}
	}
	return words[0], ""
}

// headOf returns the beginning of a regular file.
func headOf(path string) (string, error) {
	// Opening a FIFO would wait for its writer.
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(bufio.NewReader(file), maxHead))
	return string(head), err
}

// withoutPath returns the text of err without the path, which the message names.
func withoutPath(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}
