package definition

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// configA is a complete L1 definition, configB a complete L2 one.
const configA = `name: keep-green
pattern: ci-watch
tier: L1
permission_mode: dontAsk
cadence: 10m
goal: "Detect red CI and report it; never merge"
scope:
  - "src/**"
escalation: anything near deploy or secrets
budget_tokens: 200000
kill_switch: ".loops/keep-green/PAUSED exists, OR the loop-pause label is set"
`

var configB = strings.Replace(configA, "tier: L1", "tier: L2", 1) + `verify: go test ./...
guard: go vet ./... && go build ./...
worktree: true
land_via: human
`

// convert gives the definition and its findings as "error KEY" or "warning KEY".
func convert(t *testing.T, text string) (loop.Definition, []readiness.Finding, []string) {
	t.Helper()
	def, findings := parse(t, text).Definition("keep-green")
	var short []string
	for _, f := range findings {
		short = append(short, f.Severity+" "+f.Key)
		if !strings.HasPrefix(f.Message, f.Key+": ") || strings.Contains(f.Message, "\n") || f.Line < 1 || f.Column < 1 {
			t.Errorf("finding %+v: want the key, a colon and one line, at a place", f)
		}
	}
	return def, findings, short
}

func TestCompleteDefinitionsConvertWithoutFindings(t *testing.T) {
	wantA := loop.Definition{
		Name: "keep-green", Pattern: "ci-watch", Tier: loop.TierReport, Cadence: "10m",
		Goal: "Detect red CI and report it; never merge", Scope: []string{"src/**"}, PermissionMode: "dontAsk",
		Escalation: "anything near deploy or secrets", BudgetTokens: 200000,
		KillSwitch: ".loops/keep-green/PAUSED exists, OR the loop-pause label is set",
	}
	wantB := wantA
	wantB.Tier, wantB.Verify, wantB.Guard = loop.TierAssisted, "go test ./...", "go vet ./... && go build ./..."
	wantB.LandVia = "human"
	own := wantB
	own.Agent, own.AgentCommand, own.Model, own.Protocol = "fixer", "./agent.sh --fast", "m1", "spine"
	own.Sense, own.Base, own.Protect, own.Env = "git status -s", "main", []string{"docs/**", "**/*.sql"}, []string{"CI", "GOFLAGS"}
	own.Timezone, own.CatchUp, own.StartDeadline, own.Jitter = "Europe/Berlin", loop.CatchUpSkip, 2*time.Hour, 90*time.Second
	own.MaxIterations, own.MaxItems, own.GiveUpAfter, own.RetryBlockedAfter, own.Priority, own.DeferBound = 5, 2, 4, 6, 60, 2
	own.MaxStepTimeout, own.MaxWallClock = 90*time.Second, 36*time.Hour
	own.OnBlocked, own.OnFailure, own.Sandbox, own.NodeLabels = "escalate", "retry_once", "landlock", []string{"gpu", "linux"}
	for name, c := range map[string]struct {
		text string
		want loop.Definition
	}{
		"A": {configA, wantA},
		"B": {configB, wantB},
		"every own key": {configB + `agent: fixer
agent_command: ./agent.sh --fast
model: m1
protocol: spine
sense: git status -s
base: main
protect: [docs/**, "**/*.sql"]
env:
  - CI
  - GOFLAGS
max_iterations: 5
max_items: 2
give_up_after: 4
retry_blocked_after: 6
priority: 60
defer_bound: 2
timezone: Europe/Berlin
catch_up: skip
start_deadline: 2h
jitter: 90s
max_step_timeout: 90s
max_wall_clock: 1d12h
on_blocked: escalate
on_failure: retry_once
sandbox: landlock
node_labels: [linux, gpu, linux]
`, own},
		"B in a file that is not YAML": {strings.Replace(configB, `"Detect red CI and report it; never merge"`,
			"Detect red CI and report it; never merge: never", 1), func() loop.Definition {
			d := wantB
			d.Goal = "Detect red CI and report it; never merge: never"
			return d
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			got, findings, _ := convert(t, c.text)
			if len(findings) > 0 {
				t.Errorf("findings %+v, want none", findings)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("definition (-want +got):\n%s", diff)
			}
		})
	}
}

// with replaces the line of a key, or adds it; an empty value removes it.
func with(config, key, value string) string {
	var lines []string
	skipping := false
	for line := range strings.Lines(config) {
		if startsText(line) {
			skipping = strings.HasPrefix(line, key+":")
		}
		if !skipping {
			lines = append(lines, line)
		}
	}
	if value != "" {
		lines = append(lines, key+":"+value+"\n")
	}
	return strings.Join(lines, "")
}

func TestWhatIsWrongIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		config, key, value string
		want               []string // severity and key
		message            string   // part of the last finding's message
	}{
		"no name":                           {configA, "name", "", []string{"error name"}, "missing or placeholder"},
		"a placeholder for a name":          {configA, "name", " <fill: name>", []string{"error name"}, "missing or placeholder"},
		"another directory":                 {configA, "name", " other", []string{"error name"}, "'other' is not the name of the directory, 'keep-green'"},
		"no pattern":                        {configA, "pattern", "", []string{"warning pattern"}, "missing"},
		"no tier":                           {configA, "tier", "", []string{"error tier"}, "must be L1, L2 or L3; it is missing"},
		"a lower-case tier":                 {configA, "tier", " l1", []string{"error tier"}, "must be L1, L2 or L3, and is 'l1'"},
		"no goal":                           {configA, "goal", "", []string{"error goal"}, "missing or placeholder"},
		"a placeholder for a goal":          {configA, "goal", " <one sentence …>", []string{"error goal"}, "missing or placeholder"},
		"a goal of white space":             {configA, "goal", ` "  "`, []string{"error goal"}, "missing"},
		"a comparison is not a placeholder": {configA, "goal", " keep p95 < 3 ms and hits > 90 percent", nil, ""},
		"no escalation":                     {configA, "escalation", "", []string{"error escalation"}, "undefined"},
		"no kill switch":                    {configA, "kill_switch", "", []string{"error kill_switch"}, "undefined"},
		"no permission mode":                {configA, "permission_mode", "", []string{"error permission_mode"}, "missing"},
		"an interactive mode":               {configA, "permission_mode", " default", []string{"error permission_mode"}, "invalid ('default')"},
		"no cadence":                        {configA, "cadence", "", []string{"warning cadence"}, "missing"},
		"a placeholder for a cadence":       {configA, "cadence", " <fill: cadence>", []string{"warning cadence"}, "missing or placeholder"},
		"an impossible cadence":             {configA, "cadence", " 0 0 31 2 *", []string{"error cadence"}, "never fires"},
		"a cadence of words":                {configA, "cadence", " sometimes", []string{"error cadence"}, "interval sometimes"},
		"a zone that nobody knows":          {configA, "timezone", " Mars/Olympus", []string{"error timezone"}, "unknown time zone Mars/Olympus; write one of the time zone database, like Europe/Berlin, or UTC"},
		"the zone of one host":              {configA, "timezone", " Local", []string{"error timezone"}, "unknown time zone Local"},
		"a zone that is a path":             {configA, "timezone", " ../../etc/passwd", []string{"error timezone"}, "timezone: '../../etc/passwd'"},
		"another way to catch up":           {configA, "catch_up", " twice", []string{"error catch_up"}, "write one of skip, one, all"},
		"no labels":                         {configA, "node_labels", " none", nil, ""},
		"a label with a space":              {configA, "node_labels", " [big gpu]", []string{"error node_labels"}, "big gpu"},
		"no jitter":                         {configA, "jitter", " 0", nil, ""},
		"a negative jitter":                 {configA, "jitter", " -5m", []string{"error jitter"}, "-5m"},
		"a cron cadence":                    {configA, "cadence", ` "H 9 * * 1-5"`, nil, ""},
		"no budget":                         {configA, "budget_tokens", "", []string{"warning budget_tokens"}, "missing"},
		"a budget with underscores":         {configA, "budget_tokens", " 200_000", []string{"error budget_tokens"}, "missing or non-numeric ('200_000')"},
		"a budget of nothing":               {configA, "budget_tokens", " 0", []string{"error budget_tokens"}, "at least 1"},
		"a budget beyond counting":          {configA, "budget_tokens", " 99999999999999999999", []string{"error budget_tokens"}, "expected at most"},
		"a budget with a comment":           {configA, "budget_tokens", " 200000#tokens", nil, ""},
		"no history without a sandbox":      {with(configA, "sandbox", " none"), "history", " none", []string{"warning history"}, "has no effect with sandbox: none"},
		"no history in one of others":       {with(configA, "sandbox", " external"), "history", " none", []string{"warning history"}, "has no effect with sandbox: external"},
		"no history in a sandbox":           {configA, "history", " none", nil, ""},
		"a look at gates without a gate":    {configA, "sense", " gates", []string{"error sense"}, "neither is written"},
		"a look at gates that there are":    {configB, "sense", " gates", nil, ""},
		"no scope":                          {configA, "scope", "", []string{"error scope"}, "missing"},
		"an empty scope":                    {configA, "scope", " []", []string{"error scope"}, "missing"},
		"a placeholder in scope":            {configA, "scope", "\n  - src/**\n  - <fill: glob>", []string{"error scope"}, "unfilled placeholder ('<fill: glob>')"},
		"an exclusion in scope":             {configA, "scope", ` [src/**, "!src/x/**"]`, []string{"error scope"}, "exclusions are not supported"},
		"an L1 gate yet to be filled":       {configA, "verify", " <fill: command>", []string{"warning verify"}, "not needed below L2"},
		"no verify":                         {configB, "verify", "", []string{"error verify"}, "no gate command"},
		"a verify of white space":           {configB, "verify", ` " "`, []string{"error verify"}, "no gate command"},
		"a placeholder for verify":          {configB, "verify", " <fill: command>", []string{"error verify"}, "no gate command"},
		"no guard":                          {configB, "guard", "", []string{"error guard"}, "no must-always-pass command"},
		"no worktree":                       {configB, "worktree", "", []string{"error worktree"}, "must be true at L2; it is missing"},
		"a worktree of yes":                 {configB, "worktree", " yes", []string{"error worktree"}, "must be true at L2, and is 'yes'"},
		"a worktree with a capital":         {configB, "worktree", " True", []string{"error worktree"}, "must be true"},
		"a quoted worktree":                 {configB, "worktree", ` "true"`, nil, ""},
		"nobody lands":                      {configB, "land_via", "", []string{"warning land_via"}, "undefined"},
		"a worktree at L1":                  {configA, "worktree", " no", nil, ""},
		"a word for a number":               {configA, "max_items", " many", []string{"error max_items"}, "'many': expected a whole number in digits, like 3"},
		"a negative number":                 {configA, "max_iterations", " -1", []string{"error max_iterations"}, "whole number"},
		"a number of zero":                  {configA, "give_up_after", " 0", []string{"error give_up_after"}, "at least 1"},
		"a fraction":                        {configA, "retry_blocked_after", " 1.5", []string{"error retry_blocked_after"}, "whole number"},
		"a number for a duration":           {configA, "max_step_timeout", " 600", []string{"error max_step_timeout"}, "expected a duration like 90s, 10m"},
		"a duration of nothing":             {configA, "max_wall_clock", " 0s", []string{"error max_wall_clock"}, "more than nothing"},
		"a negative duration":               {configA, "max_wall_clock", " -5m", []string{"error max_wall_clock"}, "expected a duration"},
		"a size without a unit":             {configA, "max_disk", " 8", []string{"error max_disk"}, "expected a size like 8GiB"},
		"a size of nothing":                 {configA, "max_disk", " 0GiB", []string{"error max_disk"}, "expected a size like 8GiB"},
		"a size in other words":             {configA, "max_disk", " 8 gigabytes", []string{"error max_disk"}, "expected a size like 8GiB"},
		"a duration of centuries":           {configA, "max_wall_clock", " 999w", []string{"error max_wall_clock"}, "at most a year"},
		"an unknown policy":                 {configA, "on_blocked", " skip", []string{"error on_blocked"}, "'skip' is unknown; write one of log_and_skip, escalate, retry_next_cycle, halt"},
		"a policy of the other key":         {configA, "on_failure", " log_and_skip", []string{"error on_failure"}, "log_skip_continue"},
		"an unknown sandbox":                {configA, "sandbox", " docker", []string{"error sandbox"}, "write one of full, landlock, seatbelt, external, none"},
		"an unknown protocol":               {configA, "protocol", " spin", []string{"error protocol"}, "spine"},
		"no sandbox at L1":                  {configA, "sandbox", " none", nil, ""},
		"a list for a scalar":               {configA, "sense", "\n  - a\n  - b", []string{"error sense"}, "expected one value, found a list"},
		"nested keys for a scalar":          {configA, "max_items", "\n  a: 1", []string{"error max_items"}, "expected one value"},
		"nested keys for a list":            {configA, "protect", "\n  a: 1", []string{"error protect"}, "expected a list"},
		"a placeholder for an agent":        {configA, "agent_command", " <your agent>", []string{"error agent_command"}, "unfilled placeholder ('<your agent>')"},
		"a line for the shell":              {configA, "commands", ` ["go test && rm x"]`, []string{"error commands"}, "has a character of the shell in it"},
		"a command that runs another":       {configA, "commands", ` ["go test", "env X"]`, []string{"error commands"}, "'env X' runs another command"},
		"a shell":                           {configA, "commands", " bash", []string{"error commands"}, "runs another command"},
		"a script of a shell":               {configA, "commands", " sh build.sh", nil, ""},
		"commands of several words":         {configA, "commands", "\n  - go test\n  - make check", nil, ""},
		"a value in env":                    {configA, "env", " [CI=1]", []string{"error env"}, "'CI=1' is not the name of a variable"},
		"a protect that leaves the tree":    {configA, "protect", " [../x]", []string{"error protect"}, "leaves the tree"},
		"a protect of everything":           {configA, "protect", ` ["**"]`, nil, ""},
		"an empty optional key":             {configA, "model", " # later", nil, ""},
		"an unknown key":                    {configA, "colour", " red", []string{"warning colour"}, "unknown key"},
		"a misspelt key":                    {configA, "kil_switch", " x", []string{"warning kil_switch"}, "unknown key; did you mean kill_switch?"},
		"a key with a hyphen":               {configA, "max-items", " 2", []string{"error max-items"}, "did you mean max_items?"},
		"a key in camel case":               {configA, "maxItems", " 2", []string{"error maxItems"}, "did you mean max_items?"},
		"a capitalised key":                 {configA, "Sense", " x", []string{"error Sense"}, "did you mean sense?"},
		"swapped letters":                   {configA, "goveup_after", " 2", []string{"error goveup_after"}, "did you mean give_up_after?"},
		"a key of one's own":                {configA, "x-verfy", " true", nil, ""},
		"a merge key":                       {configA, "<<", " *a", []string{"warning <<"}, "unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings, short := convert(t, with(c.config, c.key, c.value))
			if diff := cmp.Diff(c.want, short); diff != "" {
				t.Fatalf("findings (-want +got):\n%s", diff)
			}
			if n := len(findings); n > 0 && !strings.Contains(findings[n-1].Message, c.message) {
				t.Errorf("message %q, want %q in it", findings[n-1].Message, c.message)
			}
		})
	}
}

func TestOnlyATierIsMissingEverythingElse(t *testing.T) {
	_, _, short := convert(t, "tier: L1\n")
	errs, warnings := 0, 0
	for _, s := range short {
		if strings.HasPrefix(s, "error") {
			errs++
		} else {
			warnings++
		}
	}
	if errs != 6 || warnings != 3 {
		t.Errorf("%d errors and %d warnings, want 6 and 3: %v", errs, warnings, short)
	}
}

func TestNoSandboxIsRefusedAtL3(t *testing.T) {
	l3 := with(with(with(configB, "tier", " L3"), "permission_mode", " bypassPermissions"), "sandbox", " none")
	l3 = with(l3, "escalation", " anything that does not fit its container")
	if _, _, short := convert(t, l3); !cmp.Equal(short, []string{"error sandbox"}) {
		t.Errorf("findings %v, want one error about the sandbox", short)
	}
}

func TestARepeatedKeyIsAnErrorUnlessItSaysTheSame(t *testing.T) {
	def, findings, _ := convert(t, configA+"goal: another\n")
	if def.Goal == "another" || len(findings) != 1 || findings[0].Severity != readiness.SeverityError || findings[0].Line != 12 ||
		!strings.Contains(findings[0].Message, "line 6 and line 12 have different values") {
		t.Errorf("goal %q, findings %+v; want the first goal and an error that names both lines", def.Goal, findings)
	}
	_, findings, short := convert(t, configA+"tier: 'L1'\n")
	if !cmp.Equal(short, []string{"warning tier"}) || !strings.Contains(findings[0].Message, "line 3 has the same") {
		t.Errorf("findings %+v, want a warning for the same value", findings)
	}
	for same, text := range map[bool]string{true: "protect: [a, b]\nprotect: [a, b]\n", false: "protect:\n  - a\nprotect:\n  - b\n"} {
		if _, findings, _ := convert(t, configA+text); len(findings) != 1 || (findings[0].Severity == readiness.SeverityWarning) != same {
			t.Errorf("%q: findings %+v, want one; a warning: %v", text, findings, same)
		}
	}
	for text, differs := range map[string]bool{
		"scope: a\nscope: a # c\n": false, "scope: a\nscope: 'a'\n": false, "scope: a\nscope: b\n": true, "scope: [a]\nscope: [a]\n": false, "scope: [a]\nscope: [ a]\n": true,
		"scope:\n- a\nscope:\n  - 'a'\n": false, "scope:\n- a\nscope:\n- a\n- b\n": true, "scope: a\nscope:\n- a\n": true, "scope: a\nscope:\n": true,
		"scope:\n  a: b\nscope:\n  a: b\n": true, // What is in them is not looked at.
	} {
		if keys := parse(t, text).Keys(); len(keys) != 2 || keys[0].Differs || keys[1].Differs != differs {
			t.Errorf("%q has the keys %+v, want that the second says something else: %v", text, keys, differs)
		}
	}
}

func TestKeysThatAreNotHonouredAreNeverIgnored(t *testing.T) {
	refused := []string{"include_dirty"}
	if len(refused) != len(NotYet) {
		t.Errorf("%d keys are tested, NotYet has %d", len(refused), len(NotYet))
	}
	for _, value := range []string{" x", "\n  - x", "\n  a: b", " [x]"} {
		for _, key := range refused {
			_, findings, short := convert(t, configA+key+":"+value+"\n")
			if !cmp.Equal(short, []string{"error " + key}) ||
				findings[0].Message != key+": not supported by this version yet; remove it to run" {
				t.Errorf("%s:%s gives %+v, want an error", key, value, findings)
			}
		}
	}
	for _, line := range []string{"include_dirty: false", "commit_state: false", "stop_lines: none", "stop_lines: []", "human_gate: propose", "timezone: UTC", "setup:", "network: []", "commands: none"} {
		if _, findings, _ := convert(t, configA+line+"\n"); len(findings) > 0 {
			t.Errorf("%s gives %+v, want nothing: it changes nothing", line, findings)
		}
	}
}

func TestStopLinesAreReadBeforeARun(t *testing.T) {
	def, findings, _ := convert(t, configA+"stop_lines: [errors >= 5, 'minutes>=1.5', iterations >= 100, confidence < 0.5]\n")
	if diff := cmp.Diff([]string{"errors >= 5", "minutes>=1.5", "iterations >= 100", "confidence < 0.5"}, def.StopLines); diff != "" || len(findings) > 0 {
		t.Errorf("findings %+v, stop lines (-want +got):\n%s", findings, diff)
	}
	schema := compiled(t, configSchema)
	const form = "is not a stop line; write"
	for item, says := range map[string]string{
		"errors > 5": form, "errors >= 0": form, "errors <= 5": form, "errors >= five": form, "errors": form, "": form, "confidence >= 0.5": form, "confidence < 1.5": form,
		"confidence < 0": form, "tokens >= 5": form, "errors >= -1": form, "Errors >= 5": form, "errors >= 5 errors": form, "minutes >= 9999999999": form, "errors >= 1e3": form,
		"minutes >= .5": "", "minutes >= 5.": "", " errors>=05 ": "", "confidence < 1": "", "confidence < 1.0": "", "confidence <.25": "",
	} {
		text := configA + "stop_lines: ['" + item + "']\n"
		_, findings, _ := convert(t, text)
		if refused := len(findings) == 1 && findings[0].Severity == readiness.SeverityError && strings.Contains(findings[0].Message, says); refused != (says != "") || !refused && len(findings) > 0 {
			t.Errorf("%q gives %+v, want %q", item, findings, says)
		}
		if refuses(schema, decoded(t, configJSON(t, text)), "stop_lines") != (says != "") {
			t.Errorf("%q: the schema says something else than the reader", item)
		}
	}
	_, findings, _ = convert(t, configA+"stop_lines:\n  - errors >= 5\n  - errors >= 6\n")
	if len(findings) != 1 || findings[0].Line != 14 || !strings.Contains(findings[0].Message, "'errors >= 6' is the second stop line for errors; remove one") {
		t.Errorf("findings %+v, want one about the second", findings)
	}
	_, findings, _ = convert(t, configA+"protocol: boot\nstop_lines: [errors >= 5]\n")
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "boot repository") {
		t.Errorf("findings %+v, want that the boot repository has them", findings)
	}
}

func TestTheMemoryIsCommittedIfTheDefinitionSaysSo(t *testing.T) {
	def, findings, _ := convert(t, configA+"commit_state: true\n")
	if !def.CommitState || len(findings) > 0 {
		t.Errorf("commit_state %v, findings %+v", def.CommitState, findings)
	}
	def, findings, _ = convert(t, configA+"commit_state: true\nprotocol: boot\n")
	if def.CommitState || len(findings) > 0 {
		t.Errorf("boot: commit_state %v, findings %+v; want nothing: it does so anyway", def.CommitState, findings)
	}
	_, findings, _ = convert(t, with(configB, "land_via", " pr")+"commit_state: true\n")
	if len(findings) != 1 || findings[0].Severity != readiness.SeverityWarning || !strings.Contains(findings[0].Message, "check out another branch") {
		t.Errorf("with pull requests: findings %+v, want one warning", findings)
	}
}

func TestInvariantsAreGatesThatAreReadBeforeTheyRun(t *testing.T) {
	def, findings, _ := convert(t, configA+"invariants: ['diff.files <= 3', 'json(\"c.json\").n >= base.json(\"c.json\").n']\nhuman_gate: keep\n")
	want := []loop.Gate{
		{Name: "invariant-1", Kind: loop.GateInvariant, Check: "diff.files <= 3"},
		{Name: "invariant-2", Kind: loop.GateInvariant, Check: `json("c.json").n >= base.json("c.json").n`},
	}
	if diff := cmp.Diff(want, def.Gates); diff != "" || len(findings) > 0 || def.HumanGate != loop.HumanGateKeep {
		t.Errorf("human gate %s, findings %+v, gates (-want +got):\n%s", def.HumanGate, findings, diff)
	}
	if def, _, _ = convert(t, configA+"invariants: none\nhuman_gate: propose\n"); def.Gates != nil || def.HumanGate != "" {
		t.Errorf("gates %v, human gate %q; want neither", def.Gates, def.HumanGate)
	}
	for line, says := range map[string]string{
		"invariants: ['diff.fils <= 3']":     "diff",
		"invariants: ['diff.files <=']":      "column",
		"invariants: ['tsc --noEmit']":       "",
		"invariants: ['1 + 1']":              "",
		"human_gate: perhaps":                "propose",
		"invariants: ['', 'diff.files < 2']": "",
	} {
		_, findings, _ := convert(t, configA+line+"\n")
		if len(findings) != 1 || findings[0].Severity != readiness.SeverityError || !strings.Contains(findings[0].Message, says) {
			t.Errorf("%s gives %+v, want one error that says %q", line, findings, says)
		}
	}
}

func TestAReviewerIsAGateThatIsNotTheMaker(t *testing.T) {
	made := "agent: claude\nmodel: claude-haiku-4-5\n"
	for lines, by := range map[string]loop.Reviewer{
		"": {}, "reviewer_agent: '@critic'\n": {Agent: "@critic"}, "reviewer_model: claude-opus-4-8\n": {Model: "claude-opus-4-8"},
		"reviewer_agent: claude\nreviewer_model: claude-opus-4-8\n": {Agent: "claude", Model: "claude-opus-4-8"},
	} {
		def, findings, _ := convert(t, configA+made+"invariants: ['diff.files <= 3']\nreviewer: It is minimal.\n"+lines)
		want := []loop.Gate{
			{Name: "invariant-1", Kind: loop.GateInvariant, Check: "diff.files <= 3"},
			{Name: "reviewer", Kind: loop.GateReviewer, Check: "It is minimal.", Reviewer: by},
		}
		if diff := cmp.Diff(want, def.Gates); diff != "" || len(findings) > 0 {
			t.Errorf("%s: findings %+v, gates (-want +got):\n%s", lines, findings, diff)
		}
	}
	if def, findings, _ := convert(t, configA+made+"reviewer: none\n"); def.Gates != nil || len(findings) > 0 {
		t.Errorf("gates %v, findings %v; want none", def.Gates, findings)
	}
	for lines, want := range map[string]string{
		"reviewer: It is good.\nreviewer_model: Claude-Haiku-4-5\n":                        "error reviewer_model",
		"reviewer: It is good.\nreviewer_agent: claude\n":                                  "error reviewer_agent",
		"reviewer: It is good.\nreviewer_agent: '@claude'\n":                               "error reviewer_agent",
		"reviewer: It is good.\nreviewer_agent: codex\nreviewer_model: claude-haiku-4-5\n": "error reviewer_model",
		"reviewer: <what it has to find>\n":                                                "error reviewer",
		"reviewer:\n  - one\n  - two\n":                                                    "error reviewer",
		"reviewer_model: claude-opus-4-8\n":                                                "warning reviewer_model",
		"reviewer: none\nreviewer_agent: codex\n":                                          "warning reviewer_agent",
	} {
		if _, findings, short := convert(t, configA+made+lines); !cmp.Equal(short, []string{want}) {
			t.Errorf("%s gives %+v, want %s", lines, findings, want)
		}
	}
}

func TestAFindingOfARealFileIsRenderedInPlace(t *testing.T) {
	source := with(configA, "max_items", " many")
	_, findings, _ := convert(t, source)
	want := `loop.config.yaml:12:12: max_items: 'many': expected a whole number in digits, like 3
max_items: many
           ^`
	if got := findings[0].Render("loop.config.yaml", []byte(source)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestModelToolsAreNamesOrAVendorsOwnWords(t *testing.T) {
	for line, want := range map[string][]loop.ModelTool{
		"[]": nil, "none": nil, "[none]": nil, "web_search": {loop.ToolWebSearch}, "[web_search, urls, web_search]": {loop.ToolWebSearch, loop.ToolURLs},
		`["type:x_search_2"]`: {loop.TypedTool("x_search_2")},
	} {
		def, findings := parse(t, with(configB, "model_tools", " "+line)).Definition("")
		if diff := cmp.Diff(want, def.ModelTools); diff != "" || len(findings) > 0 {
			t.Errorf("%s: findings %+v (-want +got):\n%s", line, findings, diff)
		}
	}
	for line, want := range map[string]string{
		"[websearch]": "did you mean web_search?", "[web_serch]": "did you mean web_search?", "[search]": "write one of none, web_search,",
		`["type:"]`: "type:WORD", `["type:a b"]`: "type:WORD",
	} {
		def, findings := parse(t, with(configB, "model_tools", " "+line)).Definition("")
		if len(findings) != 1 || findings[0].Severity != readiness.SeverityError || !strings.Contains(findings[0].Message, want) || def.ModelTools != nil {
			t.Errorf("%s: %v and findings %+v, want an error with %q", line, def.ModelTools, findings, want)
		} else if strings.Contains(findings[0].Message, "did you mean ?") {
			t.Errorf("%s: %q guesses nothing", line, findings[0].Message)
		}
	}
}

func TestALentLoginIsSaidToEnforceNoModelTools(t *testing.T) {
	for auth, want := range map[string]bool{"lend": true, "inject": false} {
		_, findings := parse(t, with(configB, "auth", " "+auth)).Definition("")
		if got := len(findings) == 1 && strings.Contains(findings[0].Message, "model_tools: not enforced"); got != want {
			t.Errorf("auth: %s: findings %+v", auth, findings)
		}
	}
}
