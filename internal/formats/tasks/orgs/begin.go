package orgs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// InitRequest names the agents of a new organisation, or those that are added to one.
type InitRequest struct {
	Owner       string   `json:"owner,omitempty"`
	Chief       string   `json:"chief,omitempty"`       // id; empty: "chief", unless an organisation is there
	Departments []string `json:"departments,omitempty"` // NAME=LEAD,MEMBER,… each
	Members     []string `json:"members,omitempty"`     // ids of agents without a department
}

// Begun is what Init would make or has made, schema pawl.org-init/v1.
type Begun struct {
	Schema  string    `json:"schema"`
	Agents  []string  `json:"agents"`
	Files   []NewFile `json:"files"`
	Kept    []string  `json:"kept,omitempty"` // files that are there and stay as they are
	Written bool      `json:"written"`
	Commit  []string  `json:"commit"` // paths that belong into a commit, which people make
}

// PlanInit says what Init would make, and writes nothing.
func (s *Service) PlanInit(_ context.Context, r InitRequest) (Begun, error) {
	b := Begun{Schema: "pawl.org-init/v1", Agents: []string{}, Files: []NewFile{}, Commit: []string{}}
	there := orgdef.ReadOrganisation(s.ws.Root)
	departments, err := parseDepartments(r.Departments)
	if err != nil {
		return b, err
	}
	if there.File == "" && r.Chief == "" {
		r.Chief = "chief"
	}
	if there.File != "" && (r.Owner != "" || r.Chief != "" || len(departments) > 0) {
		return b, takenFault(there.File)
	}
	ranks := map[string]orgdef.Rank{}
	bosses := map[string]string{}
	add := func(id string, rank orgdef.Rank, reportsTo string) error {
		switch {
		case !definition.IsKebab(id):
			return usageFault("%s is not the id of an agent: write lower-case words, digits and single hyphens", readiness.Quote(id))
		case slices.Contains(b.Agents, id):
			return usageFault("%s is named twice: each agent has one place", readiness.Quote(id))
		}
		b.Agents, ranks[id], bosses[id] = append(b.Agents, id), rank, reportsTo
		return nil
	}
	chief := there.Chief
	if r.Chief != "" {
		chief = r.Chief
		if err := add(chief, orgdef.RankChief, r.Owner); err != nil {
			return b, err
		}
	}
	for _, d := range departments {
		if err := add(d.Lead, orgdef.RankLead, chief); err != nil {
			return b, err
		}
		for _, id := range d.Members {
			if err := add(id, orgdef.RankMember, d.Lead); err != nil {
				return b, err
			}
		}
	}
	for _, id := range r.Members {
		if err := add(id, orgdef.RankMember, chief); err != nil {
			return b, err
		}
	}
	if len(b.Agents) == 0 {
		return b, usageFault("%s is there already: --member names an agent that is added to it", there.File)
	}
	files := []NewFile{}
	for _, id := range b.Agents {
		files = append(files, newAgent(id, there.Interval(ranks[id]), bosses[id])...)
	}
	if there.File == "" {
		files = append(files, NewFile{orgdef.OrgFile, organisationText(r.Owner, chief, departments)})
	}
	for _, f := range files {
		if s.isThere(f.Path) {
			b.Kept = append(b.Kept, f.Path)
			continue
		}
		b.Files, b.Commit = append(b.Files, f), append(b.Commit, f.Path)
	}
	if len(b.Files) == 0 {
		return b, takenFault(b.Kept...)
	}
	return b, nil
}

// Init makes the files of an organisation, or of more agents of one that is there. No file
// is written over.
func (s *Service) Init(ctx context.Context, r InitRequest) (Begun, error) {
	b, err := s.PlanInit(ctx, r)
	if err == nil {
		err = s.writeNew(b.Files)
	}
	b.Written = err == nil
	return b, err
}

func usageFault(format string, args ...any) error {
	what, why, _ := strings.Cut(fmt.Sprintf(format, args...), ": ")
	return &loop.Fault{
		Exit: loop.ExitUsage, What: what, Why: why, Fix: "for example {1}",
		Actions: []loop.Command{loop.PawlCommand("org init").WithFlag("chief", "boss").WithFlag("department", "engineering=lead,dev,qa")},
	}
}

func parseDepartments(texts []string) ([]orgdef.Department, error) {
	var list []orgdef.Department
	for _, text := range texts {
		name, people, ok := strings.Cut(text, "=")
		ids := strings.Split(people, ",")
		if !ok || !definition.IsKebab(name) {
			return nil, usageFault("%s is not a department: write NAME=LEAD,MEMBER,…", readiness.Quote(text))
		}
		if slices.ContainsFunc(list, func(d orgdef.Department) bool { return d.Name == name }) {
			return nil, usageFault("the department %s is named twice: write all of its members at once", name)
		}
		list = append(list, orgdef.Department{Name: name, Lead: ids[0], Members: ids[1:]})
	}
	return list, nil
}

func organisationText(owner, chief string, departments []orgdef.Department) string {
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=https://pawl.run/schema/org.v1.json\n# Who works here, and who reports to whom.\n")
	if owner != "" {
		fmt.Fprintf(&b, "owner: %q\n", owner)
	}
	fmt.Fprintf(&b, "chief: %s\n", chief)
	if len(departments) > 0 {
		b.WriteString("departments:\n")
	}
	for _, d := range departments {
		fmt.Fprintf(&b, "  %s:\n    lead: %s\n    members: [%s]\n", d.Name, d.Lead, strings.Join(d.Members, ", "))
	}
	b.WriteString(`intervals: {chief: 5m, lead: 10m, member: 15m}
max_retries_per_step: 3
# routing: {code: dev}    # tag to agent; everything else goes to the chief
# hours: 9-17             # when agents work
# timezone: UTC
`)
	return b.String()
}
