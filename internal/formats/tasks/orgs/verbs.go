package orgs

import (
	"context"

	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Verbs lists the verbs for organisations of agents.
func Verbs() []verb.Info {
	return []verb.Info{
		PlanOrg.Info, InitOrg.Info, CheckOrg.Info, ShowOrg.Info, PlanImport.Info, ImportOrg.Info,
	}
}

// Workspace is a workspace that may have an organisation of agents.
type Workspace interface {
	verb.Workspace
	OrgService() *Service
}

// The verbs for organisations of agents.
var (
	PlanOrg = verb.Read("orgs.plan", "say which files would make an organisation or add agents to it, and make none", on((*Service).PlanInit)).
		NoTool("it is the first half of orgs.init, which a person does")
	InitOrg  = verb.Write("orgs.init", "make the files of an organisation, or of more agents", "org init", verb.Repeatable, on((*Service).Init))
	CheckOrg = verb.Read("orgs.check", "check the files of the organisation and of each agent, and name every fault", on(func(s *Service, ctx context.Context, _ verb.None) (Checked, error) {
		return s.Check(ctx)
	})).Tool(verb.Tool{Name: "org_check", Group: verb.ToolsAll, Command: "org check", Does: "Check the files of an organisation of agents, and name every fault."})
	ShowOrg = verb.Read("orgs.show", "say who reports to whom, and how each agent stands", on(func(s *Service, ctx context.Context, _ verb.None) (Shown, error) {
		return s.Show(ctx)
	})).Seen().Tool(verb.Tool{Name: "org_show", Group: verb.ToolsAll, Command: "org show", Does: "Say who reports to whom, and how each agent stands."})
	PlanImport = verb.Read("orgs.plan-import", "say which files of another tree would be taken over, and copy none", on((*Service).PlanImport)).
			Hide("it reads files of the machine by their paths, and says what is in them", "").NoTool("it is the first half of orgs.import, which a person does")
	ImportOrg = verb.Write("orgs.import", "take over the agents of another tree", "org import", verb.Repeatable, on((*Service).Import))
)

// on asks the service of a workspace.
func on[In, Out any](do func(*Service, context.Context, In) (Out, error)) func(context.Context, Workspace, verb.Call, In) (Out, error) {
	return func(ctx context.Context, w Workspace, _ verb.Call, in In) (Out, error) {
		return do(w.OrgService(), ctx, in)
	}
}
