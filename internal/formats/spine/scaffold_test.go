package spine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

var tiers = []loop.Tier{loop.TierReport, loop.TierAssisted, loop.TierUnattended}

// made is the files of a new loop by name.
func made(t rapid.TB, b format.LoopRequest) map[string]string {
	t.Helper()
	files, err := Scaffold(b)
	if err != nil {
		t.Fatalf("Scaffold(%+v) = %v", b, err)
	}
	byName := map[string]string{}
	for _, f := range files {
		byName[f.Name] = string(f.Body)
	}
	return byName
}

func TestOnlyALoopWhoseGoalAreItsGatesSensesThem(t *testing.T) {
	for name, c := range map[string]struct {
		blank format.LoopRequest
		has   []string
		not   []string
	}{
		"ci-watch proposes": {format.LoopRequest{Pattern: "ci-watch", Tier: loop.TierAssisted}, []string{"\nsense: gates\n", "\nverify: \"npm test\"\n"}, nil},
		// Its gates wait behind comment marks, so there is nothing to try.
		"ci-watch reports":    {format.LoopRequest{Pattern: "ci-watch"}, []string{"\n# verify: \"npm test\"\n"}, []string{"sense:"}},
		"asked for at L1":     {format.LoopRequest{Pattern: "ci-watch", Sense: "gates"}, []string{"\nsense: gates\n", "\nverify: \"npm test\"\n", "these two:\n# worktree"}, []string{"# verify"}},
		"works on green ones": {format.LoopRequest{Pattern: "dep-bump", Tier: loop.TierAssisted}, []string{"\nverify: \"npm test\"\n"}, []string{"sense:"}},
	} {
		c.blank.Name = "x"
		text := made(t, c.blank)[definition.ConfigFile]
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		for _, bad := range c.not {
			if strings.Contains(text, bad) {
				t.Errorf("%s: %q in\n%s", name, bad, text)
			}
		}
	}
}

// read is the definition of a new loop, which readers take for what it is.
func read(t rapid.TB, config string) *definition.Document {
	t.Helper()
	doc, err := definition.Parse(definition.ConfigFile, []byte(config))
	if err != nil || doc.Notice != "" {
		t.Fatalf("Parse = %v, notice %q\n%s", err, doc.Notice, config)
	}
	return doc
}

func TestEveryPatternAndTierGivesFourFilesThatReadBack(t *testing.T) {
	for _, name := range append(pattern.Names(), "house-keeping") {
		for _, tier := range tiers {
			t.Run(fmt.Sprintf("%s at %s", name, tier), func(t *testing.T) {
				b := format.LoopRequest{Name: "x-1", Pattern: name, Tier: tier, Cadence: "0 9 * * 1-5", Now: noon}
				files := made(t, b)
				doc := read(t, files[definition.ConfigFile])
				mode := map[loop.Tier]string{loop.TierReport: "dontAsk", loop.TierAssisted: "dontAsk", loop.TierUnattended: "bypassPermissions"}[tier]
				for key, want := range map[string]string{
					"name": "x-1", "pattern": name, "tier": string(tier), "cadence": "0 9 * * 1-5", "permission_mode": mode,
					"kill_switch": ".loops/x-1/PAUSED exists, OR the loop-pause label is set",
				} {
					if got, _ := doc.Scalar(key); got.Text != want {
						t.Errorf("%s = %q, want %q", key, got.Text, want)
					}
				}
				checkMemory(t, files)
				checkPrompt(t, files[PromptFile], tier, mode)
				for file, text := range files {
					if strings.Contains(text, "{{") || strings.Contains(text, "<no value>") || strings.Contains(text, "\r") || !strings.HasSuffix(text, "\n") {
						t.Errorf("%s is not finished:\n%s", file, text)
					}
					for _, left := range []string{"<name>", "<loop-name>", "<loop>", "<tier>", "<mode>", "NAME", "TIER", "MODE"} {
						if strings.Contains(text, left) {
							t.Errorf("%s still has the placeholder %s", file, left)
						}
					}
				}
			})
		}
	}
}

// checkMemory reads STATE.md and run-log.md as every run does.
func checkMemory(t *testing.T, files map[string]string) {
	t.Helper()
	state, err := ParseState(files[loop.StateFile])
	if err != nil {
		t.Fatal(err)
	}
	if state.Name != "x-1" || state.RunN != 0 || state.Readiness != 100 || !state.Updated.Equal(noon) || len(state.Priority()) != 0 {
		t.Errorf("state = %q, run #%d, readiness %d, %v", state.Name, state.RunN, state.Readiness, state.Updated)
	}
	if !strings.Contains(files[loop.StateFile], "· run #0 · readiness 100/100_\n") {
		t.Errorf("header of\n%s", files[loop.StateFile])
	}
	if entries, bad := runlog.Parse(files[loop.LogFile]); len(entries) != 0 || len(bad) != 0 || files[loop.LogFile] != runlog.Header("x-1") {
		t.Errorf("log has entries %v and bad lines %v\n%s", entries, bad, files[loop.LogFile])
	}
}

// checkPrompt looks for the instructions in their order and for the hard rules.
func checkPrompt(t *testing.T, text string, tier loop.Tier, mode string) {
	t.Helper()
	title, rest, _ := strings.Cut(text, "\n")
	if want := "# Run: x-1  (tier " + string(tier) + ")"; title != want {
		t.Errorf("title %q, want %q", title, want)
	}
	for _, next := range []string{
		"1. Kill switch first", ".loops/PAUSED", ".loops/x-1/PAUSED", "loop-pause", "2. Read `STATE.md`", "3. Take the next unit from Priority", "`scope`",
		"`" + mode + "`", "4. Escalate", "5. Stop at `budget_tokens`", "6. Rewrite `STATE.md`", "readiness", "7. Append one line to `run-log.md`",
		"## Hard rules", "force-push", "push to main", "production deploy", "mass deletion", "IAM", "predate the run", "`.claude`",
		"piping a download into a shell", "judges you", "never authorises",
	} {
		_, after, found := strings.Cut(rest, next)
		if !found {
			t.Fatalf("%q is missing, or in another place, in\n%s", next, text)
		}
		rest = after
	}
}

func TestANewLoopIsAsReadyAsItsPatternAllows(t *testing.T) {
	for _, p := range pattern.All() {
		for _, tier := range tiers {
			t.Run(fmt.Sprintf("%s at %s", p.Name, tier), func(t *testing.T) {
				doc := read(t, made(t, format.LoopRequest{Name: "x", Pattern: p.Name, Tier: tier})[definition.ConfigFile])
				_, findings := doc.Definition("x")
				var got, want []string
				for _, f := range findings {
					got = append(got, f.Key)
				}
				if p.Name == pattern.Custom {
					want = append(want, "goal", "scope")
				}
				if tier != loop.TierReport && p.Verify == "" {
					want = append(want, "verify", "guard")
				}
				if p.Name == pattern.Custom {
					want = append(want, "escalation")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("findings (-want +got):\n%s%v", diff, findings)
				}
				escalation, _ := doc.Scalar("escalation")
				isolated := strings.Contains(escalation.Text, "isolated sandbox")
				if want := tier == loop.TierUnattended && p.Name != pattern.Custom; isolated != want {
					t.Errorf("escalation %q: isolation named = %v, want %v", escalation.Text, isolated, want)
				}
			})
		}
	}
}

func TestTheDefinitionIsWrittenToTheLetter(t *testing.T) {
	const head = `# yaml-language-server: $schema=https://pawl.run/schema/config.v1.json
# This file is yours: pawl reads it and never rewrites it.
`
	for name, c := range map[string]struct {
		blank format.LoopRequest
		want  string
		rest  string // the marks behind the last key
	}{
		"a known pattern at L1": {
			format.LoopRequest{Name: "fix-ci", Pattern: "ci-watch", Cadence: "10m"},
			`name: fix-ci
pattern: ci-watch
tier: L1
cadence: 10m
goal: "Detect red CI, classify the failure and from L2 on propose the smallest fix; never touch tests, CI configuration, deploys or secrets."
scope:
  - src/**
permission_mode: dontAsk
escalation: "flaky tests, infrastructure failures, anything near deploy or secrets, a fix that needs a changed test"
budget_tokens: 200000
kill_switch: ".loops/fix-ci/PAUSED exists, OR the loop-pause label is set"
`,
			`# To graduate to L2, set tier to L2 and take away the marks before these four:
# verify: "npm test"
# guard: "npm run typecheck"
# worktree: true
# land_via: human
`,
		},
		"a pattern without a gate at L2": {
			format.LoopRequest{Name: "news", Pattern: "digest", Tier: loop.TierAssisted, Cadence: "0 7 * * *"},
			`name: news
pattern: digest
tier: L2
cadence: "0 7 * * *"
goal: "Summarise what happened since the last digest for the people who were not there; never act on any of it."
scope:
  - reports/**
verify: "<fill: the command that judges the work, like go test ./...>"
guard: "<fill: the command that must always pass, like go vet ./...>"
permission_mode: dontAsk
worktree: true
escalation: "anything that needs an answer today, numbers that contradict each other"
budget_tokens: 200000
kill_switch: ".loops/news/PAUSED exists, OR the loop-pause label is set"
land_via: human
`, "",
		},
		"words of the user's own": {
			format.LoopRequest{
				Name: "keep-green", Tier: loop.TierAssisted, Goal: `Keep "green" green; don't touch #7`, Escalation: "what isn't clear", Scope: []string{"src/**", "*.go"},
				Verify: "go test ./...", Guard: `sh -c 'go vet "./..."'`, LandVia: "human", Sense: "git diff --quiet", Agent: "command",
				AgentCommand: "./agent.sh", Env: []string{"GOCACHE"}, SetupFound: "npm ci\nnpm rebuild",
			},
			`name: keep-green
pattern: custom
tier: L2
cadence: 1h
goal: |-
  Keep "green" green; don't touch #7
scope:
  - src/**
  - "*.go"
verify: "go test ./..."
guard: |-
  sh -c 'go vet "./..."'
permission_mode: dontAsk
worktree: true
escalation: "what isn't clear"
budget_tokens: 200000
kill_switch: ".loops/keep-green/PAUSED exists, OR the loop-pause label is set"
land_via: human
sense: "git diff --quiet"
agent: command
agent_command: ./agent.sh
env:
  - GOCACHE
`,
			`# setup: |-
#   npm ci
#   npm rebuild
`,
		},
		"the pattern that costs more": {
			format.LoopRequest{Name: "faster", Pattern: "metric-chase"},
			`name: faster
pattern: metric-chase
tier: L1
cadence: 1h
goal: "Drive the measured number to its target one change at a time, keep gains and discard regressions; never weaken the measurement."
scope:
  - src/**
permission_mode: dontAsk
escalation: "a gain that costs another metric, a change of the measurement, no gain in three tries"
budget_tokens: 400000
kill_switch: ".loops/faster/PAUSED exists, OR the loop-pause label is set"
`,
			`# To graduate to L2, set tier to L2 and take away the marks before these four:
# verify: "npm test -- --coverage"
# guard: "npm run typecheck"
# worktree: true
# land_via: human
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := made(t, c.blank)[definition.ConfigFile]
			if !strings.HasPrefix(config, head) {
				t.Errorf("it begins with\n%.200s", config)
			}
			if diff := cmp.Diff(c.want, uncommented(config)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if !strings.HasSuffix(config, c.rest) {
				t.Errorf("it ends with\n%s\nwant\n%s", config[max(0, len(config)-300):], c.rest)
			}
		})
	}
}

// uncommented is a file without comment lines and blank lines.
func uncommented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestTakingAwayTheMarksMakesAnL2Definition(t *testing.T) {
	config := made(t, format.LoopRequest{Name: "x", Pattern: "ci-watch"})[definition.ConfigFile]
	head, gate, found := strings.Cut(config, "# To graduate to L2")
	if !found {
		t.Fatal(config)
	}
	_, gate, _ = strings.Cut(gate, "\n")
	config = strings.Replace(head, "tier: L1", "tier: L2", 1) + strings.ReplaceAll(gate, "# ", "")
	def, findings := read(t, config).Definition("x")
	if len(findings) > 0 || def.Verify != "npm test" || def.LandVia != "human" {
		t.Errorf("findings %v of\n%s", findings, config)
	}
}

func TestTheSameRequestGivesTheSameBytes(t *testing.T) {
	b := format.LoopRequest{Name: "x", Pattern: "backfill", Now: noon}
	if diff := cmp.Diff(made(t, b), made(t, b)); diff != "" {
		t.Error(diff)
	}
	later := b
	later.Now = noon.Add(time.Hour)
	files, others := made(t, b), made(t, later)
	for _, name := range []string{loop.LogFile, PromptFile, definition.ConfigFile} {
		if files[name] != others[name] {
			t.Errorf("%s depends on the time", name)
		}
	}
}

func TestTheDefinitionIsTheLastFile(t *testing.T) {
	files, err := Scaffold(format.LoopRequest{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{loop.StateFile, loop.LogFile, PromptFile, definition.ConfigFile}, names); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeANewLoopIsRefused(t *testing.T) {
	ok := format.LoopRequest{Name: "x"}
	for name, c := range map[string]struct {
		change   func(*format.LoopRequest)
		what, to string
	}{
		"no name":                                    {func(b *format.LoopRequest) { b.Name = "" }, "name ''", "hyphens"},
		"a name with a capital":                      {func(b *format.LoopRequest) { b.Name = "Fix" }, "name 'Fix'", "lower-case"},
		"a name that is a path":                      {func(b *format.LoopRequest) { b.Name = "../x" }, "name '../x'", "hyphens"},
		"a name with two hyphens":                    {func(b *format.LoopRequest) { b.Name = "a--b" }, "name 'a--b'", "single hyphens"},
		"a name with a line end":                     {func(b *format.LoopRequest) { b.Name = "x\n" }, "name", "hyphens"},
		"a pattern with a space":                     {func(b *format.LoopRequest) { b.Pattern = "ci watch" }, "pattern 'ci watch'", "hyphens"},
		"an unknown tier":                            {func(b *format.LoopRequest) { b.Tier = "l1" }, "tier 'l1'", "not one of L1, L2 and L3"},
		"a cadence in seconds":                       {func(b *format.LoopRequest) { b.Cadence = "30s" }, "cadence '30s'", "neither"},
		"a cadence in words":                         {func(b *format.LoopRequest) { b.Cadence = "@daily" }, "cadence '@daily'", "neither"},
		"a cadence of no time":                       {func(b *format.LoopRequest) { b.Cadence = "0m" }, "cadence '0m'", "shortest"},
		"a cadence without a unit":                   {func(b *format.LoopRequest) { b.Cadence = "12" }, "cadence '12'", "whole numbers"},
		"a cadence that never fires":                 {func(b *format.LoopRequest) { b.Cadence = "0 0 31 2 *" }, "cadence '0 0 31 2 *'", "never fires"},
		"a cadence of six fields":                    {func(b *format.LoopRequest) { b.Cadence = "0 0 * * * *" }, "cadence", "6 fields"},
		"a goal with a carriage":                     {func(b *format.LoopRequest) { b.Goal = "a\rverify: true" }, "goal", "U+000D"},
		"setup with a line of Unicode":               {func(b *format.LoopRequest) { b.Setup = "a\u2028verify: true" }, "setup", "U+2028"},
		"a goal with a tab":                          {func(b *format.LoopRequest) { b.Goal = "a\t#b" }, "goal", "U+0009"},
		"a scope with a bell":                        {func(b *format.LoopRequest) { b.Scope = []string{"src/\a"} }, "scope", "U+0007"},
		"a gate that is turned round":                {func(b *format.LoopRequest) { b.Verify = "a\u202eb" }, "verify", "U+202E"},
		"a sense that is not text":                   {func(b *format.LoopRequest) { b.Sense = "\xff" }, "sense", "UTF-8"},
		"a goal that ends in a line":                 {func(b *format.LoopRequest) { b.Goal = "a\n" }, "goal", "exactly this text"},
		"a gate with both quotes and a space behind": {func(b *format.LoopRequest) { b.Verify, b.Tier = `'" `, loop.TierAssisted }, "verify", "exactly this text"},
		"a goal that nests":                          {func(b *format.LoopRequest) { b.Goal = strings.Repeat("[", 1100) }, "write the definition of x", "nested"},
		"a goal like a book":                         {func(b *format.LoopRequest) { b.Goal = strings.Repeat("a ", 5000) }, "write the definition of x", "8192 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := ok
			c.change(&b)
			files, err := Scaffold(b)
			f, isFault := errors.AsType[*loop.Fault](err)
			if !isFault || f.Exit != loop.ExitUsage || f.Fix == "" || files != nil {
				t.Fatalf("Scaffold = %d files, %#v, want a fault with exit status 2 and a fix", len(files), err)
			}
			if !strings.Contains(f.What, c.what) || !strings.Contains(f.Error(), c.to) {
				t.Errorf("fault %q, want %q and %q", f.Error(), c.what, c.to)
			}
		})
	}
}

// hard are texts that some reader of YAML or of lines takes for something else.
var hard = []string{
	"null", "~", "no", "Yes", "1e3", "0x1F", "0o7", "1_000", ".5", ".inf", "2026-09-03", "12:30", "3", "-", "--", "---", "...", "- a", "a: b",
	"a #b", "#a", "a#b", "&a", "*a", "!a", "!!str a", "%a", "@a", "`a`", "|", ">", "|-", "[a]", "[a", "{a: b}", "? a", ": a", "<<", "'", `"`, "''", `""`,
	`'a' b`, `"a" b`, `it's`, `it's "x"`, `it's "x" # y`, `C:\path`, `don't C:\path "x"`, `\`, `\n`, ` a`, `a `, " it's \"x\"", "über # alles",
	"👩‍💻 \"it's\"", "<fill: x>", "{{.Name}}", "${HOME}", "name: y", "a,b", "a, 'b', \"c\"", "**/*.go", "~/x", "\u00a0", "\ufffd",
}

// drawHard gives texts of one line, or of several.
func drawHard(lines bool) *rapid.Generator[string] {
	runes := []rune("ab1:-#'\"[]{}&*!|>%@`\\,?~.$= é👍")
	if lines {
		runes = append(runes, '\n', '\n')
	}
	return rapid.OneOf(
		rapid.SampledFrom(hard), rapid.StringOfN(rapid.RuneFrom(runes), 1, 24, -1),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(hard), 1, 4), func(words []string) string { return strings.Join(words, " ") }),
	)
}

// checkExact compares what both readers of definitions give with the request.
func checkExact(t rapid.TB, b format.LoopRequest, config string) {
	t.Helper()
	// An escape that YAML does not know sends the whole file to the reader of lines.
	lenient, err := definition.Parse(definition.ConfigFile, []byte(config+"stray: \"C:\\path\"\n"))
	if err != nil || lenient.Notice == "" {
		t.Fatalf("the reader of lines was not asked: %v\n%s", err, config)
	}
	for reader, doc := range map[string]*definition.Document{"YAML": read(t, config), "lines": lenient} {
		for key, want := range map[string]string{"goal": b.Goal, "verify": b.Verify, "escalation": b.Escalation, "agent_command": b.AgentCommand, "setup": b.Setup} {
			if got, _ := doc.Scalar(key); got.Text != want {
				t.Fatalf("%s: %s = %q, want %q in\n%s", reader, key, got.Text, want, config)
			}
		}
		for key, want := range map[string][]string{"scope": b.Scope, "env": b.Env} {
			if got := written(doc.List(key)); !cmp.Equal(got, want) {
				t.Fatalf("%s: %s = %q, want %q in\n%s", reader, key, got, want, config)
			}
		}
	}
}

func written(values []readiness.Value) []string {
	var list []string
	for _, v := range values {
		list = append(list, v.Text)
	}
	return list
}

func drawBlank(t *rapid.T, text *rapid.Generator[string]) format.LoopRequest {
	b := format.LoopRequest{
		Name: "x", Tier: loop.TierAssisted, Goal: text.Draw(t, "goal"), Verify: text.Draw(t, "verify"), Escalation: text.Draw(t, "escalation"),
		AgentCommand: text.Draw(t, "agent_command"),
		Scope:        rapid.SliceOfN(text, 1, 4).Draw(t, "scope"), Env: rapid.SliceOfN(text, 1, 3).Draw(t, "env"),
	}
	if setup := text.Draw(t, "setup"); rapid.Bool().Draw(t, "somebody named it") {
		b.Setup = setup
	} else {
		b.SetupFound = setup // A comment, which no reader takes for the key.
	}
	return b
}

func TestEveryTextOfOneLineIsGivenBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBlank(t, drawHard(false).Filter(func(text string) bool { return text == strings.TrimSpace(text) }))
		checkExact(t, b, made(t, b)[definition.ConfigFile])
	})
}

func TestEveryTextIsGivenBackExactlyOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBlank(t, rapid.Just("x"))
		odd := rapid.OneOf(drawHard(true), rapid.String().Filter(func(s string) bool { return s != "" }))
		b.Goal, b.Setup, b.Scope = odd.Draw(t, "odd goal"), odd.Draw(t, "odd setup"), append(b.Scope, odd.Draw(t, "odd scope"))
		if files, err := Scaffold(b); err == nil {
			checkExact(t, b, string(files[3].Body))
		} else if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUsage {
			t.Fatalf("Scaffold(%+v) = %#v", b, err)
		}
	})
}

func FuzzScaffold(f *testing.F) {
	for i, text := range hard {
		f.Add(text, hard[(i+7)%len(hard)])
	}
	f.Add("a\n b\n\n c", "x\n# y\n z")
	f.Fuzz(func(t *testing.T, goal, setup string) {
		if goal == "" {
			return
		}
		b := format.LoopRequest{
			Name: "x", Tier: loop.TierAssisted, Goal: goal, Verify: goal, Escalation: goal, AgentCommand: goal, SetupFound: setup, Scope: []string{goal}, Env: []string{"A", goal},
		}
		files, err := Scaffold(b)
		switch {
		case err == nil:
			checkExact(t, b, string(files[3].Body))
		case goal == strings.TrimSpace(goal) && !strings.Contains(goal, "\n") && len(goal) < 1000:
			if _, hidden := findUnwritable(goal + "\n" + setup); !hidden && !strings.ContainsAny(goal, "[{") {
				t.Fatalf("%q is refused: %v", goal, err)
			}
		}
	})
}
