package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// OrgHost is a workspace that may have an organisation of agents.
type OrgHost interface {
	verb.Workspace
	OrgService() *orgs.Service
}

// The verbs for organisations of agents.
var (
	PlanOrg = readOrgs("orgs.plan", "say which files would make an organisation or add agents to it, and make none", (*orgs.Service).PlanInit).
		NoTool("it is the first half of orgs.init, which a person does")
	InitOrg  = writeOrgs("orgs.init", "make the files of an organisation, or of more agents", "org init", (*orgs.Service).Init)
	CheckOrg = readOrgs("orgs.check", "check the files of the organisation and of each agent, and name every fault", func(s *orgs.Service, ctx context.Context, _ verb.None) (orgs.Checked, error) {
		return s.Check(ctx)
	}).Tool(verb.Tool{Name: "org_check", Group: verb.ToolsAll, Command: "org check", Does: "Check the files of an organisation of agents, and name every fault."})
	ShowOrg = readOrgs("orgs.show", "say who reports to whom, and how each agent stands", func(s *orgs.Service, ctx context.Context, _ verb.None) (orgs.Shown, error) {
		return s.Show(ctx)
	}).Seen().Tool(verb.Tool{Name: "org_show", Group: verb.ToolsAll, Command: "org show", Does: "Say who reports to whom, and how each agent stands."})
	PlanImport = readOrgs("orgs.plan-import", "say which files of another tree would be taken over, and copy none", (*orgs.Service).PlanImport).
			Hide("it reads files of the machine by their paths, and says what is in them", "").NoTool("it is the first half of orgs.import, which a person does")
	ImportOrg = writeOrgs("orgs.import", "take over the agents of another tree", "org import", (*orgs.Service).Import)
)

// readOrgs makes a verb that changes nothing.
func readOrgs[In, Out any](name, does string, do func(*orgs.Service, context.Context, In) (Out, error)) verb.Verb[OrgHost, In, Out] {
	return verb.Read(name, does, func(ctx context.Context, w OrgHost, _ verb.Call, in In) (Out, error) {
		return do(w.OrgService(), ctx, in)
	})
}

// writeOrgs makes a verb that writes files.
func writeOrgs[In, Out any](name, does, command string, do func(*orgs.Service, context.Context, In) (Out, error)) verb.Verb[OrgHost, In, Out] {
	return verb.Write(name, does, command, verb.Repeatable, func(ctx context.Context, w OrgHost, _ verb.Call, in In) (Out, error) {
		return do(w.OrgService(), ctx, in)
	})
}
