package orgdef

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/people"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Agent is what the files of one agent say.
type Agent struct {
	ID   string // the name of its folder
	File string // that has its loop, relative to the workspace
	Text []byte // of that file
	Role string // the text of LOOP.md below its front matter

	Person   people.Person       // as its MANIFEST.yaml says; Tier is 0 if that says nothing
	Findings []readiness.Finding // in its MANIFEST.yaml, each with its file

	doc     *definition.Document
	tier    readiness.Value // in MANIFEST.yaml, with its place
	depart  readiness.Value
	reports readiness.Value
	from    source // the MANIFEST.yaml; the zero source: there is none
}

// ReadAgent reads the files of the agent in a folder of agents/. Those that cannot be used
// are the error, a *loop.Fault.
func ReadAgent(root, id string) (Agent, error) {
	a, err := readFiles(root, id)
	if err != nil {
		return a, err
	}
	if at, said := a.doc.Scalar("tier"); said && (at.Text == "1" || at.Text == "2") {
		a.doc.Take("tier") // That of the organisation, not L1 to L3.
		a.tier, a.Person.Tier = at, int(at.Text[0]-'0')
	}
	return a, nil
}

func readFiles(root, id string) (Agent, error) {
	a := Unread(id)
	manifest, err := readSource(root, AgentFile(id, Manifest))
	var top *definition.Node
	switch {
	case err == nil:
		if top, err = definition.ParseNested(manifest.name, manifest.text); err != nil {
			return a, err
		}
		a.from = manifest
		a.readManifest(top)
	case !isMissing(err):
		return a, err
	}
	file, err := readSource(root, AgentFile(id, LoopFile))
	switch {
	case err == nil:
		if block := top.Get("loop"); block != nil {
			at := readiness.Value{Line: block.Key.Line, Column: block.Key.Column}
			a.Findings = append(a.Findings, manifest.finding(readiness.SeverityWarning, at, "loop: this block is not used, because there is %s", file.name))
		}
		return a, a.readLoopFile(file)
	case !isMissing(err):
		return a, err
	case top == nil:
		return a, MissingFault(id)
	}
	a.File, a.Text = manifest.name, manifest.text
	block := top.Get("loop")
	if block == nil {
		return a, &loop.Fault{
			Exit: loop.ExitNotReady, What: id + " is not ready to run", Why: manifest.name + " has no block loop:, and there is no " + file.name,
			Fix: "add one of them; docs/org.md says with which keys",
		}
	}
	if block.Get("fields") != nil {
		return a, definesFault(id, manifest.name)
	}
	if block.Map {
		a.doc, err = block.Document(manifest.name)
	} else {
		err = unreadable(manifest.name, fmt.Sprintf("line %d: loop: expected keys and values", block.Key.Line), "write the keys of the loop below it")
	}
	return a, err
}

// Unread is an agent of whose files nothing can be read.
func Unread(id string) Agent { return Agent{ID: id, Person: people.Person{ID: id}} }

// MissingFault is the error for an agent whose files are not there any more.
func MissingFault(id string) *loop.Fault {
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: "the agent " + id + " cannot run", Err: loop.ErrNotFound,
		Why: fmt.Sprintf("neither %s nor %s is there", AgentFile(id, LoopFile), AgentFile(id, Manifest)),
		Fix: "put one of them back, or make a new one: {1}", Actions: []loop.Command{loop.PawlCommand("org init").WithFlag("member", id)},
	}
}

// definesFault is the error for a file with fields:, which is never run.
func definesFault(id, name string) *loop.Fault {
	return &loop.Fault{
		Exit: loop.ExitNotReady, What: id + " is not ready to run", Why: name + " has fields:, so that it is the definition of the format and no agent",
		Fix: "write values, like interval: 15m; defaults for all agents belong into " + SharedFiles[2],
	}
}

func (a *Agent) readLoopFile(file source) error {
	head, body, ok := splitFrontMatter(file.text)
	if !ok {
		return unreadable(file.name, "line 1: no front matter", "begin the file with a line of three dashes, the keys of the loop, and another such line")
	}
	a.File, a.Text, a.Role = file.name, file.text, body
	top, err := definition.ParseNested(file.name, head)
	if err == nil && top.Get("fields") != nil {
		return definesFault(a.ID, file.name)
	}
	if err == nil && len(top.Nodes) == 0 {
		a.doc = &definition.Document{}
		return nil
	}
	a.doc, err = definition.Parse(file.name, head)
	return err
}

func (a *Agent) readManifest(top *definition.Node) {
	r := mapReader{a.from, &a.Findings}
	text := func(to *string, where string) func(*definition.Node) {
		return func(n *definition.Node) { *to = r.text(n, where) }
	}
	r.read(top, "", map[string]func(*definition.Node){
		"schema": skip, "loop": skip,
		"agent": func(n *definition.Node) {
			r.read(n, "agent.", map[string]func(*definition.Node){
				"id": func(n *definition.Node) {
					if id := r.text(n, "agent.id"); id != a.ID {
						r.refuse(n.Value, "agent.id: %s is not the name of the folder, %s; rename one of them", readiness.Quote(id), readiness.Quote(a.ID))
					}
				},
				"name":       text(&a.Person.Name, "agent.name"),
				"role":       text(&a.Person.Role, "agent.role"),
				"department": func(n *definition.Node) { a.depart = n.Value; a.Person.Department = r.text(n, "agent.department") },
				"reports_to": func(n *definition.Node) { a.reports = n.Value; a.Person.ReportsTo = r.text(n, "agent.reports_to") },
				"tier": func(n *definition.Node) {
					a.tier = n.Value
					switch r.text(n, "agent.tier") {
					case "1":
						a.Person.Tier = 1
					case "2":
						a.Person.Tier = 2
					default:
						r.refuse(n.Value, "agent.tier: %s is unknown; write 1 or 2", readiness.Quote(n.Value.Text))
					}
				},
				"capabilities": func(n *definition.Node) {
					for _, v := range n.Texts() {
						a.Person.Capabilities = append(a.Person.Capabilities, v.Text)
					}
				},
			})
		},
	})
}

// place is the agent's person in an organisation, whose file says who is the chief, who
// leads and who is in which department.
func (a *Agent) place(o Organisation) (p people.Person, found []readiness.Finding) {
	p = a.Person
	rank, department := o.rank(a.ID)
	if department != "" {
		if p.Department != "" && p.Department != department {
			found = append(found, a.from.finding(readiness.SeverityWarning, a.depart, "agent.department: %s counts, as %s says", department, o.File))
		}
		p.Department = department
	}
	p.Lead = rank == RankLead
	if rank == RankChief {
		if p.Tier == 2 {
			found = append(found, a.from.finding(readiness.SeverityWarning, a.tier, "agent.tier: the chief is always of tier 1"))
		}
		p.Tier = 1
	}
	p.Tier, p.Hours = cmp.Or(p.Tier, 2), o.Hours
	return p, found
}

// Team returns the organisation with these agents, and what is wrong with their entries.
func (o Organisation) Team(agents []Agent) (people.Team, []readiness.Finding) {
	var list []people.Person
	var found []readiness.Finding
	at := map[string]Agent{}
	for _, a := range agents {
		p, differs := a.place(o)
		list, found = append(list, p), append(append(found, a.Findings...), differs...)
		at[a.ID] = a
	}
	team := people.New(list, o.Chief, o.Owner, o.Routing)
	for _, p := range team.Check() {
		found = append(found, o.locate(p, at[p.Person]))
	}
	for _, id := range o.named() {
		if _, there := at[id]; !there && id != o.Chief {
			f := o.Place("person", id)
			f.Severity, f.Message = readiness.SeverityError, id+" has no folder "+AgentsDir+"/"+id+" that could be read"
			found = append(found, f)
		}
	}
	return team, found
}

// locate is the finding of a problem, at the place where its reason is written.
func (o Organisation) locate(p people.Problem, a Agent) readiness.Finding {
	f := readiness.Finding{File: cmp.Or(a.from.name, a.File), Line: 1, Column: 1}
	switch {
	case p.Person == "" && o.places["tag "+p.Named].Line > 0:
		f = o.Place("tag", p.Named)
	case p.Person == "":
		f = o.Place("chief", p.Named)
	case p.Kind == people.ProblemTwoChiefs && a.tier.Line > 0:
		f.Line, f.Column = a.tier.Line, a.tier.Column
	case a.reports.Line > 0:
		f.Line, f.Column = a.reports.Line, a.reports.Column
	}
	f.Severity, f.Message = readiness.SeverityError, p.Message
	if p.Person == "" && p.Kind == people.ProblemUnknown && p.Named != o.Chief {
		f.Severity = readiness.SeverityWarning
	}
	return f
}

// team is the organisation as far as it is near the agent, by what the organisation's file
// and the agent itself say. Whom the agent reports to is taken to be there.
func (a *Agent) team(o Organisation, p people.Person) people.Team {
	near := []string{o.Chief, p.ReportsTo}
	_, above := o.rank(p.ReportsTo)
	for _, d := range o.Departments {
		switch {
		case d.Lead == a.ID:
			near = append(near, d.Members...)
		case d.Name == p.Department, d.Name == above, a.ID == o.Chief:
			near = append(near, d.Lead)
		}
	}
	list := []people.Person{p}
	there := map[string]bool{"": true, a.ID: true}
	isOwner := people.New(nil, "", o.Owner, nil).IsOwner
	for _, id := range near {
		if there[id] || isOwner(id) {
			continue
		}
		there[id] = true
		other, _ := (&Agent{ID: id, Person: people.Person{ID: id}}).place(o)
		list = append(list, other)
	}
	return people.New(list, o.Chief, o.Owner, nil)
}

// Document completes the keys of the agent to the definition of its loop. If the
// organisation must not be used, or the agent says what no loop may say, the error is a
// *loop.Fault. Document may be called once.
func (a *Agent) Document(o Organisation) (*definition.Document, error) {
	if err := o.Fault(); err != nil {
		return nil, err
	}
	d := document{Document: a.doc, agent: a, src: source{a.File, a.Text}}
	if at, said := d.Scalar("protocol"); said && at.Text != loop.ProtocolTasks {
		d.refuse(at, "protocol: %s is not that of an agent in %s; remove the key", readiness.Quote(at.Text), AgentsDir)
		d.Take("protocol")
	}
	p, differs := a.place(o)
	d.Report(ofFile(a.File, slices.Concat(a.Findings, differs))...)
	for _, v := range o.defaults {
		d.fill(v)
	}
	for _, v := range usualDefaults {
		d.fill(v)
	}
	t := d.readKeys(o, p)
	d.completeTeam(t, o, p)
	t.Role, d.Tasks = a.Role, t
	d.completeKeys(t, p)
	return d.Document, nil
}

// ofFile lets findings in a file be shown with their lines.
func ofFile(name string, list []readiness.Finding) []readiness.Finding {
	for i := range list {
		if list[i].File == name {
			list[i].File = ""
		}
	}
	return list
}

// document is a definition that is being completed.
type document struct {
	*definition.Document

	agent *Agent
	src   source
}

func (d document) refuse(at readiness.Value, format string, args ...any) {
	d.Report(ofFile(d.src.name, []readiness.Finding{d.src.finding(readiness.SeverityError, at, format, args...)})...)
}

func (d document) warn(at readiness.Value, format string, args ...any) {
	d.Report(ofFile(d.src.name, []readiness.Finding{d.src.finding(readiness.SeverityWarning, at, format, args...)})...)
}

// fill gives a key its default.
func (d document) fill(v defaultValue) {
	if slices.ContainsFunc(d.Keys(), func(k definition.Key) bool { return k.Name == v.key }) {
		return
	}
	if v.list {
		d.Include(v.key, v.items...)
		return
	}
	d.Default(v.key, v.text)
}

// take takes a key out, which must not have two values.
func (d document) take(key string) (definition.Taken, bool) {
	t, ok := d.Take(key)
	if at := t.Differs; at.Line > 0 {
		d.refuse(readiness.Value{Line: at.Line, Column: at.Column}, "%s: line %d and line %d have different values; remove one of them", key, at.Repeats, at.Line)
	}
	return t, ok
}

// takeText takes a key out that has one value.
func (d document) takeText(key string) (readiness.Value, bool) {
	t, ok := d.take(key)
	if t.Block {
		d.refuse(t.Value, "%s: expected one value, found a list or nested keys", key)
		return readiness.Value{}, false
	}
	return t.Value, ok && t.Value.Text != ""
}

func (d document) takeFlag(key string) bool {
	v, _ := d.takeText(key)
	if problem := checkValue(key, v.Text); problem != "" {
		d.refuse(v, "%s: %s %s", key, readiness.Quote(v.Text), problem)
	}
	return v.Text == "true"
}

// takeFiles takes out a list of files in the agent's folder.
func (d document) takeFiles(key string) []string {
	t, _ := d.take(key)
	names := []string{}
	for _, v := range t.Items {
		name := path.Clean(v.Text)
		switch {
		case v.Text == "" || readiness.HasPlaceholder(v.Text) || strings.ContainsAny(v.Text, "\\\x00*?[]{}"):
			d.refuse(v, "%s: %s is not the name of a file", key, readiness.Quote(v.Text))
		case !filepath.IsLocal(v.Text) || name == ".":
			d.refuse(v, "%s: %s leads out of the agent's folder; write a name in it, like CONTEXT.md", key, readiness.Quote(v.Text))
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names
}

// readKeys takes out the keys of the format that a definition does not have.
func (d document) readKeys(o Organisation, p people.Person) *loop.TaskLoop {
	t := &loop.TaskLoop{Enabled: d.takeFlag(keyEnabled), CycleLog: d.takeFlag(keyCycleLog)}
	t.Reads, t.Writes = d.takeFiles(keyReads), d.takeFiles(keyWrites)
	if v, ok := d.takeText(keyEscalation); ok {
		if strings.ContainsAny(v.Text, " \t/\\") {
			d.refuse(v, "escalation: %s is not the id of an agent", readiness.Quote(v.Text))
		}
		t.Escalation = v.Text
	}
	if v, ok := d.takeText(keyPrimitive); ok && v.Text != Primitive {
		d.warn(v, "primitive: %s is not %s, as which the file is read", readiness.Quote(v.Text), Primitive)
	}
	d.readInterval(o.Interval(rankOf(p)))
	return t
}

func rankOf(p people.Person) Rank {
	switch {
	case p.Tier == 1:
		return RankChief
	case p.Lead:
		return RankLead
	}
	return RankMember
}

// readInterval makes the interval the cadence. Without one that can be read it is the usual
// one, which is said.
func (d document) readInterval(usual string) {
	cadence, both := d.Scalar("cadence")
	v, said := d.takeText(keyInterval)
	switch _, err := schedule.ParseFor(v.Text, d.agent.ID); {
	case said && err != nil:
		_, fix, _ := strings.Cut(err.Error(), ": ")
		d.warn(v, "interval: %s cannot be read, %s is used; %s", readiness.Quote(v.Text), usual, fix)
		v.Text = usual
	case !said && both:
		return
	case !said:
		d.warn(v, "interval: missing, %s is used", usual)
		v.Text = usual
	}
	if both {
		d.warn(cadence, "cadence: this key is not used, because there is interval")
		d.Take("cadence")
	}
	d.Default("cadence", v.Text)
}

// completeTeam says where the agent stands.
func (d document) completeTeam(t *loop.TaskLoop, o Organisation, p people.Person) {
	team := d.agent.team(o, p)
	for _, problem := range team.Check() {
		if problem.Kind == people.ProblemCycle {
			d.Report(ofFile(d.agent.File, []readiness.Finding{o.locate(problem, *d.agent)})...)
		}
	}
	t.Tier, t.Department, t.Chief, t.Owner = p.Tier, p.Department, o.Chief, o.Owner
	t.ReportsTo, t.Reports = team.Superior(p.ID), team.Reports(p.ID)
	t.FromHour, t.UntilHour = p.Hours.From, p.Hours.Until
	t.MaxAgents = cmp.Or(o.MaxAgents, loop.DefaultMaxAgents)
	t.MaxRetries = cmp.Or(o.MaxRetries, loop.DefaultMaxRetries)
	if len(o.Routing) > 0 {
		t.Routing = o.Routing
	}
}

// completeKeys gives the keys that every loop has the values of the format.
func (d document) completeKeys(t *loop.TaskLoop, p people.Person) {
	id := d.agent.ID
	d.Default("name", id)
	d.OfFormat(loop.ProtocolTasks)
	d.Default("pattern", "custom")
	tier := loop.TierReport
	if len(d.List("scope")) > 0 {
		tier = loop.TierAssisted
	}
	d.Default("tier", string(tier))
	if v, _ := d.Scalar("tier"); v.Text == string(loop.TierReport) {
		d.MakeOptional("scope")
	}
	goal := "Work on one step of " + AgentFile(id, "TASKS.md") + " at a time"
	if as := strings.Join(strings.Fields(p.Role), " "); as != "" {
		goal += ", as " + as
	}
	d.Default("goal", goal+".")
	d.Default("permission_mode", permissionMode(d.Document))
	d.Default("worktree", "true")
	to := cmp.Or(t.Escalation, t.ReportsTo, t.Owner, "the owner")
	d.Default("escalation", "to "+to+": what stays blocked or keeps failing, and whatever needs a change outside of the scope or the sandbox")
	d.Default("kill_switch", AgentFile(id, PausedFile)+" exists")
	d.Include("on", string(loop.OnFile)+":"+AgentFile(id, taskfile.InboxFile)) // A critical entry fires it at once.
	d.Default("max_iterations", "1")
	if p.Hours.Zone != "" {
		d.Default("timezone", p.Hours.Zone)
	}
	limit := loop.DefaultStepTimeout
	if v, ok := d.Scalar("max_step_timeout"); ok {
		if said, err := definition.ParseDuration(v.Text); err == nil {
			limit = said
		}
	}
	d.Default("max_wall_clock", (limit + yieldTime).String())
	d.MakeOptional("cadence", "budget_tokens", "verify", "guard", "land_via")
	d.Include("protect", append([]string{AgentsDir + "/**"}, SharedFiles[0], SharedFiles[1], SharedFiles[3])...)
	d.Suggest(ownKeys...)
}

// yieldTime is how long after the end of a step a cycle may last to write its results.
const yieldTime = 2 * time.Minute

// permissionMode is the one that fits the tier, as a new loop has it.
func permissionMode(doc *definition.Document) string {
	if tier, _ := doc.Scalar("tier"); tier.Text == string(loop.TierUnattended) {
		return "bypassPermissions"
	}
	return "dontAsk"
}

func joinWords(words []string) string { return strings.Join(words, ", ") }

// Digest tells whether the files of the agent have changed.
func (a *Agent) Digest() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s%s", a.File, len(a.Text), a.Text, a.from.text))
}
