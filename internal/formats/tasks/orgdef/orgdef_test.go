package orgdef_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// write makes files of a workspace.
func write(tb testing.TB, root string, files map[string]string) string {
	tb.Helper()
	for name, text := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

// read returns the definition of an agent, and its findings as they are shown, without the
// lines of the file.
func read(root, id string) (d loop.Definition, said []string, err error) {
	a, err := orgdef.ReadAgent(root, id)
	if err != nil {
		return d, nil, err
	}
	doc, err := a.Document(orgdef.ReadOrganisation(root))
	if err != nil {
		return d, nil, err
	}
	d, findings := doc.Definition(id)
	for _, f := range findings {
		line, _, _ := strings.Cut(f.Render(a.File, a.Text), "\n")
		said = append(said, f.Severity+" "+line)
	}
	return d, said, nil
}

const front = "---\nprimitive: loop-config\nenabled: true\ninterval: 15m\n---\nYou build things.\n"

const org = `owner: Ada
chief: boss
departments:
  engineering:
    lead: lead
    members: [dev, qa]
routing: {code: dev, video: nobody}
intervals: {lead: 20m}
hours: 9-17
timezone: Europe/Berlin
max_agents: 5
max_retries_per_step: 4
`

func TestAnAgentHasTheDefaultsOfTheFormat(t *testing.T) {
	root := write(t, t.TempDir(), map[string]string{"agents/dev/LOOP.md": front})
	d, said, err := read(root, "dev")
	want := loop.Definition{
		Name: "dev", Protocol: loop.ProtocolTasks, Pattern: "custom", Tier: loop.TierReport, Cadence: "15m", Goal: "Work on one step of agents/dev/TASKS.md at a time.",
		Group: "agents", Protect: []string{"agents/**", "org.yaml", "manifest.yaml", "LOOP.md"}, On: []string{"file:agents/dev/INBOX.md"},
		PermissionMode: "dontAsk", KillSwitch: "agents/dev/PAUSED exists", MaxIterations: 1, MaxWallClock: 12 * time.Minute,
		Escalation: "to the owner: what stays blocked or keeps failing, and whatever needs a change outside of the scope or the sandbox",
		Tasks: &loop.TaskLoop{
			Enabled: true, Reads: []string{"TASKS.md", "CONTEXT.md", "HEARTBEAT.md"}, Writes: []string{"TASKS.md", "HEARTBEAT.md"}, CycleLog: true,
			Role: "You build things.", Tier: 2, MaxAgents: 2, MaxRetries: 3,
		},
	}
	if diff := cmp.Diff(want, d); diff != "" || len(said) > 0 || err != nil {
		t.Errorf("definition (-want +got):\n%s\nfindings %q, %v", diff, said, err)
	}
	full := d.WithDefaults()
	if full.MaxStepTimeout != 10*time.Minute || full.OnBlocked != "log_and_skip" || full.OnFailure != "log_skip_continue" || full.RetryBlockedAfter != 3 {
		t.Errorf("with the defaults of all loops: %+v", full)
	}
	if got := d.SwitchPaths(); !slices.Equal(got, []string{"agents/dev/PAUSED"}) {
		t.Errorf("kill switch = %q", got)
	}
}

func TestEveryKeyOfAnAgentHasItsEffect(t *testing.T) {
	root := write(t, t.TempDir(), map[string]string{"agents/dev/LOOP.md": `---
enabled: false
interval: 1h
max_step_timeout: 20m
on_blocked: escalate
on_failure: retry_once
retry_blocked_after: 5
reads: [TASKS.md, SOUL.md]
writes:
  - TASKS.md
escalation: lead
cycle_log: false
scope: ["src/**"]
verify: go test ./...
guard: go vet ./...
agent: claude
---
`})
	d, said, err := read(root, "dev")
	if err != nil || len(said) > 0 {
		t.Fatalf("findings %q, %v", said, err)
	}
	want := &loop.TaskLoop{Reads: []string{"TASKS.md", "SOUL.md"}, Writes: []string{"TASKS.md"}, Escalation: "lead", Tier: 2, MaxAgents: 2, MaxRetries: 3}
	if diff := cmp.Diff(want, d.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if d.Tier != loop.TierAssisted || d.Cadence != "1h" || d.MaxStepTimeout != 20*time.Minute || d.MaxWallClock != 22*time.Minute || d.OnBlocked != "escalate" ||
		d.OnFailure != "retry_once" || d.RetryBlockedAfter != 5 || d.Verify != "go test ./..." || d.Guard != "go vet ./..." || d.Agent != "claude" || !d.NeverFires() {
		t.Errorf("definition = %+v", d)
	}
}

func TestAnAgentStandsWhereTheOrganisationSays(t *testing.T) {
	files := map[string]string{"org.yaml": org}
	for _, id := range []string{"boss", "lead", "dev", "qa", "free"} {
		files["agents/"+id+"/LOOP.md"] = "---\nenabled: true\nscope: [\"src/**\"]\n---\n"
	}
	files["agents/qa/MANIFEST.yaml"] = "agent: {id: qa, name: Quinn, role: tester, reports_to: dev}\n"
	root := write(t, t.TempDir(), files)
	routing := map[string]string{"code": "dev", "video": "nobody"}
	for id, want := range map[string]struct {
		cadence string
		tasks   loop.TaskLoop
	}{
		"boss": {"5m", loop.TaskLoop{Tier: 1, Reports: []string{"lead"}}},
		"lead": {"20m", loop.TaskLoop{Tier: 2, Department: "engineering", ReportsTo: "boss", Reports: []string{"dev", "qa"}}},
		"dev":  {"15m", loop.TaskLoop{Tier: 2, Department: "engineering", ReportsTo: "lead"}},
		"qa":   {"15m", loop.TaskLoop{Tier: 2, Department: "engineering", ReportsTo: "dev"}},
		"free": {"15m", loop.TaskLoop{Tier: 2, ReportsTo: "boss"}},
	} {
		d, _, err := read(root, id)
		if err != nil {
			t.Fatal(err)
		}
		w := want.tasks
		w.Chief, w.Owner, w.Routing, w.MaxAgents, w.MaxRetries, w.FromHour, w.UntilHour = "boss", "Ada", routing, 5, 4, 9, 17
		w.Enabled, w.CycleLog, w.Reads, w.Writes = true, true, d.Tasks.Reads, d.Tasks.Writes
		if diff := cmp.Diff(&w, d.Tasks); diff != "" || d.Cadence != want.cadence || d.Timezone != "Europe/Berlin" {
			t.Errorf("%s: cadence %s (want %s), zone %s (-want +got):\n%s", id, d.Cadence, want.cadence, d.Timezone, diff)
		}
	}
}

const manifest = `schema: org-manifest/v2
name: acme
org:
  owner: Ada
  hierarchy:
    chief: {agent: boss}
  departments:
    engineering:
      lead: lead
      members:
        - dev
        - agent: qa
          role: tester
coordination:
  escalation_chain: [department_lead, chief, owner]
  task_routing: {code: dev}
loop:
  intervals:
    tier_1: 6m
    tier_2: 12m
    tier_2_member: 18m
  resilience:
    max_retries_per_step: 2
`

func TestAManifestOfAnOrganisationSaysTheSameAsOrgYAML(t *testing.T) {
	root := write(t, t.TempDir(), map[string]string{
		"manifest.yaml":             manifest,
		"agents/dev/MANIFEST.yaml":  "agent:\n  id: dev\n  tier: 2\n  role: developer\nloop:\n  enabled: true\n  interval: 15m\n",
		"agents/boss/MANIFEST.yaml": "agent: {id: boss}\nloop: {enabled: true}\n",
		"agents/lead/MANIFEST.yaml": "loop: {enabled: true}\n",
		"agents/qa/MANIFEST.yaml":   "loop: {enabled: true}\n",
	})
	o := orgdef.ReadOrganisation(root)
	if err := o.Fault(); err != nil || len(o.Findings) > 0 || o.File != "manifest.yaml" || o.Owner != "Ada" || o.Chief != "boss" || o.MaxRetries != 2 {
		t.Errorf("organisation = %+v, %v", o, err)
	}
	for id, want := range map[string]string{"boss": "6m", "lead": "12m", "dev": "15m", "qa": "18m"} {
		d, said, err := read(root, id)
		if err != nil || d.Cadence != want {
			t.Errorf("cadence of %s = %s, want %s: %q, %v", id, d.Cadence, want, said, err)
		}
	}
	d, said, err := read(root, "dev")
	if err != nil || len(said) > 0 || d.Tasks.ReportsTo != "lead" || d.Tasks.MaxRetries != 2 || d.Goal != "Work on one step of agents/dev/TASKS.md at a time, as developer." {
		t.Errorf("dev = %+v, %+v, %q, %v", d, d.Tasks, said, err)
	}
}

func TestAFileWithFieldsGivesDefaultsAndIsNeverRun(t *testing.T) {
	fields := func(interval string) string {
		return "---\nprimitive: loop-config\nfields:\n  interval: {type: string, default: " + interval + "}\n  on_blocked:\n    type: string\n    default: escalate\n  reads:\n    default:\n      - TASKS.md\n      - NOTES.md\n---\n# Loop Config\n"
	}
	root := write(t, t.TempDir(), map[string]string{
		"LOOP.md": fields("40m"), "agents/LOOP.md": "---\nfields:\n  interval: {default: 30m}\n---\n",
		"agents/dev/LOOP.md": "---\non_failure: halt\n---\n", "agents/qa/LOOP.md": "---\ninterval: 1m\nreads: [TASKS.md]\non_blocked: halt\n---\n",
		"agents/kind/LOOP.md": fields("1m"), "agents/block/MANIFEST.yaml": "loop:\n  fields:\n    interval: {default: 1m}\n",
	})
	d, said, err := read(root, "dev")
	if err != nil || len(said) > 0 || d.Cadence != "30m" || d.OnBlocked != "escalate" || d.OnFailure != "halt" || !slices.Equal(d.Tasks.Reads, []string{"TASKS.md", "NOTES.md"}) {
		t.Errorf("dev = %+v, %+v, %q, %v", d, d.Tasks, said, err)
	}
	d, said, err = read(root, "qa")
	if err != nil || len(said) > 0 || d.Cadence != "1m" || d.OnBlocked != "halt" || !slices.Equal(d.Tasks.Reads, []string{"TASKS.md"}) {
		t.Errorf("qa = %+v, %+v, %q, %v", d, d.Tasks, said, err)
	}
	for _, id := range []string{"kind", "block"} {
		_, _, err := read(root, id)
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitNotReady || !strings.Contains(f.Error(), "has fields:") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestWhatIsWrongWithAnAgentIsNamedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"interval: soon\n":                  "warning agents/dev/LOOP.md:2:11: interval: 'soon' cannot be read, 15m is used; write whole numbers",
		"enabled: true\n":                   "warning agents/dev/LOOP.md:1:1: interval: missing, 15m is used",
		"interval:\n":                       "warning agents/dev/LOOP.md:2:10: interval: missing, 15m is used",
		"interval: 1m\ncadence: 2m\n":       "warning agents/dev/LOOP.md:3:10: cadence: this key is not used, because there is interval",
		"interval: 1m\nintervall: 2m\n":     "warning agents/dev/LOOP.md:3:1: intervall: unknown key; did you mean interval?",
		"intervall: 2m\n":                   "error agents/dev/LOOP.md:2:1: intervall: unknown key; did you mean interval?",
		"interval: 1m\nmax_itmes: 2\n":      "error agents/dev/LOOP.md:3:1: max_itmes: unknown key; did you mean max_items?",
		"interval: 1m\nprimitive: other\n":  "warning agents/dev/LOOP.md:3:12: primitive: 'other' is not loop-config, as which the file is read",
		"on_blocked: wait\n":                "error agents/dev/LOOP.md:2:13: on_blocked: 'wait' is unknown; write one of log_and_skip, escalate, retry_next_cycle, halt",
		"on_failure: wait\n":                "error agents/dev/LOOP.md:2:13: on_failure: 'wait' is unknown; write one of log_skip_continue, escalate_and_skip, retry_once, halt",
		"retry_blocked_after: -1\n":         "error agents/dev/LOOP.md:2:22: retry_blocked_after: '-1': expected a whole number in digits, like 3",
		"retry_blocked_after: 0\n":          "error agents/dev/LOOP.md:2:22: retry_blocked_after: '0': expected at least 1; remove the key for the default",
		"max_step_timeout: long\n":          "error agents/dev/LOOP.md:2:19: max_step_timeout: 'long': expected a duration",
		"enabled: maybe\n":                  "error agents/dev/LOOP.md:2:10: enabled: 'maybe' is unknown; write true or false",
		"cycle_log: [true]\ninterval: 1m\n": "error agents/dev/LOOP.md:2:12: cycle_log: '[true]' is unknown; write true or false",
		"enabled:\n  - true\n":              "error agents/dev/LOOP.md:3:3: enabled: expected one value, found a list or nested keys",
		"reads: [../qa/TASKS.md]\n":         "error agents/dev/LOOP.md:2:9: reads: '../qa/TASKS.md' leads out of the agent's folder; write a name in it, like CONTEXT.md",
		"writes: [/etc/passwd]\n":           "error agents/dev/LOOP.md:2:10: writes: '/etc/passwd' leads out of the agent's folder; write a name in it, like CONTEXT.md",
		"writes: [\"*.md\"]\n":              "error agents/dev/LOOP.md:2:10: writes: '*.md' is not the name of a file",
		"escalation: the chief\n":           "error agents/dev/LOOP.md:2:13: escalation: 'the chief' is not the id of an agent",
		"enabled: true\nenabled: false\n":   "error agents/dev/LOOP.md:3:1: enabled: line 2 and line 3 have different values; remove one of them",
		"protocol: spine\n":                 "error agents/dev/LOOP.md:2:11: protocol: 'spine' is not that of an agent in agents; remove the key",
		"name: other\n":                     "error agents/dev/LOOP.md:2:7: name: 'other' is not the name of the directory, 'dev'",
		"tier: L2\n":                        "error agents/dev/LOOP.md:1:1: scope: missing",
		"scope: [\"**\"]\n":                 "error agents/dev/LOOP.md:2:9: scope: unbounded ('**'); name a directory or a kind of file, like src/** or **/*.go",
	} {
		root := write(t, t.TempDir(), map[string]string{"agents/dev/LOOP.md": "---\n" + text + "---\n"})
		_, said, err := read(root, "dev")
		if err != nil || !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("%q: %q, %v, want %s", text, said, err, want)
		}
	}
}

func TestEachKeyThatIsNotUsedIsNamed(t *testing.T) {
	root := write(t, t.TempDir(), map[string]string{
		"agents/dev/MANIFEST.yaml": "agent:\n  id: dev\n  teir: 2\nskills: [go]\nloop:\n  enabled: true\n  interval: 1m\n  colour: red\n",
		"agents/qa/MANIFEST.yaml":  "agent: {id: tester, tier: 3}\nloop: {interval: 1m}\n",
		"agents/qa/LOOP.md":        front,
	})
	_, said, err := read(root, "dev")
	want := []string{
		"error agents/dev/MANIFEST.yaml:3:3: agent.teir: unknown key; did you mean tier? Keys of your own begin with x-",
		"warning agents/dev/MANIFEST.yaml:4:1: skills: this key is not used",
		"warning agents/dev/MANIFEST.yaml:8:3: colour: unknown key",
	}
	if diff := cmp.Diff(want, said); diff != "" || err != nil {
		t.Errorf("dev: %v (-want +got):\n%s", err, diff)
	}
	_, said, err = read(root, "qa")
	want = []string{
		"error agents/qa/MANIFEST.yaml:1:13: agent.id: 'tester' is not the name of the folder, 'qa'; rename one of them",
		"error agents/qa/MANIFEST.yaml:1:27: agent.tier: '3' is unknown; write 1 or 2",
		"warning agents/qa/MANIFEST.yaml:2:1: loop: this block is not used, because there is agents/qa/LOOP.md",
	}
	if diff := cmp.Diff(want, said); diff != "" || err != nil {
		t.Errorf("qa: %v (-want +got):\n%s", err, diff)
	}
}

func TestWhatIsWrongWithTheOrganisationIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"an unknown key":              {"org.yaml", "ownr: Ada\n", "error org.yaml:1:1: ownr: unknown key; did you mean owner? Keys of your own begin with x-"},
		"an unknown key inside":       {"org.yaml", "departments:\n  a:\n    member: [x]\n", "error org.yaml:3:5: departments.a.member: unknown key; did you mean members? Keys of your own begin with x-"},
		"a key twice":                 {"org.yaml", "owner: Ada\nowner: Bob\n", "error org.yaml:2:1: owner: line 1 has the key already; remove one of them"},
		"hours of no day":             {"org.yaml", "hours: 9-25\n", "error org.yaml:1:8: hours: expected the first hour and the one before which work ends, like 9-17"},
		"an unknown zone":             {"org.yaml", "timezone: Mars/North\n", "error org.yaml:1:11: timezone: unknown time zone Mars/North; write one of the time zone database, like Europe/Berlin, or UTC"},
		"an interval":                 {"org.yaml", "intervals: {chief: soon}\n", "warning org.yaml:1:20: intervals.chief: 'soon' cannot be read; 5m is used"},
		"an unknown rank":             {"org.yaml", "intervals: {boss: 5m}\n", "warning org.yaml:1:13: intervals.boss: this key is not used; write chief, lead or member"},
		"somebody in two departments": {"org.yaml", "departments: {a: {members: [x]}, b: {lead: x}}\n", "warning org.yaml:1:44: x is in the department a already, which counts"},
		"text for keys":               {"org.yaml", "departments: many\n", "error org.yaml:1:14: departments: expected keys and values"},
		"keys for text":               {"org.yaml", "owner: {a: b}\n", "error org.yaml:1:9: owner: expected one value, found a list or nested keys"},
		"a count":                     {"org.yaml", "max_retries_per_step: 0\n", "error org.yaml:1:23: max_retries_per_step: '0' is not a whole number from 1 to 1000"},
		"what has no effect yet":      {"org.yaml", "cost_alert: 10\n", "warning org.yaml:1:1: cost_alert: this key has no effect yet"},
		"an order of its own":         {"org.yaml", "escalation: [chief, lead]\n", "warning org.yaml:1:21: escalation: the order is always superior, chief, owner"},
		"a key of a manifest":         {"manifest.yaml", "schema: org-manifest/v2\nloop: {resilience: {retries: 3}}\n", "warning manifest.yaml:2:21: loop.resilience.retries: this key is not used"},
		"another schema":              {"manifest.yaml", "schema: org-manifest/v3\n", "warning manifest.yaml:1:9: schema: 'org-manifest/v3' is not org-manifest/v2, as which the file is read"},
		"a default of no kind":        {"agents/LOOP.md", "---\nfields:\n  on_blocked: {default: wait}\n---\n", "error agents/LOOP.md:3:25: fields.on_blocked.default: 'wait' is unknown; write one of log_and_skip, escalate, retry_next_cycle, halt"},
		"a field of no key":           {"agents/LOOP.md", "---\nfields:\n  onblocked: {default: halt}\n---\n", "error agents/LOOP.md:3:3: fields.onblocked: unknown key; did you mean on_blocked? Keys of your own begin with x-"},
	} {
		o := orgdef.ReadOrganisation(write(t, t.TempDir(), map[string]string{c.file: c.text}))
		var said []string
		for _, f := range o.Findings {
			said = append(said, f.Severity+" "+f.Render("", nil))
		}
		if !slices.Contains(said, c.want) || o.Problem() != nil {
			t.Errorf("%s: %q, %v, want %s", name, said, o.Problem(), c.want)
		}
		if refused := o.Fault() != nil; refused != strings.HasPrefix(c.want, "error") {
			t.Errorf("%s: refused %v", name, refused)
		}
	}
}

func TestAFileThatCannotBeUsedIsRefusedForItsAgentAlone(t *testing.T) {
	root := write(t, t.TempDir(), map[string]string{
		"agents/fine/LOOP.md": front, "agents/latin/LOOP.md": "---\nenabled: true # \xe9\n---\n", "agents/open/LOOP.md": "---\nenabled: true\n", "agents/bare/LOOP.md": "Hello\n",
		"agents/big/LOOP.md": "---\nenabled: true\n---\n" + strings.Repeat("text ", 1<<18), "agents/yaml/MANIFEST.yaml": "agent: [\nloop: {\n", "agents/empty/MANIFEST.yaml": "agent: {id: empty}\n",
		"agents/conflict/LOOP.md": "---\n<<<<<<< HEAD\nenabled: true\n=======\nenabled: false\n>>>>>>> other\n---\n", "elsewhere/LOOP.md": front, "agents/text/MANIFEST.yaml": "loop: yes\n",
	})
	for name, to := range map[string]string{"agents/link/LOOP.md": "../../elsewhere/LOOP.md", "agents/folder": "../elsewhere"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "agents/link"), 0o755), os.Symlink(to, filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "agents/dir/LOOP.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	for id, why := range map[string]string{
		"latin": "it is not UTF-8", "open": "line 1: no front matter", "bare": "line 1: no front matter", "big": "larger than", "yaml": "not valid YAML", "empty": "has no block loop:",
		"conflict": "conflict", "link": "symbolic link", "folder": "folder is not a folder, or a link to one", "dir": "not a regular file", "text": "line 1: loop: expected keys and values",
		"gone": "is there",
	} {
		_, _, err := read(root, id)
		f, ok := errors.AsType[*loop.Fault](err)
		if !ok || !strings.Contains(f.Why, why) {
			t.Errorf("%s: %v, want %s", id, err, why)
		}
	}
	if _, said, err := read(root, "fine"); err != nil || len(said) > 0 {
		t.Errorf("fine: %q, %v", said, err)
	}
}

func TestACycleAndWhoIsNotThereAreFoundInTheWholeOrganisation(t *testing.T) {
	root := write(t, t.TempDir(), map[string]string{
		"org.yaml":                   "chief: boss\ndepartments: {a: {lead: lead, members: [dev, ghost]}}\nrouting: {code: nobody}\n",
		"agents/lead/LOOP.md":        front,
		"agents/dev/LOOP.md":         front,
		"agents/extra/LOOP.md":       front,
		"agents/boss/LOOP.md":        front,
		"agents/lead/MANIFEST.yaml":  "agent:\n  reports_to: dev\n",
		"agents/extra/MANIFEST.yaml": "agent: {tier: 1, reports_to: me}\n",
	})
	o := orgdef.ReadOrganisation(root)
	var agents []orgdef.Agent
	for _, id := range []string{"boss", "dev", "extra", "lead"} {
		a, err := orgdef.ReadAgent(root, id)
		if err != nil {
			t.Fatal(err)
		}
		agents = append(agents, a)
	}
	team, findings := o.Team(agents)
	var said []string
	for _, f := range findings {
		said = append(said, f.Severity+" "+f.Render("", nil))
	}
	want := []string{
		"error agents/extra/MANIFEST.yaml:1:30: extra reports to me, which is not an agent; name one, or owner",
		"error agents/extra/MANIFEST.yaml:1:15: more than one agent is of tier 1, which only the chief is: boss, extra",
		"warning org.yaml:3:17: the tag code goes to nobody, which is not an agent; the chief gets what has it",
		"error agents/dev/LOOP.md:1:1: reports_to goes around in a cycle: dev → lead → dev",
		"error org.yaml:2:46: ghost has no folder agents/ghost that could be read",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if got := team.Superior("extra"); got != "boss" {
		t.Errorf("the superior of extra is %s", got)
	}
	// The agent whose own entry closes the circle is refused.
	if _, said, err := read(root, "lead"); err != nil || !slices.Contains(said, "error agents/lead/MANIFEST.yaml:2:15: reports_to goes around in a cycle: dev → lead → dev") {
		t.Errorf("lead: %q, %v", said, err)
	}
}

func TestTheSchemaOfAnOrganisationHasTheKeysThatAreRead(t *testing.T) {
	text, err := definition.Schema("org")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Examples   []json.RawMessage          `json:"examples"`
	}
	if err := json.Unmarshal(text, &schema); err != nil || len(schema.Properties) == 0 || len(schema.Examples) == 0 {
		t.Fatalf("schema = %+v, %v", schema, err)
	}
	var all strings.Builder
	for key := range schema.Properties {
		fmt.Fprintf(&all, "%s: x\n", key)
	}
	o := orgdef.ReadOrganisation(write(t, t.TempDir(), map[string]string{"org.yaml": all.String()}))
	for _, f := range o.Findings {
		if strings.Contains(f.Message, "is not used") {
			t.Errorf("a key of the schema: %s", f.Message)
		}
	}
	for _, example := range schema.Examples {
		o := orgdef.ReadOrganisation(write(t, t.TempDir(), map[string]string{"org.yaml": string(example)}))
		if len(o.Findings) > 0 || o.Problem() != nil {
			t.Errorf("an example: %+v, %v", o.Findings, o.Problem())
		}
	}
}

func TestATierOfTheOrganisationMayBeInTheLoopToo(t *testing.T) {
	root := write(t, t.TempDir(), map[string]string{"agents/boss/LOOP.md": "---\ntier: 1\n---\n", "agents/other/LOOP.md": "---\ntier: 1\ninterval: 1m\n---\n"})
	d, _, err := read(root, "boss")
	if err != nil || d.Tasks.Tier != 1 || d.Cadence != "5m" || d.Tier != loop.TierReport {
		t.Errorf("boss = %+v, %+v, %v", d, d.Tasks, err)
	}
	var agents []orgdef.Agent
	for _, id := range []string{"boss", "other"} {
		a, err := orgdef.ReadAgent(root, id)
		if err != nil {
			t.Fatal(err)
		}
		agents = append(agents, a)
	}
	_, findings := orgdef.ReadOrganisation(root).Team(agents)
	if want := "more than one agent is of tier 1, which only the chief is: boss, other"; len(findings) != 1 || findings[0].Message != want {
		t.Errorf("findings = %+v, want %s", findings, want)
	}
}

func FuzzReaders(f *testing.F) {
	for _, text := range []string{front, org, manifest, "---\nfields: {interval: {default: 1m}}\n---\n", "agent: {id: dev}\nloop: {interval: 1m}\n"} {
		f.Add([]byte(text), []byte(text))
	}
	f.Fuzz(func(t *testing.T, one, other []byte) {
		root := t.TempDir()
		for i, name := range []string{"agents/dev/LOOP.md", "agents/qa/MANIFEST.yaml", "org.yaml", "manifest.yaml", "agents/LOOP.md"} {
			write(t, root, map[string]string{name: string([][]byte{one, other}[i%2])})
		}
		o := orgdef.ReadOrganisation(root)
		for _, id := range []string{"dev", "qa"} {
			a, err := orgdef.ReadAgent(root, id)
			if err != nil {
				continue
			}
			o.Team([]orgdef.Agent{a})
			doc, err := a.Document(o)
			if err != nil {
				continue
			}
			d, findings := doc.Definition(id)
			refused := slices.ContainsFunc(findings, func(f readiness.Finding) bool { return f.Severity == readiness.SeverityError })
			if !refused && (d.Name != id || d.Protocol != loop.ProtocolTasks || d.Tasks == nil || d.Cadence == "" || len(d.Protect) == 0) {
				t.Errorf("%s runs as %+v", id, d)
			}
		}
	})
}
