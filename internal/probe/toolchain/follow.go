package toolchain

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	maxLinks = 40 // as many as the kernel follows
	maxHead  = 4 << 10
)

// stages are a path as it is named, then after each link on the way to what it
// leads to; the last has none.
func stages(path string) ([]string, error) {
	all := []string{filepath.Clean(path)}
	for range maxLinks {
		next, err := expanded(all[len(all)-1])
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

// expanded is a path with its first link replaced, or empty if it has none.
func expanded(path string) (string, error) {
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
			// The links before this one are replaced already: nothing of the
			// directory is a link, and .. means what it says.
			target = filepath.Join(filepath.Dir(at), target)
		}
		return filepath.Join(append([]string{target}, parts[i+1:]...)...), nil
	}
	return "", nil
}

// follow makes a file runnable: the file by every name on the way to it, the
// installation that it lies in, its interpreter and its libraries. It returns
// where the file lies.
func (r *resolver) follow(ctx context.Context, path string) (string, error) {
	names, err := stages(path)
	if err != nil {
		return "", r.fault(filepath.Base(path), "following "+path+": "+reason(err), "reinstall "+filepath.Base(path)+", or take the broken link out of PATH")
	}
	real := names[len(names)-1]
	if r.seen[path] {
		return real, nil
	}
	r.seen[path] = true
	if err := r.linkAllowed(path, real); err != nil {
		return "", err
	}
	r.files = append(r.files, real)
	home := r.installation(real)
	for _, name := range names {
		r.show(name, home)
	}
	if err := r.python(ctx, names); err != nil {
		return "", err
	}
	return real, r.contents(ctx, path, real)
}

// linkAllowed refuses a link of the project to anything but an installation: the
// project may be anybody's, and must not choose what of the home is shown.
func (r *resolver) linkAllowed(path, real string) error {
	if r.area.ofProject(path) && !r.area.visible(real) && !isInstalled(real) {
		return r.untrusted(path, real)
	}
	return nil
}

func (r *resolver) untrusted(path, named string) error {
	return r.fault(filepath.Base(path), path+" belongs to the project and names "+named+", which is not an installation of a program",
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

// show binds one name of a file. The installation counts if the name leads into
// it as the file lies in it; otherwise the file alone does.
func (r *resolver) show(name string, in installation) {
	if r.area.visible(name) {
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

// showTree binds a directory by every name on the way to it. What is too wide
// is left out.
func (r *resolver) showTree(dir string) {
	names, err := stages(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		if !r.area.visible(name) && !r.area.tooWide(name) {
			r.binds = append(r.binds, name)
		}
	}
}

// contents follows what a file itself names: the interpreter of a script, the
// libraries of a binary.
func (r *resolver) contents(ctx context.Context, path, real string) error {
	head, err := headOf(real)
	if err != nil {
		return r.fault(filepath.Base(path), "reading "+real+": "+reason(err), "make "+real+" readable for this user")
	}
	switch {
	case strings.HasPrefix(head, "#!"):
		return r.interpreter(ctx, real, head)
	case r.area.ofProject(real):
		// What a file of the project names is not shown for that alone.
		return nil
	}
	r.libraries(real, 0)
	return nil
}

// interpreter follows the first line of a script.
func (r *resolver) interpreter(ctx context.Context, script, head string) error {
	program, word := interpreterOf(head)
	if word != "" {
		// The shell's own programs are in the system; a word is looked up as env
		// does it when the script runs.
		if err := r.program(ctx, word); err != nil {
			return err
		}
	}
	if program == "" {
		return nil
	}
	if !isThere(program) {
		return r.fault(filepath.Base(script), script+" names the interpreter "+program+", which is not there",
			"reinstall "+filepath.Base(script)+": what it was installed with is gone")
	}
	if r.area.ofProject(script) {
		if real, err := filepath.EvalSymlinks(program); err == nil && !r.area.visible(real) && !isInstalled(real) {
			return r.untrusted(script, program)
		}
	}
	_, err := r.follow(ctx, program)
	return err
}

// longInterpreter is how installers of Python write an interpreter whose path
// is too long for the kernel, or has spaces.
var longInterpreter = regexp.MustCompile(`^#!/bin/sh\n'''exec' "?([^"\n]+?)"? "\$0" "\$@"\n`)

// interpreterOf is the program that the first line of a script names by its
// path, and the word that env has to look up.
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

// headOf is the beginning of a regular file.
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

// reason is err without the path, which the message names.
func reason(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}
