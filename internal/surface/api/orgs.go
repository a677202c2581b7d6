package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
)

// The verbs for organisations of agents.
var (
	PlanOrg = read("orgs.plan", "say which files would make an organisation or add agents to it, and make none", func(ctx context.Context, ws *Workspace, _ Call, r orgs.InitRequest) (orgs.Begun, error) {
		return ws.Orgs.PlanInit(ctx, r)
	})
	InitOrg = write("orgs.init", "make the files of an organisation, or of more agents", func(ctx context.Context, ws *Workspace, _ Call, r orgs.InitRequest) (orgs.Begun, error) {
		return ws.Orgs.Init(ctx, r)
	})
	CheckOrg = read("orgs.check", "check the files of the organisation and of each agent, and name every fault", func(ctx context.Context, ws *Workspace, _ Call, _ None) (orgs.Checked, error) {
		return ws.Orgs.Check(ctx)
	})
	ShowOrg = read("orgs.show", "say who reports to whom, and how each agent stands", func(ctx context.Context, ws *Workspace, _ Call, _ None) (orgs.Shown, error) {
		return ws.Orgs.Show(ctx)
	})
	PlanImport = read("orgs.plan-import", "say which files of another tree would be taken over, and copy none", func(ctx context.Context, ws *Workspace, _ Call, r orgs.ImportRequest) (orgs.Imported, error) {
		return ws.Orgs.PlanImport(ctx, r)
	})
	ImportOrg = write("orgs.import", "take over the agents of another tree", func(ctx context.Context, ws *Workspace, _ Call, r orgs.ImportRequest) (orgs.Imported, error) {
		return ws.Orgs.Import(ctx, r)
	})
)
