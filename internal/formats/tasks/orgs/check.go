package orgs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// maxFile is the size of the largest file of an agent that is read.
const maxFile = 4 << 20

// Checked is what Check found, schema pawl.org-check/v1.
type Checked struct {
	Schema       string    `json:"schema"`
	Healthy      bool      `json:"healthy"`      // no finding is an error
	Organisation string    `json:"organisation"` // the file that says who is who; empty if missing
	Checks       int       `json:"checks"`       // seven for each agent
	Passed       int       `json:"passed"`
	Agents       []Health  `json:"agents"`
	Findings     []Finding `json:"findings"` // of the organisation, then agent by agent
}

// Health is how many of its checks an agent passes.
type Health struct {
	ID     string `json:"id"`
	Passed int    `json:"passed"`
	Checks int    `json:"checks"`
}

// Finding is something about a file of the organisation.
type Finding struct {
	Path     string `json:"path"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"` // error or warning
	Check    string `json:"check,omitempty"`
	Message  string `json:"message"`
}

// String is the finding with its place, on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.Path, f.Line, f.Column, f.Message)
}

// Check checks the files of the organisation and of each agent, and writes nothing.
func (s *Service) Check(context.Context) (Checked, error) {
	c, err := checkTree(s.ws.Root)
	if err == nil && len(c.Agents) == 0 && c.Organisation == "" && len(c.Findings) == 0 {
		return c, NoAgents(s.ws.Root)
	}
	return c, err
}

// NoAgents is the error for a folder that no agent has a folder in.
func NoAgents(root string) error {
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: "there are no agents in " + root, Err: loop.ErrNotFound,
		Why: "no folder of " + orgdef.AgentsDir + " holds a " + orgdef.LoopFile + " or a " + orgdef.Manifest,
		Fix: "make some: {1}", Actions: []loop.Command{loop.PawlCommand("org init")},
	}
}

// checkTree checks the organisation below root.
func checkTree(root string) (Checked, error) {
	c := Checked{Schema: "pawl.org-check/v1", Agents: []Health{}, Findings: []Finding{}}
	ids, err := findAgents(root)
	if err != nil {
		return c, err
	}
	o := orgdef.ReadOrganisation(root)
	c.Organisation = o.File
	c.addFault(o.Problem(), cmp.Or(o.File, orgdef.OrgFile))
	c.add("", o.Findings...)
	var all, read []orgdef.Agent
	var faults []Finding
	for _, id := range ids {
		agent, err := orgdef.ReadAgent(root, id)
		if err != nil {
			faults = append(faults, faultFindings(err, orgdef.AgentFile(id, orgdef.LoopFile))...)
			all = append(all, orgdef.Unread(id))
			continue
		}
		all, read = append(all, agent), append(read, agent)
	}
	_, entries := o.Team(all)
	c.add("", entries...)
	for _, id := range ids {
		c.checkAgent(root, id, read, o, faults)
	}
	c.Healthy = !slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Severity == readiness.SeverityError })
	return c, nil
}

// idOf returns the agent that has a file.
func idOf(name string) string { return filepath.Base(filepath.Dir(name)) }

func (c *Checked) add(file string, list ...readiness.Finding) {
	for _, f := range list {
		found := Finding{Path: cmp.Or(f.File, file), Line: max(f.Line, 1), Column: max(f.Column, 1), Severity: f.Severity, Message: f.Message}
		if !slices.Contains(c.Findings, found) {
			c.Findings = append(c.Findings, found)
		}
	}
}

// addFault adds why a file cannot be read.
func (c *Checked) addFault(err error, file string) {
	c.Findings = append(c.Findings, faultFindings(err, file)...)
}

// faultFindings are the reasons of an error, which names the file in its first words.
func faultFindings(err error, file string) (found []Finding) {
	if err == nil {
		return nil
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			found = append(found, faultFindings(one, file)...)
		}
		return found
	}
	message := err.Error()
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		message = f.Why + "; " + f.Fix
		for word := range strings.FieldsSeq(f.What + " " + f.Why) {
			if strings.HasSuffix(word, ".md") || strings.HasSuffix(word, ".yaml") {
				file = word
				break
			}
		}
	}
	line, column := 1, 1
	if _, rest, ok := strings.Cut(message, "line "); ok {
		_, _ = fmt.Sscanf(rest, "%d, column %d", &line, &column) // The place stays as it is if none is named.
	}
	return []Finding{{Path: file, Line: line, Column: column, Severity: readiness.SeverityError, Message: message}}
}

// checkAgent carries out the seven checks of one agent.
func (c *Checked) checkAgent(root, id string, read []orgdef.Agent, o orgdef.Organisation, faults []Finding) {
	h := Health{ID: id}
	check := func(name, file string, problem string) {
		h.Checks++
		if problem == "" {
			h.Passed++
			return
		}
		c.Findings = append(c.Findings, Finding{Path: orgdef.AgentFile(id, file), Line: 1, Column: 1, Severity: readiness.SeverityError, Check: name, Message: problem})
	}
	h.Checks++
	if c.checkManifest(id, read, o, faults) {
		h.Passed++
	}
	tasks, problem := readText(root, orgdef.AgentFile(id, taskfile.TasksFile))
	if problem == "" && !hasHeading(tasks, "") {
		problem = "it has no heading that begins with ##"
	}
	check("tasks", taskfile.TasksFile, problem)
	_, unusable := taskfile.ParseTasks(string(tasks))
	for _, p := range unusable { // The cycle works on the other steps.
		c.Findings = append(c.Findings, Finding{Path: orgdef.AgentFile(id, taskfile.TasksFile), Line: p.Line, Column: p.Column, Severity: string(readiness.SeverityWarning), Message: p.Message})
	}
	_, problem = readText(root, orgdef.AgentFile(id, taskfile.HeartbeatFile))
	check("heartbeat", taskfile.HeartbeatFile, problem)
	inbox, problem := readText(root, orgdef.AgentFile(id, taskfile.InboxFile))
	for _, section := range []string{"Pending", "Processed"} {
		if problem == "" && !hasHeading(inbox, section) {
			problem = "it has no section ## " + section
		}
	}
	check("inbox", taskfile.InboxFile, problem)
	for _, name := range []string{taskfile.ContextFile, identityFile, soulFile} {
		_, problem = readText(root, orgdef.AgentFile(id, name))
		check(strings.ToLower(strings.TrimSuffix(name, ".md")), name, problem)
	}
	c.Checks, c.Passed, c.Agents = c.Checks+h.Checks, c.Passed+h.Passed, append(c.Agents, h)
}

// checkManifest reports whether the agent has a definition that can run.
func (c *Checked) checkManifest(id string, read []orgdef.Agent, o orgdef.Organisation, faults []Finding) bool {
	ok := true
	for _, f := range faults {
		if idOf(f.Path) == id {
			f.Check, ok = "manifest", false
			c.Findings = append(c.Findings, f)
		}
	}
	i := slices.IndexFunc(read, func(a orgdef.Agent) bool { return a.ID == id })
	if i < 0 {
		return false
	}
	doc, err := read[i].Document(o)
	if err != nil {
		return ok // It is the organisation's, whose findings are told.
	}
	_, findings := doc.Definition(id)
	for _, f := range findings {
		ok = ok && f.Severity != readiness.SeverityError
	}
	c.add(read[i].File, findings...)
	return ok
}

// readText reads a file of an agent, or says why it cannot be read.
func readText(root, name string) (text []byte, problem string) {
	f, err := projection.ReadFile(filepath.Join(root, filepath.FromSlash(name)), maxFile)
	switch {
	case err != nil:
		return nil, "it cannot be read: it is a link, a folder, or not readable"
	case !f.Exists:
		return nil, "it is missing"
	case f.TooBig:
		return nil, fmt.Sprintf("it has more than %d bytes", maxFile)
	case !utf8.ValidString(f.Content):
		return nil, "it is not UTF-8"
	}
	return []byte(f.Content), ""
}

// hasHeading reports whether a text has a heading of the second level, with a title if
// that is not empty.
func hasHeading(text []byte, title string) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		rest, ok := strings.CutPrefix(strings.TrimRight(string(line), " \t\r\n"), "## ")
		if ok && strings.TrimSpace(rest) != "" && (title == "" || strings.EqualFold(strings.TrimSpace(rest), title)) {
			return true
		}
	}
	return false
}
