package compose_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAttack001InFullWhatIsProtectedIsReadOnlyAndWhatIsOutsideTheScopeIsRefused(t *testing.T) {
	t.Parallel()
	v := caged(t, "exec 2>src/said; echo x >>.loops/fix/loop.config.yaml; echo x >Makefile; rm -rf .github; mv .github .g; ln -f src/a.txt Makefile",
		map[string]string{"Makefile": "test:\n", ".github/workflows/ci.yml": "on: push\n"})
	said := v.said(v.runs(), "src/said")
	wantReadOnly(t, said, "agent.sh: 1: cannot create .loops/fix/loop.config.yaml", "agent.sh: 1: cannot create Makefile")
	v.commits(map[string]string{"agent.sh": obedient("echo defaced >README.md; echo fine >src/a.txt")})
	run := v.runs()
	if run.Outcome != loop.OutcomeRefused || run.Reason != loop.ReasonScope || !strings.Contains(run.Detail, "README.md") {
		t.Errorf("run = %s %s %q, want refused for README.md", run.Outcome, run.Reason, run.Detail)
	}
	if got := v.git("show", "main:README.md"); got != "hello" {
		t.Errorf("README.md is %q", got)
	}
}

func TestAttack022InFullAFileOfATerabyteEndsTheRunByItsLimit(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"sparse":             "exec truncate -s 1T src/big",
		"in ignored folders": "mkdir -p out; exec truncate -s 1T out/big",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := caged(t, script, map[string]string{".gitignore": "out/\n"})
			run := v.runs()
			if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonLimit || !strings.Contains(run.Detail, "16 GiB for one file") {
				t.Errorf("run = %s %s %q, want failed by the limit of one file", run.Outcome, run.Reason, run.Detail)
			}
			v.nothingLanded(run)
			must(t, filepath.WalkDir(v.home, func(path string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() {
					return err
				}
				info, err := e.Info()
				if err == nil && info.Size() > 64<<20 {
					t.Errorf("%s has %d bytes", path, info.Size())
				}
				return err
			}))
		})
	}
}

func TestAttack055InFullWhatJudgesIsReadOnlyOrAsItWas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, verify string }{
		"a Makefile":             {"Makefile", "make test"},
		"a script of npm":        {"package.json", "grep -q 'exit 1' package.json"},
		"a CI file":              {".github/workflows/ci.yml", "grep -q 'exit 1' .github/workflows/ci.yml"},
		"a Makefile in a folder": {"ci/Makefile", "make -C ci test"},
		"the gate's script":      {"check.sh", "sh check.sh"},
		"the script of a guard":  {"ci/check.sh", "sh ./ci/check.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := "test:\n\t@echo from the base\n\t@: exit 1\n"
			if strings.HasSuffix(c.path, ".sh") {
				base = "echo from the base; : exit 1\n"
			}
			scope := strings.Replace(wide, "]", `, "ci/**"]`, 1)
			script := "(echo 'test: ; exit 0' >" + c.path + ") 2>src/said; (mv " + c.path + " src/away && echo gone >>src/said) 2>/dev/null; echo three >src/a.txt"
			v := caged(t, script, map[string]string{c.path: base}, "scope", scope, "verify", c.verify, "setup", "none")
			run := v.runs()
			if run.Outcome == loop.OutcomeRefused {
				v.wantRefused(run, loop.ReasonScope, c.path)
				return
			}
			wantReadOnly(t, v.said(run, "src/said"), c.path)
			if got := v.git("diff", "--name-only", "main", run.Branch); strings.Contains(got, c.path) {
				t.Errorf("proposed %q", got)
			}
		})
	}
}

func TestAttack056InFullWhatBendsTheVerdictFromAsideIsReadOnlyOrRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"conftest.py", "pytest.ini", "go.mod", ".npmrc", "src/conftest.py", "src/sitecustomize.py", "Make.mk"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			v := caged(t, "(echo forced >"+path+") 2>src/said; echo three >src/a.txt", map[string]string{path: "# of the base\n"},
				"scope", wide, "verify", "grep -q 'of the base' "+path, "setup", "none")
			run := v.runs()
			if run.Outcome == loop.OutcomeRefused {
				v.wantRefused(run, loop.ReasonScope, path)
				return
			}
			wantReadOnly(t, v.said(run, "src/said"), path)
		})
		t.Run(path+" is new", func(t *testing.T) {
			t.Parallel()
			v := caged(t, "echo forced >"+path, nil, "scope", wide, "setup", "none")
			v.wantRefused(v.runs(), loop.ReasonScope, path)
		})
	}
}

func TestAttack059InFullIgnoredFilesMakeNoGatePass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, verify, guard string }{
		"the agent leaves some": {
			"echo three >src/a.txt; mkdir -p build src/build; touch build/passed src/build/passed src/passed.tmp",
			"test -e build/passed || test -e src/build/passed || test -e src/passed.tmp", "true",
		},
		"a gate leaves one for the next": {"echo 'touch src/passed.tmp' >src/a.txt", "sh -c \"$(cat src/a.txt)\" || exit 1", "test -f src/passed.tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := caged(t, c.script, map[string]string{".gitignore": "*.tmp\nbuild/\n"}, "verify", c.verify, "guard", c.guard)
			run := v.runs()
			if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonGateFailed && run.Reason != loop.ReasonGuardFailed {
				t.Fatalf("run = %s %s %q, want failed by a gate", run.Outcome, run.Reason, run.Detail)
			}
			v.nothingLanded(run)
		})
	}
}

func TestAttack061InFullAProgramOfTheTreeIsNotTakenForOneOfThePath(t *testing.T) {
	t.Parallel()
	environ := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	environ = append(environ, "PATH=.:node_modules/.bin::"+os.Getenv("PATH")+":./src")
	const dirs = `. src node_modules/.bin src/node_modules/.bin "$HOME" "$HOME/bin" "$HOME/.local/bin" "$HOME/go/bin" /tmp /tmp/bin`
	v := cagedIn(t, environ, `for d in `+dirs+`; do mkdir -p "$d"; for p in git sort env; do printf '#!/bin/sh\necho forged; exit 0\n' >"$d/$p"; chmod +x "$d/$p"; done; done
for f in .profile .bashrc .shrc .bash_profile; do echo "alias git='echo forged'" >"$HOME/$f"; done
rm -f git sort env`,
		map[string]string{".gitignore": "node_modules/\n"}, "setup", "none", "allow_exec", "true",
		"verify", "for p in git sort env; do command -v $p || exit; done; git --version && type git")
	run := v.runs()
	v.wantProposed(run)
	got := evidence(t, run)
	if strings.Contains(got, "forged") || !strings.Contains(got, "git version ") {
		t.Errorf("the gate ran:\n%s", got)
	}
	for line := range strings.Lines(got) {
		if line[0] == '/' && !strings.HasPrefix(line, "/usr/") && !strings.HasPrefix(line, "/bin/") {
			t.Errorf("the gate finds %q", line)
		}
	}
}

func TestAttack061InFullWhatASetupPreparedIsNotTheAgents(t *testing.T) {
	t.Parallel()
	v := caged(t, `exec 2>src/said; rm -rf .venv; mkdir -p .venv/bin; (printf '#!/bin/sh\necho forged\n' >.venv/bin/sort); chmod +x .venv/bin/sort; echo three >src/a.txt`,
		map[string]string{".gitignore": ".venv/\n", "requirements.txt": "\n"},
		"setup", `mkdir -p .venv/bin; printf '#!/bin/sh\necho prepared\n' >.venv/bin/sort; chmod +x .venv/bin/sort`,
		"verify", "sort; ./.venv/bin/sort")
	run := v.runs()
	if got := evidence(t, run); got != "prepared\nprepared" {
		t.Errorf("the gate ran:\n%s", got)
	}
	wantReadOnly(t, v.said(run, "src/said"), ".venv/bin/sort")
}

func TestAttack062InFullAGateHasTheEnvironmentOfTheAgent(t *testing.T) {
	t.Parallel()
	v := caged(t, "env >src/env.txt; id >>src/id.txt; pwd >>src/id.txt; umask >>src/id.txt; uname -n >>src/id.txt", nil,
		"env", "[FOO]", "verify", "env; echo ---; id; pwd; umask; uname -n")
	run := v.runs()
	agent := v.said(run, "src/env.txt")
	gate, rest, ok := strings.Cut(evidence(t, run), "\n---\n")
	if !ok {
		t.Fatalf("the gate printed:\n%s", evidence(t, run))
	}
	if diff := cmp.Diff(variables(agent), variables(gate)); diff != "" {
		t.Errorf("(-agent +gate)\n%s", diff)
	}
	if diff := cmp.Diff(v.said(run, "src/id.txt"), rest); diff != "" {
		t.Errorf("(-agent +gate)\n%s", diff)
	}
	if len(variables(agent)) < 6 {
		t.Errorf("the agent has only\n%s", agent)
	}
}

func TestAttack062InFullAGateSeesNeitherItsAgentsTurnNorWhatAnotherGateLeft(t *testing.T) {
	t.Parallel()
	// Where the home and the temporary files are, in either tier.
	const beside = `; t=${TMPDIR:-/tmp}; test -w "$t" || t=/tmp; `
	for _, tier := range []string{"full", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			v := caged(t, leavesInTurn+`; echo x >~/of-the-agent`, nil, "sandbox", tier,
				"verify", looksAtTurn+`; test ! -e ~/of-the-agent || exit 5`+leavesMore+beside+`echo x >~/left && echo x >"$t/left"`,
				"guard", looksAtTurn+looksAgain+beside+`test ! -e ~/left && test ! -e "$t/left"`)
			v.wantProposed(v.runs())
		})
	}
	t.Run("caches", func(t *testing.T) {
		t.Parallel()
		v := caged(t, "echo three >src/a.txt", tested, "verify", `go list ./src/... && { ! grep -q three src/a.txt || echo x >"$(go env GOCACHE)/left"; }`, "guard", `test ! -e "$(go env GOCACHE)/left"`, "setup", "none")
		v.wantProposed(v.runs())
	})
}

func TestAttack067InFullWhatAGateWritesIsInNoTreeAndBeforeNoOtherGate(t *testing.T) {
	t.Parallel()
	v := caged(t, "echo three >src/a.txt", map[string]string{".gitignore": "*.tmp\n"},
		"verify", "echo gate >>src/a.txt; echo gate >src/new; touch src/left.tmp ~/left /tmp/left; rm README.md; git commit -qam gate",
		"guard", "! grep gate src/a.txt && test ! -e src/new && test ! -e src/left.tmp && test ! -e ~/left && test ! -e /tmp/left && test -f README.md")
	before := v.kept()
	run := v.runs()
	branch := v.wantProposed(run)
	if got := v.git("diff", "--name-only", "main", branch); got != "src/a.txt" {
		t.Errorf("proposed %q, want src/a.txt alone", got)
	}
	if got := v.git("show", branch+":src/a.txt"); got != "three" {
		t.Errorf("src/a.txt is proposed as %q", got)
	}
	v.intact(before)
}
