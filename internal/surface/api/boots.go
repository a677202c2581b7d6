package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/formats/boot/boots"
)

// The verbs for workspaces of the boot protocol.
var (
	PlanBoot = read("boots.plan", "say which files would make the workspace one of the boot protocol, and make none", func(ctx context.Context, ws *Workspace, _ Call, r boots.InitRequest) (boots.Begun, error) {
		return ws.Boots.PlanInit(ctx, r)
	})
	InitBoot = write("boots.init", "make the files of a workspace of the boot protocol", func(ctx context.Context, ws *Workspace, _ Call, r boots.InitRequest) (boots.Begun, error) {
		return ws.Boots.Init(ctx, r)
	})
	CheckBoot = read("boots.check", "read the link, the boot repository and the memory as a run would, and name every fault", func(ctx context.Context, ws *Workspace, _ Call, _ None) (boots.Checked, error) {
		return ws.Boots.Check(ctx)
	})
	BootStatus = read("boots.status", "say where the work of the workspace stands, and what a run would work on next", func(ctx context.Context, ws *Workspace, _ Call, r boots.StatusRequest) (boots.Status, error) {
		return ws.Boots.Status(ctx, r)
	})
	FindOutdated = read("boots.outdated", "show what would bring the link, the state and the tasks into the form of today", func(ctx context.Context, ws *Workspace, _ Call, r boots.MigrateRequest) (boots.Migration, error) {
		return ws.Boots.Outdated(ctx, r)
	})
	MigrateBoot = write("boots.migrate", "bring the link, the state and the tasks into the form of today", func(ctx context.Context, ws *Workspace, _ Call, r boots.MigrateRequest) (boots.Migration, error) {
		return ws.Boots.Migrate(ctx, r)
	})
	ListSessions = read("boots.log", "list the newest sessions, as commits tell of them", func(ctx context.Context, ws *Workspace, _ Call, r boots.LogRequest) ([]boots.Session, error) {
		return ws.Boots.Log(ctx, r)
	})
)
