package compose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestAttack068InFullShellTextInATitleIsInert(t *testing.T) {
	t.Parallel()
	v := caged(t, `printf '%s' "$PAWL_STEP" >src/step; ls src /tmp >>src/marks`, nil,
		"verify", `printf "%s" "$PAWL_STEP" | cmp - src/step && echo "$PAWL_STEP" && ls src /tmp "`+"$HOME"+`"; true; echo owned by the definition >src/own; cat src/own`)
	title := "$(touch src/1 OUT/1) `touch src/2 OUT/2` \"; touch src/3 OUT/3; echo \" '; touch src/4 OUT/4; ' ${{ x }} %s"
	title = strings.ReplaceAll(title, "OUT", v.outside)
	v.write(".loops/fix/STATE.md", "# fix — STATE\n_Updated: 2026-01-01T00:00:00Z · run #0 · readiness 100/100_\n\n"+
		"## Priority   (act on these next)\n- [P1] "+title+"\n\n## Watch\n- (none yet)\n\n## Noise\n- (none yet)\n")
	run := v.runs()
	if got := v.said(run, "src/step"); !strings.HasSuffix(got, " "+title) {
		t.Errorf("the agent reads %q, want %q", got, title)
	}
	got := evidence(t, run)
	if !strings.Contains(got, title+"\n") || !strings.HasSuffix(got, "owned by the definition") {
		t.Errorf("the gate says:\n%s", got)
	}
	for line := range strings.Lines(strings.ReplaceAll(got, title, "") + "\n" + v.said(run, "src/marks")) {
		if mark := strings.TrimSpace(line); len(mark) == 1 && strings.Contains("1234", mark) {
			t.Errorf("the title was run: there is a file %q", line)
		}
	}
	if marks, err := filepath.Glob(filepath.Join(v.outside, "[0-9]")); err != nil || len(marks) > 0 {
		t.Errorf("the title was run: %v %v", marks, err)
	}
}

func TestAttack073InFullTheRuntimesOwnVariablesStayOutside(t *testing.T) {
	t.Parallel()
	environ := os.Environ()
	for _, name := range []string{
		"GH_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "LD_PRELOAD", "LD_LIBRARY_PATH", "GIT_DIR", "GIT_CONFIG_COUNT",
		"NODE_OPTIONS", "BASH_ENV", "ENV", "PYTHONPATH", "PAWL_DATABASE", "PAWL_TOKEN",
	} {
		environ = append(environ, name+"=leaked-"+name)
	}
	const look = "{ env; cat /proc/[0-9]*/environ; } 2>&1 | tr '\\0' '\\n'"
	v := cagedIn(t, environ, look+" >src/env.txt", nil, "setup", "none",
		"verify", look, "sense", look+" | grep -q leaked && exit 3; "+look+" | grep PAWL_LOOP")
	run := v.runs()
	for who, text := range map[string]string{"agent": v.said(run, "src/env.txt"), "gate": evidence(t, run), "sense command": run.Iterations[0].Sensed} {
		if strings.Contains(text, "leaked-") || !strings.Contains(text, "PAWL_LOOP=fix") || strings.Contains(text, "(exit 3)") {
			t.Errorf("the %s has this environment:\n%s", who, text)
		}
	}
}

func TestAttack088InFullTheSwitchEndsWhateverRuns(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]string{"during act": "agent", "during verify": "verify", "during sense": "sense"} {
		for _, at := range []string{".loops/PAUSED", ".loops/fix/PAUSED"} {
			t.Run(name+" by "+at, func(t *testing.T) {
				t.Parallel()
				long := nap(t)
				sleepers := "trap '' TERM; setsid sleep " + long + " & (setsid sleep " + long + " &); sleep " + long
				script, keys := "echo three >src/a.txt", []string{where, sleepers}
				if where == "agent" {
					script, keys = script+"; "+sleepers, nil
				}
				v := caged(t, script, nil, keys...)
				done := make(chan runs.View, 1)
				go func() {
					run, err := v.start()
					if err != nil {
						t.Error(err)
					}
					done <- run
				}()
				eventually(t, time.Minute, "three processes sleep", func() bool { return alive(t, long) >= 3 })
				v.write(at, "")
				pulled := time.Now()
				eventually(t, time.Minute, "all processes are gone", func() bool { return alive(t, long) == 0 })
				t.Logf("gone after %v", time.Since(pulled))
				v.wantPaused(<-done)
				if _, err := v.start(); exitOf(err) != loop.ExitPaused {
					t.Errorf("another run: %v, want paused", err)
				}
			})
		}
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func TestAttack092InFullNothingOfASwarmOutlivesItsTurn(t *testing.T) {
	t.Parallel()
	long := nap(t)
	// Bounded, and each process is the child of none that lives.
	script := `i=0; while [ $i -lt 200 ]; do (trap '' TERM HUP INT; setsid sleep ` + long + ` & setsid sh -c 'trap "" TERM; kill -STOP $$; sleep ` + long + `' &) ; i=$((i+1)); done; echo three >src/a.txt`
	v := caged(t, script, nil, "verify", strings.ReplaceAll(script, "\n", "; "))
	run := v.runs()
	v.wantProposed(run)
	eventually(t, time.Minute, "all processes are gone", func() bool { return alive(t, long) == 0 })
}

func TestAttack122InFullTheAgentWritesNeitherLogNorState(t *testing.T) {
	t.Parallel()
	const script = `for f in run-log.md STATE.md new; do (echo forged >>.loops/fix/$f); (echo forged >.loops/fix/$f); done 2>src/said
(rm -rf .loops; mv .loops .old; ln -s src .loops) 2>>src/said; rm -f .loops/src; echo three >src/a.txt`
	v := caged(t, script, nil, "commit_state", "")
	first := v.runs()
	wantReadOnly(t, v.said(first, "src/said"), ".loops/fix/run-log.md", ".loops/fix/STATE.md", ".loops/fix/new")
	// Once more where both are in the tree.
	v.commits(map[string]string{".loops/fix/run-log.md": readFile(t, filepath.Join(v.root, ".loops/fix/run-log.md")), ".loops/fix/STATE.md": readFile(t, filepath.Join(v.root, ".loops/fix/STATE.md"))})
	second := v.runs()
	wantReadOnly(t, v.said(second, "src/said"), ".loops/fix/run-log.md", ".loops/fix/STATE.md", ".loops/fix/new")
	for _, name := range []string{"run-log.md", "STATE.md"} {
		if text := readFile(t, filepath.Join(v.root, ".loops/fix", name)); strings.Contains(text, "forged") {
			t.Errorf("%s is now:\n%s", name, text)
		}
	}
	v.accounted(second, "outcome=branch-proposed")
	audit, err := v.svc.Audit.Verify(t.Context(), "fix")
	must(t, err)
	if !audit.Intact {
		t.Errorf("audit = %+v", audit)
	}
}

func TestAttack059InFullWhatTheAgentPutsIntoCachesReachesNobody(t *testing.T) {
	t.Parallel()
	files := map[string]string{"go.mod": "module x\n\ngo 1.21\n", "src/a.go": "package src\n\nfunc A() int { return 1 }\n", "src/b.go": "package src\n\nfunc B() int { return A() }\n"}
	const script = `go build ./src; dir=$(go env GOCACHE); mod=$(go env GOMODCACHE)
find "$dir" -type f -newer go.mod -name '*-[ad]' | head -100 >src/entries.txt
while read -r f; do echo planted-7f3a >"$f"; done <src/entries.txt
mkdir -p "$mod" "$HOME/.cache/go-build"; for d in "$dir" "$mod" "$HOME" "$HOME/.cache/go-build" /tmp; do echo planted-7f3a >"$d/planted.txt" && echo "$d" >>src/written.txt; done
true`
	// In a cache with few entries they are found soon.
	environ := proc.WithVariables(os.Environ(), "GOCACHE="+t.TempDir())
	v := cagedIn(t, environ, script, files, "sense", "go build ./src && echo something", "setup", "none",
		"verify", `dir=$(go env GOCACHE); ! find "$dir" -type f -newer go.mod -name '*-[ad]' -size -20c -exec grep -lx planted-7f3a {} + | grep . && ! ls "$dir/planted.txt" "$(go env GOMODCACHE)/planted.txt" "$HOME/planted.txt" "$HOME/.cache/go-build/planted.txt" /tmp/planted.txt 2>/dev/null && go vet ./src && echo clean`)
	for range 2 {
		run := v.runs()
		if run.Outcome == loop.OutcomeFailed {
			t.Fatalf("the gate says:\n%s", evidence(t, run))
		}
		written := v.said(run, "src/written.txt")
		if n := strings.Count(written, "\n") + 1; n < 4 {
			t.Errorf("the agent wrote into %q only", written)
		}
		if entries := v.said(run, "src/entries.txt"); !strings.Contains(entries, "-a\n") && !strings.HasSuffix(entries, "-a") {
			t.Errorf("the agent found no entries to replace:\n%s", entries)
		}
		if got := evidence(t, run); !strings.HasSuffix(got, "clean") {
			t.Errorf("the gate says:\n%s", got)
		}
	}
}

func TestAttack025InFullTheAgentsGitReachesNoRepositoryOfTheHost(t *testing.T) {
	t.Parallel()
	const script = `mark='touch OUTSIDE/ran'
echo work >src/b.txt; git add -A; git commit -qm mine; git tag evil; git checkout -q -b evil; git branch -f main HEAD
echo stashed >src/c.txt; git add -A; git stash -q; git stash pop -q
git config core.fsmonitor "$mark"; git config alias.st "!$mark"; git config filter.x.clean "$mark"; git config core.hooksPath .git/hooks
mkdir -p .git/hooks; for h in post-checkout pre-commit reference-transaction post-index-change; do printf '#!/bin/sh\n%s\n' "$mark" >.git/hooks/$h; chmod +x .git/hooks/$h; done
printf '[core]\n\tfsmonitor = %s\n\tpager = %s\n\tsshCommand = %s\n' "$mark" "$mark" "$mark" >>.git/config
echo '* filter=x' >.git/info/attributes
git update-ref refs/heads/main HEAD; git for-each-ref >src/refs.txt; cat .git/objects/info/alternates | while read -r d; do (echo x >"$d/evil") 2>>src/said; done
git gc -q --prune=now; echo three >src/a.txt; true`
	v := caged(t, script, nil)
	v.commits(map[string]string{"agent.sh": obedient(strings.ReplaceAll(script, "OUTSIDE", v.outside))})
	before := v.kept()
	run := v.runs()
	if refs := v.said(run, "src/refs.txt"); !strings.Contains(refs, "refs/heads/evil") {
		t.Errorf("the agent's own git did nothing: %q", refs)
	}
	if said := v.said(run, "src/said"); !strings.Contains(said, "Read-only file system") {
		t.Errorf("the objects of the host are answered %q", said)
	}
	v.git("status")
	v.git("checkout", "-q", run.Branch)
	v.git("checkout", "-q", "main")
	v.intact(before)
	if _, err := os.Lstat(filepath.Join(v.outside, "ran")); err == nil {
		t.Error("a program of the agent ran on the host")
	}
	v.nothingLost(run)
}

// nothingLost holds that a run's branch has what its agent wrote.
func (v *victim) nothingLost(run runs.View) {
	v.t.Helper()
	for path, want := range map[string]string{"src/a.txt": "three", "src/b.txt": "work", "src/c.txt": "stashed"} {
		if got := v.git("show", run.Branch+":"+path); got != want {
			v.t.Errorf("%s is proposed as %q, want %q", path, got, want)
		}
	}
}
