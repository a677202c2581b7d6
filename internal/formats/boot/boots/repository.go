package boots

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// checkFree refuses a folder for a new boot repository that has something in it.
func checkFree(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return &loop.Fault{Exit: loop.ExitMissing, What: dir + " cannot be made a boot repository", Why: err.Error(), Err: err, Fix: "name a folder that is not there yet"}
	}
	return &loop.Fault{
		Exit: loop.ExitMissing, What: dir + " is not empty", Why: "no file is written over", Fix: "name a folder that is not there yet, or link to what is there: {1}",
		Actions: []loop.Command{loop.PawlCommand("boot init").WithFlag("boot", dir+"@REF").WithBlanks(dir + "@REF")},
	}
}

// makeRepository makes a small boot repository: one commit on main, with a tag.
func (s *Service) makeRepository(ctx context.Context, dir string) error {
	fault := func(err error) error {
		return &loop.Fault{Exit: loop.ExitError, What: "make the boot repository " + dir, Why: err.Error(), Err: err, Fix: "remove what is in the folder, and do this again"}
	}
	for name, text := range bootrepo.Scaffold(s.ws.Now()) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return fault(err)
		}
		if err := os.WriteFile(at, text, 0o644); err != nil {
			return fault(err)
		}
	}
	gitDir := filepath.Join(dir, ".git")
	git := program.New(s.Exec, gitDir, gitDir, dir).Without("GIT_INDEX_FILE")
	git.Dir = dir
	version := bootrepo.ScaffoldVersion.String()
	if _, err := git.Without("GIT_WORK_TREE").Output(ctx, nil, "init", "-q", "--template=", "--initial-branch=main"); err != nil {
		return fault(err)
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "Version " + version + " of the boot repository"}, {"tag", "v" + version}} {
		if _, err := git.Output(ctx, nil, args...); err != nil {
			return fault(err)
		}
	}
	return nil
}
