package boots

import (
	"context"

	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Verbs lists the verbs for workspaces of the boot protocol.
func Verbs() []verb.Info {
	return []verb.Info{
		PlanBoot.Info, InitBoot.Info, CheckBoot.Info, BootStatus.Info, FindOutdated.Info, MigrateBoot.Info, ListSessions.Info,
	}
}

// Workspace is a workspace that may be one of the boot protocol.
type Workspace interface {
	verb.Workspace
	BootService() *Service
}

// The verbs for workspaces of the boot protocol.
var (
	PlanBoot = verb.Read("boots.plan", "say which files would make the workspace one of the boot protocol, and make none", on((*Service).PlanInit)).
			Hide("it reads files of the machine by their paths, and says what is in them", "").NoTool("it is the first half of boots.init, which a person does")
	InitBoot  = verb.Write("boots.init", "make the files of a workspace of the boot protocol", "boot init", verb.Repeatable, on((*Service).Init))
	CheckBoot = verb.Read("boots.check", "read the link, the boot repository and the memory as a run would, and name every fault", on(func(s *Service, ctx context.Context, _ verb.None) (Checked, error) {
		return s.Check(ctx)
	})).Tool(verb.Tool{Name: "boot_check", Group: verb.ToolsAll, Command: "boot check", Does: "Read the link, the boot repository and the memory as a run would, and name every fault."})
	BootStatus = verb.Read("boots.status", "say where the work of the workspace stands, and what a run would work on next", on((*Service).Status)).
			Seen().Tool(verb.Tool{Name: "boot_status", Group: verb.ToolsAll, Command: "boot status", Does: "Say where the work of a boot workspace stands, and what a run would work on next."})
	FindOutdated = verb.Read("boots.outdated", "show what would bring the link, the state and the tasks into the form of today", on((*Service).Outdated)).
			NoTool("it is the first half of boots.migrate, which a person does")
	MigrateBoot  = verb.Write("boots.migrate", "bring the link, the state and the tasks into the form of today", "boot migrate", verb.Repeatable, on((*Service).Migrate))
	ListSessions = verb.Read("boots.log", "list the newest sessions, as commits tell of them", on((*Service).Log)).
			Seen().Tool(verb.Tool{Name: "boot_log", Schema: "pawl.boot_log/v1", Group: verb.ToolsAll, Command: "boot log", Does: "List the newest sessions of a boot workspace."})
)

// on asks the service of a workspace.
func on[In, Out any](do func(*Service, context.Context, In) (Out, error)) func(context.Context, Workspace, verb.Call, In) (Out, error) {
	return func(ctx context.Context, w Workspace, _ verb.Call, in In) (Out, error) {
		return do(w.BootService(), ctx, in)
	}
}
