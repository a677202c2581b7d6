package bootlink

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const fullLink = "# Agent link\n" +
	"\n" +
	"## Boot\n" +
	"\n" +
	"| Field | Value | Note |\n" +
	"|---|---|---|\n" +
	"| Boot Repository | `acme/agent-boot` | read-only |\n" +
	"| **Boot Reference** | `main` | |\n" +
	"| Boot Version: | `1.0.0` | |\n" +
	"| Contract Repository | `acme/contract` |\n" +
	"| Owner | the platform team |\n" +
	"\n" +
	"| File | Path |\n" +
	"|---|---|\n" +
	"| State | `memory/STATE.json` |\n" +
	"| Tasks | `memory/TODO.json` |\n" +
	"| Changelog | `docs/CHANGES.md` |\n" +
	"\n" +
	"| Directory | Holds |\n" +
	"|---|---|\n" +
	"| `memory/` | state |\n" +
	"| Results | `out/` |\n" +
	"\n" +
	"```\n| Boot Version | `9.9.9` |\n```\n" +
	"<!-- | Boot Version | `8.8.8` | -->\n"

func parsed(t *testing.T, src string) Link {
	t.Helper()
	l, findings := ParseLink([]byte(src))
	if len(findings) > 0 {
		t.Fatalf("findings %v of\n%s", findings, src)
	}
	return l
}

func TestALinkIsReadFromItsTables(t *testing.T) {
	want := Link{
		Repository: "acme/agent-boot", Reference: "main", Version: Version{1, 0, 0}, Contract: "acme/contract",
		State: "memory/STATE.json", Tasks: "memory/TODO.json", Changelog: "docs/CHANGES.md", Directories: []string{"memory/", "out/"},
	}
	for name, src := range map[string]string{
		"as written": fullLink, "with CRLF": strings.ReplaceAll(fullLink, "\n", "\r\n"), "with a byte-order mark": "\ufeff" + fullLink,
		"in other case": strings.ReplaceAll(fullLink, "Boot Reference", "boot reference"),
	} {
		t.Run(name, func(t *testing.T) {
			got := parsed(t, src)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Link{}, "Rows")); diff != "" {
				t.Error(diff)
			}
			var labels []string
			for _, row := range got.Rows {
				labels = append(labels, row.Label)
			}
			if !slices.Contains(labels, "Owner") || got.Rows[1].Cells[2] != "read-only" {
				t.Errorf("rows and columns that nobody knows are not kept: %v", labels)
			}
		})
	}
}

func TestARowIsReadAsPeopleWriteIt(t *testing.T) {
	for name, c := range map[string]struct{ row, want string }{
		"the first text in backticks":      {"| Boot Reference | see | `v1` | `v2` |", "v1"},
		"the head of its table":            {"| Boot Reference | `v1` |\n|---|---|", "v1"},
		"without backticks":                {"| Boot Reference | v1 |", "v1"},
		"a backtick that is alone":         {"| Boot Reference | v1 | a ` b |", "v1"},
		"without a bar at the end":         {"| Boot Reference | `v1`", "v1"},
		"indented, with spaces at the end": {"  |Boot Reference|`v1`|  ", "v1"},
		"a bar in backticks":               {"| Boot Reference | `v1` | `a|b` |", "v1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := parsed(t, strings.Replace(boot(""), "| Boot Reference | `v1` |", "\n"+c.row+"\n", 1))
			if l.Reference != c.want {
				t.Errorf("the reference is %q, want %q", l.Reference, c.want)
			}
		})
	}
}

func boot(rows string) string {
	return "| Boot Repository | `a/b` |\n| Boot Reference | `v1` |\n| Boot Version | `1.2.3` |\n" + rows
}

func TestWhatALinkDoesNotSayHasADefault(t *testing.T) {
	want := Link{
		Repository: "a/b", Reference: "v1", Version: Version{1, 2, 3}, State: "agent/STATE.json", Tasks: "agent/TODO.json", Changelog: "CHANGELOG.md",
		Directories: []string{"agent/", "inputs/", "outputs/", "audits/", "scratch/"},
	}
	for name, rows := range map[string]string{
		"no table of paths":                        "",
		"another table with a row of that name":    "\n| State | idle |\n",
		"another table with a column of that name": "\n| State | Meaning |\n|---|---|\n| green | good |\n",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, parsed(t, boot(rows)), cmpopts.IgnoreFields(Link{}, "Rows")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEachFaultOfALinkIsAtItsPlaceWithItsReason(t *testing.T) {
	paths := func(state string) string {
		return boot("\n| State | `" + state + "` |\n| Tasks | `agent/TODO.json` |\n| Changelog | `CHANGELOG.md` |\n")
	}
	for name, c := range map[string]struct {
		src    string
		reason loop.Reason
		want   string
	}{
		"no boot reference: an empty file": {"", loop.ReasonLinkNoBoot, "1:1: missing: Boot Repository, Boot Reference, Boot Version; add a row for each, with its value in backticks"},
		"no boot reference: no repository": {"| Boot Reference | `v1` |\n| Boot Version | `1.2.3` |\n", loop.ReasonLinkNoBoot, "1:3: missing: Boot Repository; add a row for each, with its value in backticks"},
		"no boot version":                  {"| Boot Repository | `a/b` |\n| Boot Reference | `v1` |\n", loop.ReasonLinkNoVersion, "1:3: Boot Version is missing; add the row: | Boot Version | `1.0.0` |"},
		"the older form":                   {"| Repo | `a/b` |\n| Branch | `main` |\n| Entry | `AGENT_ENTRY.md` |\n", loop.ReasonLinkOlder, "1:3: the older form, with the row 'Repo': Boot Repository, Boot Reference, Boot Version missing; run: pawl boot migrate"},
		"a placeholder":                    {boot("") + "\nMade on {{DATE}}\n", loop.ReasonLinkMalformed, "5:9: '{{DATE}}' is not filled in; write the value"},
		"a placeholder as the value":       {"| Boot Repository | `{{OWNER}}/x` |\n" + strings.SplitAfterN(boot(""), "\n", 2)[1], loop.ReasonLinkMalformed, "1:22: '{{OWNER}}' is not filled in; write the value"},
		"a misspelt row":                   {boot("\n| Changelgo | `docs/CHANGES.md` |\n"), loop.ReasonLinkMalformed, "5:3: 'Changelgo' is not a row of the link; did you mean Changelog?"},
		"an absolute path":                 {paths("/etc/passwd"), loop.ReasonLinkMalformed, "5:12: State: '/etc/passwd' is absolute; write a path below the workspace"},
		"a path of a home":                 {paths("~/STATE.json"), loop.ReasonLinkMalformed, "5:12: State: '~/STATE.json' is absolute; write a path below the workspace"},
		"a path of Windows":                {paths("C:/STATE.json"), loop.ReasonLinkMalformed, "5:12: State: 'C:/STATE.json' is absolute; write a path below the workspace"},
		"a path that leads out":            {paths("agent/../../STATE.json"), loop.ReasonLinkMalformed, "5:12: State: 'agent/../../STATE.json' leads out of the workspace; write a path without .."},
		"a path in git's directory":        {paths(".Git/STATE.json"), loop.ReasonLinkMalformed, "5:12: State: '.Git/STATE.json' is in git's own directory; write another path"},
		"a path with backslashes":          {paths(`agent\STATE.json`), loop.ReasonLinkMalformed, `5:12: State: 'agent\STATE.json' has a backslash; write slashes`},
		"a path that nobody can see":       {paths("\x07/STATE.json"), loop.ReasonLinkMalformed, "5:12: State: '\ufffd/STATE.json' has a character that cannot be printed"},
		"a directory for a file":           {paths("agent/"), loop.ReasonLinkMalformed, "5:12: State: 'agent/' is a directory, not a file"},
		"one path for two files":           {paths("./agent/TODO.json"), loop.ReasonLinkMalformed, "6:12: Tasks: 'agent/TODO.json' is the file of State; write another path"},
		"the path of the link":             {paths("AGENT_LINK.md"), loop.ReasonLinkMalformed, "5:12: State: 'AGENT_LINK.md' is the link itself; write another path"},
		"an empty path":                    {paths(""), loop.ReasonLinkMalformed, "5:12: State is empty; write the value in backticks"},
		"a path too few":                   {boot("\n| State | `agent/STATE.json` |\n| Tasks | `agent/TODO.json` |\n"), loop.ReasonLinkMalformed, "6:3: Changelog is missing in the table; add the row: | Changelog | `CHANGELOG.md` |"},
		"a directory that leads out":       {boot("\n| `../x/` | out |\n"), loop.ReasonLinkMalformed, "5:4: the directory '../x/' leads out of the workspace; write a path without .."},
		"the whole workspace":              {boot("\n| `./` | all |\n"), loop.ReasonLinkMalformed, "5:4: the directory './' is not the path of a file or directory below the workspace"},
		"a word for a version":             {strings.ReplaceAll(boot(""), "1.2.3", "latest"), loop.ReasonLinkMalformed, "3:19: Boot Version: 'latest' is not a version; write three numbers, like 1.0.0"},
		"a repository that is an option":   {strings.ReplaceAll(boot(""), "a/b", "--upload-pack=x"), loop.ReasonLinkMalformed, "1:22: Boot Repository: '--upload-pack=x' is not a repository; write owner/repo, a URL or a path, in backticks"},
		"a reference that is an option":    {strings.ReplaceAll(boot(""), "v1", "-x"), loop.ReasonLinkMalformed, "2:21: Boot Reference: '-x' is not a branch, a tag or a commit"},
		"a reference that is a range":      {strings.ReplaceAll(boot(""), "v1", "a..b"), loop.ReasonLinkMalformed, "2:21: Boot Reference: 'a..b' is not a branch, a tag or a commit"},
		"one row with two values":          {boot("| Boot Reference | `v2` |\n"), loop.ReasonLinkMalformed, "4:3: Boot Reference is 'v2' here and 'v1' in line 2; remove one"},
		"bytes that are not UTF-8":         {boot("") + "é\xff", loop.ReasonLinkMalformed, "4:2: not UTF-8: write the file in UTF-8"},
		"a NUL":                            {boot("") + "\x00", loop.ReasonLinkMalformed, "4:1: contains a NUL"},
		"too long":                         {boot("") + strings.Repeat("x", MaxBytes), loop.ReasonLinkMalformed, "1:1: 1048657 bytes are more than the 1048576 that are read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := ParseLink([]byte(c.src))
			if len(findings) != 1 {
				t.Fatalf("findings = %v, want one", findings)
			}
			if got := findings[0]; got.String() != c.want || got.Reason != c.reason {
				t.Errorf("finding = %s %q\nwant      %s %q", got.Reason, got, c.reason, c.want)
			}
		})
	}
}

func TestALinkThatIsRenderedIsReadAgain(t *testing.T) {
	want := parsed(t, fullLink)
	want.BootPath = "main/agent-boot"
	if text := Render(want); !strings.Contains(text, "| `memory/` |  |") || !strings.Contains(Render(Link{Directories: DefaultDirectories}), "| `outputs/` | results |") {
		t.Errorf("the directories are not explained:\n%s", text)
	}
	if diff := cmp.Diff(want, parsed(t, Render(want)), cmpopts.IgnoreFields(Link{}, "Rows")); diff != "" {
		t.Error(diff)
	}
}

func TestTheOlderFormIsMigratedWithoutChangingTheRest(t *testing.T) {
	other := Link{Repository: "z/z", Reference: "zz", Version: Version{1, 0, 0}}
	for name, c := range map[string]struct{ src, want string }{
		"a table": {
			"# Link\r\n\r\n| Key | Value | Note |\r\n|---|---|---|\r\n| Repo | `a/b` | Repo of rules |\r\n| Branch | `main` | |\r\n| Entry | `ENTRY.md` | |\r\nThe end",
			"# Link\r\n\r\n| Key | Value | Note |\r\n|---|---|---|\r\n| Boot Repository | `a/b` | Repo of rules |\r\n| Boot Reference | `main` | |\r\n| Entry | `ENTRY.md` | |\r\n| Boot Version | `1.0.0` | |\r\nThe end",
		},
		"a table at the end without a newline": {
			"| Repo | `a/b` |\n| Branch | `main` |", "| Boot Repository | `a/b` |\n| Boot Reference | `main` |\n| Boot Version | `1.0.0` |\n",
		},
		"no table": {"# Link", "# Link\n\n| Field | Value |\n|---|---|\n| Boot Repository | `z/z` |\n| Boot Reference | `zz` |\n| Boot Version | `1.0.0` |\n"},
		"the form of today": {
			fullLink, fullLink,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, findings := MigrateLink([]byte(c.src), other)
			if diff := cmp.Diff(c.want, got); diff != "" || len(findings) > 0 {
				t.Errorf("findings %v\n%s", findings, diff)
			}
			again, _ := MigrateLink([]byte(got), other)
			if again != got {
				t.Errorf("a second migration changes it: %s", cmp.Diff(got, again))
			}
		})
	}
	if _, findings := MigrateLink([]byte("| Repo | `a/b` |\n| Branch | `main` |\n"), Link{}); len(findings) != 1 || findings[0].Reason != loop.ReasonLinkNoVersion {
		t.Errorf("without a version the findings are %v", findings)
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(fullLink)
	f.Add(boot("| `a\\|b/` | x |\n||\n|\\|`|`|\n~~~\n| x\n"))
	f.Add("| Repo | `a` |\n<!-- | Branch | \n --> | Branch | `b` |\n|-|\n| Entry | {{x}} |\n")
	f.Add("| Boot Repository | ` ` |\n| State | `../x` | `y` |\n\ufeff| Boot Version: | 1.0.0 |")
	f.Fuzz(func(t *testing.T, src string) {
		l, findings := ParseLink([]byte(src))
		for _, one := range findings {
			if one.Line < 1 || one.Line > strings.Count(src, "\n")+1 || one.Column < 1 || one.Reason.Sentence() == "" || strings.ContainsAny(one.Message, "\n\t\x1b") {
				t.Fatalf("finding %+v", one)
			}
		}
		if migrated, rest := MigrateLink([]byte(src), Link{Repository: "z/z", Reference: "z", Version: Version{1, 0, 0}}); len(rest) == 0 {
			if again, _ := MigrateLink([]byte(migrated), Link{}); again != migrated {
				t.Fatalf("a second migration changes %q to %q", migrated, again)
			}
		}
		if len(findings) > 0 {
			return
		}
		for _, p := range append([]string{l.State, l.Tasks, l.Changelog}, l.Directories...) {
			if strings.HasPrefix(p, "/") || p == "" || strings.Contains("/"+p+"/", "/../") || strings.Contains("/"+strings.ToLower(p)+"/", "/.git/") {
				t.Fatalf("the path %q of %q", p, src)
			}
		}
		if strings.ContainsAny(l.Repository+l.Reference+l.State+l.Tasks+l.Changelog+l.Contract+l.BootPath+strings.Join(l.Directories, ""), "`|") {
			return // cannot be written in a table
		}
		again, wrong := ParseLink([]byte(Render(l)))
		again.Rows, l.Rows = nil, nil
		if diff := cmp.Diff(l, again); diff != "" || len(wrong) > 0 {
			t.Fatalf("%v %s", wrong, diff)
		}
	})
}
