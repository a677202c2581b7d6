package policy

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/shell"
)

// capable is a guard with capabilities, as the table has it.
func capable(tb testing.TB) Guard {
	tb.Helper()
	scope, err := NewScope([]string{"src/**"}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return Guard{
		Scope: scope, Root: "/home/agent/tree", Beside: []string{"/tmp", "/home/agent/turn"}, Hosts: []string{"docs.example.com", "*.example.org"},
		Capabilities: [][]string{
			{"go", "test"}, {"go", "vet"}, {"make", "check"}, {"git", "commit"}, {"psql"}, {"python3"}, {"kubectl"}, {"npm", "install"}, {"./gradlew", "test"}, {"npx", "vitest"}, {"curl"},
		},
	}
}

// outcomeOf names an answer as the table does.
func outcomeOf(a Answer) string { return []string{"run", "ask", "refuse"}[a.strictness()] }

// tableRow is a line of testdata/commands.txt.
type tableRow struct {
	outcome, id, text string
	argv              []string
}

func readTable(tb testing.TB) (rows []tableRow) {
	tb.Helper()
	data, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var entry string
	for line := range strings.Lines(string(data)) {
		entry += line
		begun := strings.HasPrefix(entry, "run ") || strings.HasPrefix(entry, "ask ") || strings.HasPrefix(entry, "refuse ")
		if begun && (strings.Count(entry, "'")%2 == 1 && strings.Contains(entry, "-c '") || strings.HasSuffix(entry, "\\\n")) {
			continue // It goes on in the next line.
		}
		if fields := strings.Fields(entry); begun {
			_, text, _ := strings.Cut(entry, " "+fields[1]+" ")
			text = strings.TrimSpace(text)
			rows = append(rows, tableRow{outcome: fields[0], id: fields[1], text: text, argv: wordsOf(tb, text)})
		}
		entry = ""
	}
	return rows
}

// wordsOf splits a line of the table as a shell splits words, where nothing is expanded.
func wordsOf(tb testing.TB, line string) (words []string) {
	tb.Helper()
	var b strings.Builder
	quote, in := rune(0), false
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		switch c := runes[i]; {
		case quote == 0 && (c == '\'' || c == '"'):
			quote, in = c, true
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(runes) && (quote == 0 || strings.ContainsRune("\\\"", runes[i+1])):
			i++
			b.WriteRune(runes[i])
			in = true
		case quote == 0 && (c == ' ' || c == '\n'):
			if in {
				words = append(words, b.String())
				b.Reset()
			}
			in = false
		default:
			b.WriteRune(c)
			in = true
		}
	}
	if in {
		words = append(words, b.String())
	}
	return words
}

func TestTheTableOfCommands(t *testing.T) {
	rows, g := readTable(t), capable(t)
	count := map[string]int{}
	for _, row := range rows {
		a := g.JudgeCommand(row.argv)
		if got := outcomeOf(a); got != row.outcome || a.Words == "" || a.Rule == "" {
			t.Errorf("%s %q is %s (%s: %s), want %s", row.id, row.argv, got, a.Rule, a.Words, row.outcome)
		}
		count[row.outcome]++
		count[row.id]++
		if row.id != "-" && row.outcome == "run" {
			t.Errorf("the trick %s %s counts as allowed", row.id, row.text)
		}
	}
	if len(rows) < 200 || count["run"] < 60 || count["ask"] < 60 || count["refuse"] < 60 {
		t.Errorf("%d rows, %v: the table has 200 and more, of each outcome", len(rows), count)
	}
	for _, id := range []string{"C43", "C44", "C46", "C47", "C49"} {
		if count[id] == 0 {
			t.Errorf("the table has no row of %s", id)
		}
	}
}

func TestAttack046NoShellTrickInACommandCountsAsAllowed(t *testing.T) {
	g := capable(t)
	for _, row := range readTable(t) {
		if row.id == "-" {
			continue
		}
		if a := g.JudgeCommand(row.argv); a.Allow {
			t.Errorf("%s %q is run: %+v", row.id, row.argv, a)
		}
	}
}

// wraps are ways to have a command run by another one.
var wraps = map[string]func(argv []string) []string{
	"env":      prepended("env"),
	"env CI":   prepended("env", "CI=1"),
	"env -i":   prepended("env", "-i"),
	"nice":     prepended("nice", "-n", "5"),
	"timeout":  prepended("timeout", "-k", "1", "5"),
	"command":  prepended("command"),
	"nohup":    prepended("nohup"),
	"time":     prepended("time"),
	"xargs":    prepended("xargs", "-0"),
	"sudo":     prepended("sudo"),
	"setsid":   prepended("setsid"),
	"busybox":  prepended("busybox"),
	"parallel": prepended("parallel"),
	"path":     prepended("env", "PATH=."),
	"sh":       inShell("sh", "-c"),
	"bash -lc": inShell("bash", "-lc"),
	"find":     func(argv []string) []string { return append(append([]string{"find", ".", "-exec"}, argv...), ";") },
	"find plus": func(argv []string) []string {
		return append(append([]string{"find", ".", "-execdir"}, argv...), "{}", "+")
	},
	"list": func(argv []string) []string {
		return []string{"sh", "-c", "ls; " + quoted(argv) + " && pwd"}
	},
	"group":  func(argv []string) []string { return []string{"sh", "-c", "if ls; then ( " + quoted(argv) + "); fi"} },
	"subst":  func(argv []string) []string { return []string{"bash", "-c", "echo \"$(" + quoted(argv) + ")\""} },
	"lookup": func(argv []string) []string { return []string{"bash", "-c", "ls | " + quoted(argv) + " | wc"} },
}

func prepended(words ...string) func([]string) []string {
	return func(argv []string) []string { return append(slices.Clone(words), argv...) }
}

func inShell(shell, option string) func([]string) []string {
	return func(argv []string) []string { return []string{shell, option, quoted(argv)} }
}

// quoted writes words for a shell.
func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

func TestNoWrapperMakesAnAnswerWeaker(t *testing.T) {
	rows, g := readTable(t), capable(t)
	names := make([]string, 0, len(wraps))
	for name := range wraps {
		names = append(names, name)
	}
	slices.Sort(names)
	pieces := []string{"ls", "rm", "git", "push", "-delete", "-exec", "--force", "x", "/etc/passwd", "npm", "run", "sh", "-c", "rm x", "$(rm x)", "go", "test", "{}", "A=1", "-n", "5", "curl", "-X", "DELETE"}
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SampledFrom(rows).Draw(t, "row").argv
		if rapid.Bool().Draw(t, "drawn") {
			argv = rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(t, "words")
		}
		if strings.HasPrefix(argv[0], "-") || strings.Contains(argv[0], "=") || slices.Contains(argv[1:], ";") || slices.Contains(argv[1:], "+") {
			t.Skip("an option, an assignment or an end for the wrapper itself")
		}
		bare := g.JudgeCommand(argv)
		wrapped := argv
		for range rapid.IntRange(1, 3).Draw(t, "depth") {
			wrapped = wraps[rapid.SampledFrom(names).Draw(t, "wrapper")](wrapped)
		}
		if a := g.JudgeCommand(wrapped); a.strictness() < bare.strictness() {
			t.Fatalf("%q is %s (%s), and wrapped as %q it is %s", argv, outcomeOf(bare), bare.Words, wrapped, outcomeOf(a))
		}
	})
}

func TestCapabilitiesOnlyAllowMoreAndNeverLiftAnIrreversibleWord(t *testing.T) {
	rows := readTable(t)
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SampledFrom(rows).Draw(t, "row")
		g := Guard{Scope: scopeOf2(t, "src/**"), Root: "/home/agent/tree", Hosts: []string{"docs.example.com"}}
		bare := g.JudgeCommand(row.argv)
		g.Capabilities = [][]string{row.argv[:rapid.IntRange(1, len(row.argv)).Draw(t, "words")]}
		more := g.JudgeCommand(row.argv)
		if more.strictness() > bare.strictness() || bare.Ask && more.Allow {
			t.Fatalf("%q is %s, and with %q it is %s (%s)", row.argv, outcomeOf(bare), g.Capabilities, outcomeOf(more), more.Words)
		}
	})
}

func scopeOf2(t *rapid.T, globs ...string) Scope {
	s, err := NewScope(globs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestALoopThatOnlyReportsRunsWhatReads(t *testing.T) {
	g := capable(t)
	g.ReportOnly = true
	for line, want := range map[string]string{
		"ls": "run", "cat README.md": "run", "git diff": "run", "find . -name x": "run", "env": "run", "sh -c 'ls | wc'": "run", "env CI=1 ls": "run",
		"npm test": RuleReportOnly, "go test ./...": RuleReportOnly, "curl https://docs.example.com/x": RuleReportOnly, "rm x": RuleReportOnly, "find . -delete": RuleReportOnly,
		"git branch -D x": RuleReportOnly, "sudo ls": RuleReportOnly, "sh -c 'echo x > src/a'": RuleReportOnly, "node x": RuleReportOnly,
	} {
		a := g.JudgeCommand(wordsOf(t, line))
		if a.Rule != want || a.Ask {
			t.Errorf("%s: %+v, want %s", line, a, want)
		}
	}
}

func TestWhatGuardrailsForbidIsRefusedAndNobodyIsAsked(t *testing.T) {
	for line, denies := range map[string]loop.Denial{
		"rm x": loop.DenyDestructive, "sh -c 'ls; rm x'": loop.DenyDestructive, "find . -delete": loop.DenyDestructive, "git push": loop.DenyPush, "git push --force": loop.DenyForcePush,
		"curl https://docs.example.com/x": loop.DenyNetwork, "gh pr merge 7": loop.DenyMerge, "kubectl apply -f x": loop.DenyDeploy,
	} {
		g := capable(t)
		g.Denies = []loop.Denial{denies}
		if a := g.JudgeCommand(wordsOf(t, line)); a.Rule != RuleDenied || a.Allow || a.Ask {
			t.Errorf("%s: %+v, want it denied", line, a)
		}
	}
}

func TestWhyACommandIsNotRun(t *testing.T) {
	g := capable(t)
	for line, rule := range map[string]string{
		"''": RuleUnnamed, "ls a\x00b": RuleNUL, "ls \u200b": string(CodeControlChar), "node x": RuleUnlisted, "sh x": RuleUnclear, "env PATH=. ls": RuleVariable,
		"rm x": RuleIrreversible, "git push": RulePush, "curl -X POST docs.example.com": RuleUpload, "curl https://evil.test": RuleNetwork, "cat /etc/passwd": RuleOutside,
		"sh -c 'ls > README.md'": string(CodeScope), "sh -c 'ls > src/a_test.go'": string(CodeProtected), "sh -c 'ls > .loops/x'": string(CodeNever),
		"ls " + strings.Repeat("a", longest): RuleUnclear, strings.Repeat("env ", 300) + "ls": RuleUnclear,
	} {
		if a := g.JudgeCommand(wordsOf(t, line)); a.Rule != rule || a.Allow {
			t.Errorf("%.60s: %+v, want %s", line, a, rule)
		}
	}
	if a := g.JudgeCommand(nil); a.Rule != RuleUnnamed {
		t.Errorf("nothing: %+v", a)
	}
}

// TestEveryProgramOfTheListIsOneWord holds that no entry of the list is a wrapper or a
// shell, which would allow whatever stands behind it.
func TestNoEntryOfTheListRunsAnotherProgram(t *testing.T) {
	for _, c := range AutoRuns {
		if _, wraps := shell.Behind(c.Argv); (wraps || shells[c.Argv[0]]) && c.Argv[0] != "env" {
			t.Errorf("%q runs another program", c.Argv)
		}
		if isIrreversible(c.Argv[len(c.Argv)-1]) {
			t.Errorf("%q cannot be taken back", c.Argv)
		}
	}
}

func FuzzJudgeCommand(f *testing.F) {
	for _, row := range readTable(f) {
		f.Add(strings.Join(row.argv, "\x01"))
	}
	g := capable(f)
	f.Fuzz(func(t *testing.T, text string) {
		argv := strings.Split(text, "\x01")
		a := g.JudgeCommand(argv)
		if a.Words == "" || a.Rule == "" || a.Allow && a.Ask {
			t.Fatalf("JudgeCommand(%q) = %+v", argv, a)
		}
		if b := g.JudgeCommand([]string{"sh", "-c", quoted(argv)}); b.strictness() < a.strictness() {
			t.Fatalf("%q is %s (%s), and in a shell it is %s", argv, outcomeOf(a), a.Words, outcomeOf(b))
		}
	})
}
