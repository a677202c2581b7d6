package sandbox

import (
	"context"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Run starts s in the box and waits for its end, as [proc.Tree] does, which here
// kills a process group: a descendant that leaves the group survives. Programs see
// the host's directories at the host's paths.
//
// For a tier that macOS does not have, the error is a *SetupError and the result
// proc.NotStarted: the program did not run.
func (b Box) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	switch b.Tier {
	case "", None, External:
		return proc.Tree{}.Run(ctx, s)
	case Seatbelt:
		return b.runSeatbelt(ctx, s)
	case Full, Landlock:
	}
	return notStarted(s, b.unsupportedTierError())
}

func (b Box) runSeatbelt(ctx context.Context, s proc.Spec) (proc.Result, error) {
	home, tmp := filepath.Join(b.Scratch, "home"), filepath.Join(b.Scratch, "tmp")
	for _, dir := range []string{home, tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return notStarted(s, err)
		}
	}
	ports, env, closePorts, err := b.hostPorts(ctx)
	if err != nil {
		return notStarted(s, err)
	}
	defer closePorts()
	s.Env = proc.WithVariables(s.Env, append(env, "HOME="+home, "TMPDIR="+tmp)...)
	profile, parameters := b.seatbeltProfile(home, tmp, ports, realPath)
	argv := []string{"/usr/bin/sandbox-exec", "-p", profile}
	for _, p := range parameters {
		argv = append(argv, "-D", p)
	}
	s.Argv = append(argv, s.Argv...)
	return proc.Tree{}.Run(ctx, s)
}

// realPath returns path with symbolic links resolved, as the kernel compares it: /tmp
// and /etc are links here.
func realPath(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}
