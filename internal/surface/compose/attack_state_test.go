//go:build unix

package compose_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	_ "modernc.org/sqlite" // changes stores behind pawl's back

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestAttack121NoFieldForgesALineOfTheRunLog(t *testing.T) {
	t.Parallel()
	for name, item := range map[string]string{
		"a line end":       `a\n2026-01-01T00:00:00Z  run#999  action=none  -  outcome=landed  tokens=1`,
		"a return":         `a\rrun#999 action=none outcome=landed`,
		"another field":    `outcome=landed`,
		"pipes and blanks": `a | b  c=d  tokens=0`,
		"an escape":        `a\u001b[2Jb`,
		"a line separator": `a\u2028run#999`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := attacked(t, `printf '%s' '{"outcome":"done","no_change":true,"summary":"`+item+`","item":"`+item+`"}' >"$PAWL_REPORT"`, nil)
			run := v.runs()
			if run.Outcome != loop.OutcomeDone {
				t.Fatalf("run = %s %s %q, want done", run.Outcome, run.Reason, run.Detail)
			}
			v.accounted(run, "run#1", "outcome=done")
			text := readFile(t, filepath.Join(v.root, ".loops/fix", loop.LogFile))
			entries, _ := runlog.Parse(text)
			if len(entries) != 1 || entries[0].Subject != run.Run.Subject() || entries[0].Outcome != "done" {
				t.Errorf("the log reads as %+v, want one entry with the subject %q:\n%s", entries, run.Run.Subject(), text)
			}
		})
	}
}

func TestAttack122ACutOrEditedRunLogIsNamedByItsLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(text string) string
		line int
	}{
		"an outcome is edited": {func(text string) string { return strings.Replace(text, "outcome=failed", "outcome=landed", 1) }, 3},
		"a line is taken out": {func(text string) string {
			return strings.Replace(text, strings.SplitAfter(text, "\n")[2], "", 1)
		}, 0},
		"the log is cut": {func(text string) string { return text[:strings.LastIndex(strings.TrimSpace(text), "\n")+1] }, 0},
		"a line is put in": {func(text string) string {
			return strings.Replace(text, "run#1  ", "run#0  action=none  -  outcome=landed  tokens=0\n2026-01-01T00:00:00Z  run#1  ", 1)
		}, 3},
		"all is gone": {func(string) string { return "" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := attacked(t, "echo two >src/a.txt", nil, "verify", "grep -q three src/a.txt")
			v.runs()
			v.runs()
			must(t, v.svc.Audit.VerifyChain(t.Context(), "fix"))
			path := filepath.Join(v.root, ".loops/fix", loop.LogFile)
			text := readFile(t, path)
			edited := c.edit(text)
			if edited == text {
				t.Fatalf("nothing was edited in:\n%s", text)
			}
			must(t, os.WriteFile(path, []byte(edited), 0o644))
			audit, err := v.svc.Audit.Verify(t.Context(), "fix")
			must(t, err)
			if audit.Intact {
				t.Fatal("nothing was found")
			}
			for _, chain := range audit.Chains {
				for _, b := range chain.Breaks {
					if b.Where == ".loops/fix/"+loop.LogFile && (c.line == 0 || b.Line == c.line) {
						return
					}
				}
			}
			t.Errorf("found %+v, want line %d of the log", audit.Chains, c.line)
		})
	}
}

func TestAttack124WhatLiesInTheLoopsFolderIsPutRightOrSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(dir string) error
		ends  loop.Outcome
	}{
		"a temporary file that a crash left": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".STATE.md.pawl-tmp"), []byte("half"), 0o600)
		}, loop.OutcomeProposed},
		"a link under the temporary name": {func(dir string) error {
			return os.Symlink("../../secret.txt", filepath.Join(dir, ".STATE.md.pawl-tmp"))
		}, loop.OutcomeProposed},
		"a temporary file of another user": {func(dir string) error {
			name := filepath.Join(dir, ".STATE.md.pawl-tmp")
			return errors.Join(os.WriteFile(name, []byte("half"), 0o600), maySucceed(os.Chown(name, 65534, 65534)))
		}, loop.OutcomeProposed},
		"the state is a directory":   {func(dir string) error { return os.Mkdir(filepath.Join(dir, "STATE.md"), 0o755) }, ""},
		"the state is a link":        {func(dir string) error { return os.Symlink("../../secret.txt", filepath.Join(dir, "STATE.md")) }, ""},
		"the state is a FIFO":        {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "STATE.md"), 0o644) }, ""},
		"the state is closed":        {func(dir string) error { return os.WriteFile(filepath.Join(dir, "STATE.md"), nil, 0) }, ""},
		"the run log is a directory": {func(dir string) error { return os.Mkdir(filepath.Join(dir, loop.LogFile), 0o755) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := attacked(t, "echo three >src/a.txt", nil)
			must(t, c.plant(filepath.Join(v.root, ".loops/fix")))
			run, err := v.start()
			said := run.Outcome == loop.OutcomeProposed || run.Detail != "" || exitOf(err) > 0
			if !said || c.ends != "" && run.Outcome != c.ends {
				t.Errorf("run = %s %s %q, %v, want %s or a reason", run.Outcome, run.Reason, run.Detail, err, c.ends)
			}
			if got := readFile(t, filepath.Join(v.root, "secret.txt")); got != secretText+"\n" {
				t.Errorf("what a link led to was written: %q", got)
			}
			if run.Outcome == loop.OutcomeProposed {
				if _, err := spine.ParseState(readFile(t, filepath.Join(v.root, ".loops/fix/STATE.md"))); err != nil {
					t.Errorf("STATE.md after the run: %v", err)
				}
			}
		})
	}
}

// maySucceed drops the error of what only root may do: without it the case is
// that of one's own file.
func maySucceed(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

// stored makes a store with two runs and closes it; the name of its file is
// returned.
func stored(t *testing.T) (*victim, string) {
	t.Helper()
	v := attacked(t, "echo three >src/a.txt", nil)
	v.runs()
	v.runs()
	must(t, v.d.Close())
	file, err := filepath.Glob(filepath.Join(v.home, "*.db"))
	must(t, err)
	if len(file) != 1 {
		t.Fatalf("stores: %v", file)
	}
	return v, file[0]
}

// reopen opens the store as any command does, and lists the runs.
func (v *victim) reopen() (runs []runs.View, err error) {
	settings, err := config.Load(config.Settings{Home: v.home}, nil)
	if err != nil {
		return nil, err
	}
	d, err := compose.New(v.t.Context(), compose.Options{Settings: settings, Environ: os.Environ(), Log: compose.Log(nil)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	svc, err := d.Verbs(v.t.Context(), v.root)
	if err != nil {
		return nil, err
	}
	return svc.Runs.List(v.t.Context(), "fix", 10)
}

func TestAttack125AStoreThatCannotBeTrustedIsRefusedInWords(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, file string){
		"a broken header": func(t *testing.T, file string) {
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt([]byte("SQLite format 9\x00garbage"), 0)
			must(t, errors.Join(err, f.Close()))
		},
		"something else": func(t *testing.T, file string) {
			must(t, os.WriteFile(file, []byte(strings.Repeat("this is a letter\n", 1000)), 0o600))
		},
		"half of it": func(t *testing.T, file string) { must(t, os.Truncate(file, 4096*3)) },
		"a newer schema": func(t *testing.T, file string) {
			db, err := sql.Open("sqlite", file)
			must(t, err)
			_, err = db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`)
			must(t, errors.Join(err, db.Close()))
		},
		"a directory": func(t *testing.T, file string) { must(t, errors.Join(os.Remove(file), os.Mkdir(file, 0o755))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, file := stored(t)
			backup := readFile(t, file)
			spoil(t, file)
			if runs, err := v.reopen(); exitOf(err) <= 0 || !strings.Contains(err.Error(), "store") {
				t.Errorf("opened with %d runs, %v, want a fault that names the store", len(runs), err)
			}
			must(t, errors.Join(os.RemoveAll(file), os.WriteFile(file, []byte(backup), 0o600)))
			for _, beside := range []string{"-wal", "-shm"} {
				must(t, os.RemoveAll(file+beside))
			}
			if runs, err := v.reopen(); err != nil || len(runs) != 2 {
				t.Errorf("from the backup: %d runs, %v, want both", len(runs), err)
			}
		})
	}
	for name, beside := range map[string]map[string]string{
		"a foreign log":                   {"-wal": strings.Repeat("not a log of this store", 5000)},
		"a log of noise and an index":     {"-wal": "\x37\x7f\x06\x82" + strings.Repeat("\x00\x01", 4000), "-shm": strings.Repeat("\xff", 32768)},
		"an index of a process that died": {"-shm": strings.Repeat("\x07", 32768)},
	} {
		t.Run(name+" loses nothing", func(t *testing.T) {
			t.Parallel()
			v, file := stored(t)
			for suffix, text := range beside {
				must(t, os.WriteFile(file+suffix, []byte(text), 0o600))
			}
			if runs, err := v.reopen(); err != nil || len(runs) != 2 {
				t.Errorf("%d runs, %v, want both", len(runs), err)
			}
		})
	}
}
