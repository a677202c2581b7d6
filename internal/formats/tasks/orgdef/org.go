package orgdef

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/people"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Organisation is what the files that all agents share say. The zero Organisation is that of
// a workspace without such files.
type Organisation struct {
	File        string // org.yaml or manifest.yaml; empty: neither is there
	Name        string
	Owner       string
	Chief       string
	Departments []Department
	Routing     map[string]string // tag to agent
	Intervals   map[Rank]string
	Hours       people.Hours // of everybody; the zero Hours: at any time
	MaxAgents   int          // at work at once; 0: loop.DefaultMaxAgents
	MaxRetries  int          // per step, before it is escalated; 0: loop.DefaultMaxRetries

	Findings []readiness.Finding // in these files; if one is an error, no agent runs

	places   map[string]readiness.Value // of what is named, by what it is and its id
	defaults []defaultValue             // of the files with fields:, the nearest first
	sources  []source
	problem  error // why one of the files cannot be read

	Digest [sha256.Size]byte // tells whether the files have changed; zero: there are none
}

// Department is a part of an organisation.
type Department struct {
	Name    string
	Lead    string
	Members []string // without the lead
}

// Rank is what an agent is in its organisation, which says how often it runs.
type Rank string

// The ranks, and how often each runs if nothing says otherwise.
const (
	RankChief  Rank = "chief"
	RankLead   Rank = "lead"
	RankMember Rank = "member"
)

var usualIntervals = map[Rank]string{RankChief: "5m", RankLead: "10m", RankMember: "15m"}

// Interval returns how often an agent of a rank runs without a key of its own.
func (o Organisation) Interval(r Rank) string {
	if text := o.Intervals[r]; text != "" {
		return text
	}
	return usualIntervals[r]
}

// ReadOrganisation reads the files that all agents of the workspace at root share. What is
// wrong with them is among the findings.
func ReadOrganisation(root string) Organisation {
	o := Organisation{Routing: map[string]string{}, Intervals: map[Rank]string{}, places: map[string]readiness.Value{}}
	ours, plain := o.readTree(root, OrgFile)
	theirs, manifest := o.readTree(root, TreeManifest)
	if manifest != nil && !strings.HasPrefix(manifest.Get("schema").Text(), schemaName) && manifest.Get("org") == nil {
		manifest = nil // Of some other program.
	}
	switch {
	case plain != nil:
		o.readPlain(ours, plain)
		if manifest != nil {
			o.Findings = append(o.Findings, theirs.finding(readiness.SeverityWarning, readiness.Value{}, "this file is not used, because there is %s", OrgFile))
		}
	case manifest != nil:
		o.readManifest(theirs, manifest)
	}
	for _, name := range SharedFiles[2:] {
		if s, err := readSource(root, name); !isMissing(err) {
			o.readDefaults(s, err)
		}
	}
	if len(o.sources) > 0 || o.problem != nil {
		o.Digest = digestOf(o.sources, o.problem)
	}
	return o
}

// Fault is the error of an organisation in whose files something is wrong; nil if agents
// can run.
func (o Organisation) Fault() error {
	if o.problem != nil {
		return o.problem
	}
	var lines []string
	for _, f := range o.Findings {
		if f.Severity == readiness.SeverityError {
			lines = append(lines, f.Render("", nil))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return &loop.Fault{
		Exit: loop.ExitNotReady, What: "the organisation cannot be used", Why: strings.Join(lines, "\n"), Fix: "correct what is named; {1} says whether it is in order",
		Actions: []loop.Command{loop.PawlCommand("org check")},
	}
}

// Problem is why a file that all agents share cannot be read; nil if they can.
func (o Organisation) Problem() error { return o.problem }

// readTree reads a YAML file; the node is nil if it is missing or cannot be read.
func (o *Organisation) readTree(root, name string) (source, *definition.Node) {
	s, err := readSource(root, name)
	if isMissing(err) {
		return s, nil
	}
	var top *definition.Node
	if err == nil {
		o.sources = append(o.sources, s)
		top, err = definition.ParseNested(name, s.text)
	}
	if err != nil {
		o.problem = errors.Join(o.problem, err)
	}
	return s, top
}

// schemaName begins the schema of a manifest.yaml; what follows is its version.
const schemaName = "org-manifest/"

func (o *Organisation) readPlain(s source, top *definition.Node) {
	o.File = s.name
	r := mapReader{s, &o.Findings}
	r.read(top, "", map[string]func(*definition.Node){
		"name":                 func(n *definition.Node) { o.Name = r.text(n, "name") },
		"owner":                func(n *definition.Node) { o.Owner = r.text(n, "owner") },
		"chief":                func(n *definition.Node) { o.Chief = o.place("chief", r.id(n, "chief")) },
		"departments":          func(n *definition.Node) { o.readDepartments(r, n, "departments") },
		"routing":              func(n *definition.Node) { o.readRouting(r, n, "routing") },
		"escalation":           func(n *definition.Node) { o.readEscalation(r, n, "escalation") },
		"intervals":            func(n *definition.Node) { o.readIntervals(r, n, "intervals") },
		"hours":                func(n *definition.Node) { o.readHours(r, n, "hours") },
		"timezone":             func(n *definition.Node) { o.readZone(r, n, "timezone") },
		"max_retries_per_step": func(n *definition.Node) { o.MaxRetries = r.count(n, "max_retries_per_step") },
		"max_agents":           func(n *definition.Node) { o.MaxAgents = r.count(n, "max_agents") },
		"cost_alert":           r.notYet("cost_alert"),
	})
}

func (o *Organisation) readManifest(s source, top *definition.Node) {
	o.File = s.name
	r := mapReader{s, &o.Findings}
	type keys = map[string]func(*definition.Node)
	if schema := top.Get("schema"); schema.Text() != schemaName+"v2" {
		at := readiness.Value{}
		if schema != nil {
			at = schema.Value
		}
		r.warn(at, "schema: %s is not %sv2, as which the file is read", readiness.Quote(schema.Text()), schemaName)
	}
	r.read(top, "", keys{
		"schema": skip,
		"name":   func(n *definition.Node) { o.Name = r.text(n, "name") },
		"org": func(n *definition.Node) {
			r.read(n, "org.", keys{
				"name":  func(n *definition.Node) { o.Name = r.text(n, "org.name") },
				"owner": func(n *definition.Node) { o.Owner = r.id(n, "org.owner").Text },
				"hierarchy": func(n *definition.Node) {
					r.read(n, "org.hierarchy.", keys{
						"chief": func(n *definition.Node) { o.Chief = o.place("chief", r.id(n, "org.hierarchy.chief")) },
						"owner": func(n *definition.Node) { o.Owner = r.id(n, "org.hierarchy.owner").Text },
					})
				},
				"departments": func(n *definition.Node) { o.readDepartments(r, n, "org.departments") },
			})
		},
		"coordination": func(n *definition.Node) {
			r.read(n, "coordination.", keys{
				"escalation_chain": func(n *definition.Node) { o.readEscalation(r, n, "coordination.escalation_chain") },
				"task_routing":     func(n *definition.Node) { o.readRouting(r, n, "coordination.task_routing") },
			})
		},
		"loop": func(n *definition.Node) {
			r.read(n, "loop.", keys{
				"intervals":     func(n *definition.Node) { o.readIntervals(r, n, "loop.intervals") },
				"working_hours": func(n *definition.Node) { o.readHours(r, n, "loop.working_hours") },
				"timezone":      func(n *definition.Node) { o.readZone(r, n, "loop.timezone") },
				"resilience": func(n *definition.Node) {
					r.read(n, "loop.resilience.", keys{
						"max_retries_per_step": func(n *definition.Node) { o.MaxRetries = r.count(n, "loop.resilience.max_retries_per_step") },
					})
				},
			})
		},
	})
}

// place remembers where somebody is named.
func (o *Organisation) place(what string, v readiness.Value) string {
	if _, there := o.places[what+" "+v.Text]; !there {
		o.places[what+" "+v.Text] = v
	}
	return v.Text
}

func (o *Organisation) readDepartments(r mapReader, n *definition.Node, where string) {
	if !n.Map {
		r.read(n, where, nil)
		return
	}
	for _, d := range n.Nodes {
		at := where + "." + d.Key.Name
		if d.Key.Repeats > 0 {
			r.refuse(readiness.Value{Line: d.Key.Line, Column: d.Key.Column}, "%s: line %d has the department already; remove one of them", at, d.Key.Repeats)
			continue
		}
		dep := Department{Name: d.Key.Name}
		r.read(d, at+".", map[string]func(*definition.Node){
			"name": skip, "description": skip,
			"lead": func(n *definition.Node) { dep.Lead = o.join(r, dep.Name, r.id(n, at+".lead")) },
			"members": func(n *definition.Node) {
				items := n.Nodes
				if !n.List {
					items = []*definition.Node{n}
				}
				for _, item := range items {
					if v := r.id(item, at+".members"); v.Text != "" && v.Text != dep.Lead && !slices.Contains(dep.Members, v.Text) {
						dep.Members = append(dep.Members, o.join(r, dep.Name, v))
					}
				}
			},
		})
		dep.Members = slices.DeleteFunc(dep.Members, func(id string) bool { return id == dep.Lead })
		o.Departments = append(o.Departments, dep)
	}
}

// join remembers where somebody is named as one of a department, and reports who is in
// two. The first one counts.
func (o *Organisation) join(r mapReader, department string, v readiness.Value) string {
	for _, d := range o.Departments {
		if d.Lead == v.Text || slices.Contains(d.Members, v.Text) {
			r.warn(v, "%s is in the department %s already, which counts", v.Text, d.Name)
		}
	}
	return o.place("person", v)
}

func (o *Organisation) readRouting(r mapReader, n *definition.Node, where string) {
	if !n.Map {
		r.read(n, where, nil)
		return
	}
	for _, tag := range n.Nodes {
		v := r.id(tag, where+"."+tag.Key.Name)
		if tag.Key.Repeats > 0 {
			r.refuse(v, "%s.%s: line %d has the tag already; remove one of them", where, tag.Key.Name, tag.Key.Repeats)
			continue
		}
		o.Routing[tag.Key.Name] = v.Text
		o.places["tag "+tag.Key.Name] = v
	}
}

// usualChain are words for the ones who are told of a step that is stuck, in the order
// that the format has.
var usualChain = []string{"member", "reports_to", "department_lead", "lead", "chief", "human", "owner"}

// readEscalation reads who is told of a step that is stuck. The order is that of the format;
// a name at the end is the owner's.
func (o *Organisation) readEscalation(r mapReader, n *definition.Node, where string) {
	if n.Map {
		r.refuse(n.Value, "%s: expected a list", where)
		return
	}
	last := -1
	for i, v := range n.Texts() {
		word := strings.ReplaceAll(strings.ToLower(v.Text), "-", "_")
		at := slices.Index(usualChain, word)
		switch {
		case at >= 0 && at < last:
			r.warn(v, "%s: the order is always superior, chief, owner", where)
		case at >= 0:
			last = at
		case v.Text == o.Chief:
			last = slices.Index(usualChain, "chief")
		case i == len(n.Texts())-1 && o.Owner == "":
			o.Owner = v.Text
		case v.Text != o.Owner:
			r.warn(v, "%s: %s is not used here; the key escalation of an agent names whom it tells beyond the threshold", where, readiness.Quote(v.Text))
		}
	}
}

// ranks are the words for ranks, without punctuation.
var ranks = map[string][]Rank{
	"chief": {RankChief}, "tier1": {RankChief}, "tier1chief": {RankChief},
	"lead": {RankLead}, "leads": {RankLead}, "tier2lead": {RankLead}, "tier2leads": {RankLead}, "departmentlead": {RankLead}, "departmentleads": {RankLead},
	"member": {RankMember}, "members": {RankMember}, "tier2member": {RankMember}, "tier2members": {RankMember}, "departmentmember": {RankMember},
	"departmentmembers": {RankMember}, "tier2": {RankLead, RankMember},
}

func (o *Organisation) readIntervals(r mapReader, n *definition.Node, where string) {
	if !n.Map {
		r.read(n, where, nil)
		return
	}
	for _, child := range n.Nodes {
		key := where + "." + child.Key.Name
		word := strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(child.Key.Name))
		of, known := ranks[word]
		if !known {
			r.warn(readiness.Value{Line: child.Key.Line, Column: child.Key.Column}, "%s: this key is not used; write chief, lead or member", key)
			continue
		}
		text := r.text(child, key)
		if _, err := schedule.Parse(text); err != nil {
			r.warn(child.Value, "%s: %s cannot be read; %s is used", key, readiness.Quote(text), usualIntervals[of[0]])
			continue
		}
		for _, rank := range of {
			if len(of) == 1 || o.Intervals[rank] == "" {
				o.Intervals[rank] = text
			}
		}
	}
}

// readHours reads [9, 17), [9, 17] or 9-17.
func (o *Organisation) readHours(r mapReader, n *definition.Node, where string) {
	parts := []string{}
	for _, v := range n.Texts() {
		parts = append(parts, strings.FieldsFunc(v.Text, func(c rune) bool { return strings.ContainsRune("[](), -–", c) })...)
	}
	var hours [2]int
	ok := len(parts) == 2 && !n.Map
	for i := 0; ok && i < 2; i++ {
		h, err := strconv.Atoi(strings.TrimSuffix(parts[i], ":00"))
		ok, hours[i] = err == nil && h >= 0 && h <= 24, h
	}
	if !ok {
		r.refuse(n.Value, "%s: expected the first hour and the one before which work ends, like 9-17", where)
		return
	}
	o.Hours.From, o.Hours.Until = hours[0], hours[1]
}

func (o *Organisation) readZone(r mapReader, n *definition.Node, where string) {
	zone := r.text(n, where)
	if _, err := schedule.Zone(zone); err != nil {
		r.refuse(n.Value, "%s: %s", where, err)
		return
	}
	o.Hours.Zone = zone
}

// count reads a whole number from 1.
func (r mapReader) count(n *definition.Node, where string) int {
	text := r.text(n, where)
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 || v > 1000 {
		r.refuse(n.Value, "%s: %s is not a whole number from 1 to 1000", where, readiness.Quote(text))
		return 0
	}
	return v
}

// notYet names a key of the format that this version does nothing with.
func (r mapReader) notYet(key string) func(*definition.Node) {
	return func(n *definition.Node) {
		r.warn(readiness.Value{Line: n.Key.Line, Column: n.Key.Column}, "%s: this key has no effect yet", key)
	}
}

// Place returns the file, the line and the column at which the organisation names
// somebody: a person, the chief, or a tag. The line is 1 if it does not.
func (o Organisation) Place(what, id string) readiness.Finding {
	v := o.places[what+" "+id]
	return readiness.Finding{File: o.File, Line: max(v.Line, 1), Column: max(v.Column, 1)}
}

// rank returns what an agent is by the organisation alone, and its department.
func (o Organisation) rank(id string) (r Rank, department string) {
	r = RankMember
	for _, d := range o.Departments {
		switch {
		case department != "":
		case d.Lead == id:
			r, department = RankLead, d.Name
		case slices.Contains(d.Members, id):
			department = d.Name
		}
	}
	if id == o.Chief {
		r = RankChief
	}
	return r, department
}

// named returns the ids that the organisation names, in its order.
func (o Organisation) named() []string {
	var ids []string
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	add(o.Chief)
	for _, d := range o.Departments {
		add(d.Lead)
		for _, id := range d.Members {
			add(id)
		}
	}
	return ids
}

// digestOf tells whether files have changed, or why one cannot be read.
func digestOf(sources []source, problem error) [sha256.Size]byte {
	h := sha256.New()
	for _, s := range sources {
		fmt.Fprintf(h, "%s\x00%d\x00%s", s.name, len(s.text), s.text)
	}
	if problem != nil {
		fmt.Fprintf(h, "\x00%s", problem)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
