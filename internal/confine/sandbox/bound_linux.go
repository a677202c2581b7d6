package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// runBound runs s in the host's root, where Landlock and a filter of system calls
// permit little. The program shares the host's network, so it can connect only to
// the ports of the box and bind none. It can open neither UNIX nor datagram sockets,
// which Landlock does not see.
func (b Box) runBound(ctx context.Context, s proc.Spec) (proc.Result, error) {
	home, tmp := filepath.Join(b.Scratch, "home"), filepath.Join(b.Scratch, "tmp")
	for _, dir := range []string{home, tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return notStarted(s, err)
		}
	}
	order := b.newOrder()
	order.Rules = b.landlockRules(home, tmp)
	s.Env = proc.WithVariables(s.Env, "HOME="+home, "TMPDIR="+tmp)
	ports, env, closePorts, err := b.hostPorts(ctx)
	if err != nil {
		return notStarted(s, err)
	}
	defer closePorts()
	order.Rules.Connect, s.Env = ports, proc.WithVariables(s.Env, env...)
	b.Ports = nil
	return b.startStage(ctx, s, order, proc.Tree{Stage: stage.Arg})
}

// readableDirs returns the system's directories that programs may read. For root,
// which file modes do not restrict, it returns in place of /etc only those paths in
// it that everybody may read and that are not secret.
func readableDirs() []string {
	if os.Geteuid() != 0 {
		return slices.Clone(systemDirs)
	}
	var list []string
	for _, dir := range systemDirs {
		if dir == "/etc" {
			found, _ := publicPaths(dir)
			list = append(list, found...)
		} else {
			list = append(list, dir)
		}
	}
	return list
}

// publicPaths returns path if everybody may read it and everything below it, and
// otherwise those paths below it that everybody may read. A symbolic link counts as
// readable and is not listed: whether its target may be read depends on the target.
func publicPaths(path string) (list []string, whole bool) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().Type() == os.ModeSymlink:
		return nil, true
	case err != nil || info.Mode().Perm()&0o004 == 0 || slices.Contains(secretPaths, path):
		return nil, false
	case !info.IsDir():
		return []string{path}, true
	}
	entries, err := os.ReadDir(path)
	whole = err == nil && info.Mode().Perm()&0o001 != 0
	for _, e := range entries {
		found, all := publicPaths(filepath.Join(path, e.Name()))
		list, whole = append(list, found...), whole && all
	}
	if whole {
		return []string{path}, true
	}
	return list, false
}

// landlockRules returns what Landlock permits to programs that see the host's root.
func (b Box) landlockRules(home, tmp string) stage.Rules {
	r := stage.Rules{
		Read:    append(readableDirs(), "/proc", "/sys/devices/system/cpu"),
		Write:   []string{b.Dir, home, tmp},
		Network: true,
	}
	for _, name := range deviceNames {
		r.Write = append(r.Write, "/dev/"+name)
	}
	for _, bind := range b.Binds {
		if bind.Write {
			r.Write = append(r.Write, bind.From)
		} else {
			r.Read = append(r.Read, bind.From)
		}
	}
	return r
}
