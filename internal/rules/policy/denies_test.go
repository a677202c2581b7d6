package policy

import (
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestWhatTheGuardrailsForbidIsNotAskedAbout(t *testing.T) {
	for name, c := range map[string]struct {
		denies loop.Denial
		line   string
		denied bool
	}{
		"a push":                          {loop.DenyPush, "git push origin main", true},
		"a push is asked about otherwise": {loop.DenyDeploy, "git push origin main", false},
		"a forced push":                   {loop.DenyForcePush, "git push --force-with-lease origin x", true},
		"a forced push by a refspec":      {loop.DenyForcePush, "git push origin +main", true},
		"a push that is not forced":       {loop.DenyForcePush, "git push origin main", false},
		"a merge":                         {loop.DenyMerge, "gh pr merge 7", true},
		"a deployment":                    {loop.DenyDeploy, "make build && kubectl apply -f x.yml", true},
		"a network":                       {loop.DenyNetwork, "ssh host uptime", true},
		"no network is used":              {loop.DenyNetwork, "go test ./...", false},
		"rm":                              {loop.DenyDestructive, "rm -r build", true},
		"rm by its path, later":           {loop.DenyDestructive, "cd x && /bin/rm y", true},
		"rm in a shell":                   {loop.DenyDestructive, "bash -c 'cd x; rm y'", true},
		"find deletes":                    {loop.DenyDestructive, "find . -name '*.o' -delete", true},
		"a hard reset":                    {loop.DenyDestructive, "git reset --hard", true},
		"an unreadable line":              {loop.DenyDestructive, "if rm x", true},
		"words that only begin so":        {loop.DenyDestructive, "format firmware resetter", false},
		"a text":                          {loop.DenyDestructive, "echo 'no reset here'", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := guardOf(t, "src/**")
			g.Denies = []loop.Denial{c.denies}
			a := g.Judge(Call{Kind: CallRun, Command: c.line})
			if denied := a.Rule == RuleDenied && !a.Allow && !a.Ask; denied != c.denied || a.Words == "" {
				t.Errorf("Judge(%q) = %+v, want it denied: %v", c.line, a, c.denied)
			}
		})
	}
	g := Guard{Denies: []loop.Denial{loop.DenyDestructive}}
	if a := g.Judge(Call{Kind: CallRun, Argv: []string{"sudo", "id"}}); a.Rule != RuleDenied {
		t.Errorf("a program without a shell: %+v, want it denied", a)
	}
}

func TestFilesOfTheBaseAreNotDeletedWhereNothingDestructiveIsAllowed(t *testing.T) {
	gone := Change{Path: "src/a.go", Old: File{Mode: modeFile, Size: 1}}
	made := Change{Path: "src/b.go", New: File{Mode: modeFile, Size: 1}}
	scope := scopeOf(t, "src/**")
	if refused := scope.Check([]Change{gone, made}, nil, Limits{}); len(refused) > 0 {
		t.Errorf("refused = %v, want none", refused)
	}
	refused := scope.Check([]Change{gone, made}, nil, Limits{NoDelete: true})
	if len(refused) != 1 || refused[0].Path != gone.Path || refused[0].Code != CodeDeletion {
		t.Errorf("refused = %v, want the deletion", refused)
	}
}
