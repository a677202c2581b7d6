package compose_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestAttack001AFileOutsideTheScopeEndsTheRunRefused(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		v := attacked(t, "echo defaced >README.md; echo fine >src/a.txt", nil, "sandbox", tier)
		run := v.runs()
		v.wantRefused(run, loop.ReasonScope, "README.md", "outside scope src/**")
		if got := v.git("show", run.Snapshot+":README.md"); got != "defaced" {
			t.Errorf("the work that was refused is kept as %q", got)
		}
	})
}

func TestAttack002APathThroughDotsEndsTheRunRefused(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		v := attacked(t, "echo mine >src/../secret.txt", nil, "sandbox", tier)
		v.wantRefused(v.runs(), loop.ReasonScope, "secret.txt")
	})
}

func TestAttack004ALinkToASecretIsInNoLogAndNoCommit(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		v := attacked(t, "ln -s ../secret.txt src/l; ln -s OUTSIDE/agent.sh src/m; echo x >src/a.txt", nil, "sandbox", tier)
		v.wantRefused(v.runs(), loop.ReasonScope, "src/l", "src/m")
		for _, dir := range []string{v.home, filepath.Join(v.root, ".loops")} {
			err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() || isBase(v.home, path) {
					return err
				}
				body, err := os.ReadFile(path)
				if bytes.Contains(body, []byte(secretText)) {
					t.Errorf("%s holds the secret", path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// isBase reports whether a path is the secret itself in a tree that pawl keeps
// of a base: what the repository has committed.
func isBase(home, path string) bool {
	rest, inside := strings.CutPrefix(path, filepath.Join(home, "layers")+"/")
	return inside && (strings.HasSuffix(rest, "/tree/secret.txt") || strings.HasSuffix(rest, "/files/secret.txt"))
}

func TestAttack005ADefinitionWrittenThroughALinkIsNotTheOneThatCounts(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		v := attacked(t, "ln -s ../.loops src/d; echo 'scope: [\"**/*.md\"]' >>src/d/fix/loop.config.yaml", nil, "sandbox", tier)
		before := readFile(t, filepath.Join(v.root, ".loops/fix/loop.config.yaml"))
		run := v.runs()
		if tier == full {
			v.wantRefused(run, loop.ReasonScope, "src/d")
			v.readOnly(run)
		} else {
			v.wantRefused(run, loop.ReasonScope, "src/d", ".loops/fix/loop.config.yaml", "never in scope")
		}
		if now := readFile(t, filepath.Join(v.root, ".loops/fix/loop.config.yaml")); now != before {
			t.Errorf("the definition is now:\n%s", now)
		}
	})
}

func TestAttack007AFileThatTheCheckoutSharesIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	v := attacked(t, "echo three >src/h", nil)
	shared := filepath.Join(v.outside, "shared")
	if err := errors.Join(os.WriteFile(shared, []byte("mine\n"), 0o644), os.Link(shared, filepath.Join(v.root, "src/h"))); err != nil {
		t.Fatal(err)
	}
	v.git("add", "-A")
	v.git("commit", "-q", "-m", "a shared file")
	v.main = v.git("rev-parse", "main")
	run := v.runs()
	v.wantProposed(run)
	if _, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "somebody"}); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, filepath.Join(v.root, "src/h")); got != "three\n" {
		t.Errorf("the checkout holds %q", got)
	}
	if got := readFile(t, shared); got != "mine\n" {
		t.Errorf("the file outside holds %q", got)
	}
}

func TestAttack008AHardLinkMadeDuringTheRunEndsItRefused(t *testing.T) {
	t.Parallel()
	v := attacked(t, "ln OUTSIDE/agent.sh src/h || cp OUTSIDE/agent.sh src/h && ln src/h OUTSIDE/second", nil)
	v.wantRefused(v.runs(), loop.ReasonScope, "src/h", "hard_link")
	inFull(t, func(t *testing.T) {
		v := attacked(t, `for f in /etc/passwd /bin/sh "$PAWL_PROMPT" "$HOME/x" /tmp/x; do
  [ -e "$f" ] || echo x >"$f"
  ln "$f" src/h 2>/dev/null && echo made >src/a.txt && exit
done
echo three >src/a.txt`, nil, "sandbox", full)
		run := v.runs()
		branch := v.wantProposed(run)
		if got := v.git("diff", "--name-only", "main", branch); got != "src/a.txt" || v.git("show", branch+":src/a.txt") != "three" {
			t.Errorf("proposed %q with a.txt = %q, want that no link was made", got, v.git("show", branch+":src/a.txt"))
		}
	})
}

func TestAttack010CollidingNamesEndTheRunRefused(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		for name, script := range map[string]string{
			"a folder in capitals":   "mkdir -p src/x SRC; echo x >SRC/a.txt",
			"a file in capitals":     "echo x >src/A.txt",
			"a dotted capital I":     "echo x >src/i; echo x >src/İ",
			"two forms of one name":  `echo 1 >"$(printf 'src/\303\251')"; echo 2 >"$(printf 'src/e\314\201')"`,
			"a decomposed name only": `echo 2 >"$(printf 'src/e\314\201')"`,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := attacked(t, script, nil, "scope", `["src/**", "SRC/**"]`, "sandbox", tier)
				v.wantRefused(v.runs(), loop.ReasonScope)
			})
		}
	})
}

func TestAttack011ANameThatWindowsCannotHoldEndsTheRunRefused(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		for _, name := range []string{"aux", "a:b", "NUL.txt"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := attacked(t, "echo x >'src/"+name+"'", nil, "sandbox", tier)
				v.wantRefused(v.runs(), loop.ReasonScope, "src/"+name+": Windows cannot hold the name", "portable_names: false allows it")
				v.define("portable_names", "false")
				v.wantProposed(v.runs())
			})
		}
	})
}

func TestAttack011NoNameSplitsALineOfALog(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		for name, script := range map[string]string{
			"a line end":           `echo x >"$(printf 'src/a\n2026-01-01T00:00:00Z  run#9  action=none  -  outcome=landed  tokens=1')"`,
			"an escape":            `echo x >"$(printf 'src/\033[2J')"`,
			"an option":            `echo x >./--upload-pack=x`,
			"4,096 bytes of path":  `cd src; for i in $(seq 60); do d=$(printf "%068d" $i); mkdir $d && cd $d || exit 1; done; echo x >f`,
			"a right-to-left mark": `echo x >"$(printf 'src/a\342\200\256txt.exe')"`,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := attacked(t, script, nil, "sandbox", tier)
				run := v.runs()
				v.wantRefused(run, loop.ReasonScope)
				if strings.ContainsAny(run.Detail, "\n\x1b") || strings.Contains(run.Detail, "\u202e") {
					t.Errorf("detail = %q, want it quoted", run.Detail)
				}
			})
		}
		t.Run("255 bytes are no attack", func(t *testing.T) {
			t.Parallel()
			v := attacked(t, `echo x >src/$(printf '%0255d' 1)`, nil, "sandbox", tier)
			v.wantProposed(v.runs())
		})
	})
}

func TestAttack013AnUnboundedScopeNeverStartsARun(t *testing.T) {
	t.Parallel()
	v := attacked(t, "echo x >README.md", nil)
	for _, scope := range []string{`["*"]`, `["**"]`, `["/"]`, `["../**"]`, `[]`, `["src/**", "**/*"]`, `["src/../**"]`} {
		v.define("scope", scope)
		_, err := v.svc.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "fix"})
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitNotReady {
			t.Errorf("scope %s: %v, want it to be not ready", scope, err)
		}
	}
	v.nothingLanded(runs.View{})
}

func TestAttack016AFileThatBecomesExecutableEndsTheRunRefused(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		for name, script := range map[string]string{
			"a file of the base": "chmod 755 src/a.txt",
			"a new file":         "echo true >src/run.sh; chmod 755 src/run.sh",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := attacked(t, script, nil, "sandbox", tier)
				v.wantRefused(v.runs(), loop.ReasonScope, "allow_exec")
			})
		}
	})
}

func TestAttack017WhatIsProtectedIsRefusedThoughTheScopeCoversIt(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		for path, scope := range map[string]string{
			".github/workflows/ci.yml": `["**/*.yml", "src/**"]`,
			"src/package-lock.json":    `["src/**"]`,
			"src/gate/check.txt":       `["src/**"]`,
			".loops/fix/STATE.md":      `[".loops/**", "**/*.md"]`,
		} {
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				v := attacked(t, "mkdir -p $(dirname "+path+"); echo x >"+path, nil, "scope", scope, "protect", `["src/gate/**"]`, "sandbox", tier)
				v.wantKeptOut(v.runs(), path)
			})
		}
	})
}

func TestAttack019AChangeOverTheLimitsEndsTheRunRefused(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		for name, script := range map[string]string{
			"101 files": "for i in $(seq 101); do echo $i >src/$i; done",
			"1,025 KB":  "head -c 1049600 /dev/zero | tr '\\0' 'a\\n' >src/big",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := attacked(t, script, nil, "sandbox", tier)
				v.wantRefused(v.runs(), loop.ReasonScope)
			})
		}
	})
}

func TestAttack020TheLandedTreeIsTheCheckedOneWhateverBitsAFileHas(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		plain := attacked(t, "echo three >src/a.txt", nil, "sandbox", tier).runs()
		v := attacked(t, "echo three >src/a.txt; chmod 6644 src/a.txt; chmod +t src/a.txt", nil, "sandbox", tier)
		run := v.runs()
		v.wantProposed(run)
		if got, want := run.Iterations[0].Tree, plain.Iterations[0].Tree; got == "" || want == "" {
			t.Fatalf("trees %q and %q", got, want)
		}
		if _, err := v.svc.Approvals.Approve(t.Context(), run.Approval, loop.Answer{By: "somebody"}); err != nil {
			t.Fatal(err)
		}
		if got := v.git("rev-parse", "main^{tree}"); got != run.Iterations[0].Tree {
			t.Errorf("main holds %s, checked was %s", got, run.Iterations[0].Tree)
		}
		if got := v.git("ls-tree", "main", "src/a.txt"); !strings.HasPrefix(got, "100644 ") {
			t.Errorf("landed as %q", got)
		}
		info, err := os.Stat(filepath.Join(v.root, "src/a.txt"))
		if err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
			t.Errorf("the checkout has %v, %v", info.Mode(), err)
		}
	})
}

func TestAttack022ASparseFileEndsTheRunRefusedAndFillsNothing(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		v := attacked(t, "truncate -s 1T src/huge || truncate -s 15T src/huge || truncate -s 16G src/huge", nil, "sandbox", tier)
		run := v.runs()
		v.wantRefused(run, loop.ReasonScope, "src/huge", "too_large")
		if run.MS.Overhead > 10_000 {
			t.Errorf("the run took %v ms beside agent and gates", run.MS.Overhead)
		}
	})
}

func TestAttack023SpecialFilesEndTheRunRefusedAndHoldNothingUp(t *testing.T) {
	t.Parallel()
	inTiers(t, func(t *testing.T, tier string) {
		v := attacked(t, "mkfifo src/fifo; mknod src/null c 1 3 2>/dev/null || mkfifo src/null", nil, "sandbox", tier)
		run := v.runs()
		v.wantRefused(run, loop.ReasonScope, "src/fifo", "src/null", "special_file")
		if run.MS.Overhead > 10_000 {
			t.Errorf("the run took %v ms beside agent and gates", run.MS.Overhead)
		}
	})
}
