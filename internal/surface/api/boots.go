package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// BootHost is a workspace that may be one of the boot protocol.
type BootHost interface {
	verb.Workspace
	BootService() *boots.Service
}

// The verbs for workspaces of the boot protocol.
var (
	PlanBoot = readBoots("boots.plan", "say which files would make the workspace one of the boot protocol, and make none", (*boots.Service).PlanInit).
			Hide("it reads files of the machine by their paths, and says what is in them", "").NoTool("it is the first half of boots.init, which a person does")
	InitBoot  = writeBoots("boots.init", "make the files of a workspace of the boot protocol", "boot init", (*boots.Service).Init)
	CheckBoot = readBoots("boots.check", "read the link, the boot repository and the memory as a run would, and name every fault", func(s *boots.Service, ctx context.Context, _ verb.None) (boots.Checked, error) {
		return s.Check(ctx)
	}).Tool(verb.Tool{Name: "boot_check", Group: verb.ToolsAll, Command: "boot check", Does: "Read the link, the boot repository and the memory as a run would, and name every fault."})
	BootStatus = readBoots("boots.status", "say where the work of the workspace stands, and what a run would work on next", (*boots.Service).Status).
			Seen().Tool(verb.Tool{Name: "boot_status", Group: verb.ToolsAll, Command: "boot status", Does: "Say where the work of a boot workspace stands, and what a run would work on next."})
	FindOutdated = readBoots("boots.outdated", "show what would bring the link, the state and the tasks into the form of today", (*boots.Service).Outdated).
			NoTool("it is the first half of boots.migrate, which a person does")
	MigrateBoot  = writeBoots("boots.migrate", "bring the link, the state and the tasks into the form of today", "boot migrate", (*boots.Service).Migrate)
	ListSessions = readBoots("boots.log", "list the newest sessions, as commits tell of them", (*boots.Service).Log).
			Seen().Tool(verb.Tool{Name: "boot_log", Schema: "pawl.boot_log/v1", Group: verb.ToolsAll, Command: "boot log", Does: "List the newest sessions of a boot workspace."})
)

// readBoots makes a verb that changes nothing.
func readBoots[In, Out any](name, does string, do func(*boots.Service, context.Context, In) (Out, error)) verb.Verb[BootHost, In, Out] {
	return verb.Read(name, does, func(ctx context.Context, w BootHost, _ verb.Call, in In) (Out, error) {
		return do(w.BootService(), ctx, in)
	})
}

// writeBoots makes a verb that writes files.
func writeBoots[In, Out any](name, does, command string, do func(*boots.Service, context.Context, In) (Out, error)) verb.Verb[BootHost, In, Out] {
	return verb.Write(name, does, command, verb.Repeatable, func(ctx context.Context, w BootHost, _ verb.Call, in In) (Out, error) {
		return do(w.BootService(), ctx, in)
	})
}
