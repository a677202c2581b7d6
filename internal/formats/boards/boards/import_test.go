package boards_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
)

func TestAScenarioIsImportedTwiceAndExportedTheSame(t *testing.T) {
	onBoth(t, func(t *testing.T, r rig) {
		ctx, ann := t.Context(), verbtest.Ann
		path, err := filepath.Abs("../board/testdata/scenario.json")
		if err != nil {
			t.Fatal(err)
		}
		plan := must[boards.Imported](t)(r.PlanImport(ctx, boards.ImportRequest{Path: path}))
		if plan.Added != 41 || plan.Written || len(r.allRows(t)) != 0 {
			t.Errorf("the plan is %+v", plan)
		}
		done := must[boards.Imported](t)(r.Import(ctx, ann, boards.ImportRequest{Path: path}))
		if diff := cmp.Diff(plan.Sets, done.Sets); diff != "" || !done.Written {
			t.Errorf("what was planned and what was done:\n%s", diff)
		}
		rows := r.allRows(t)
		again := must[boards.Imported](t)(r.Import(ctx, ann, boards.ImportRequest{Path: path}))
		if diff := cmp.Diff(rows, r.allRows(t)); diff != "" || again.Added != 0 {
			t.Errorf("a second import added %d and changed:\n%s", again.Added, diff)
		}
		out := must[board.Document](t)(r.Export(ctx, boards.ExportQuery{}))
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := newRig(t, r.InRepo(verbtest.NewRepo(t)))
		must[boards.Imported](t)(elsewhere.Import(ctx, ann, boards.ImportRequest{Document: string(text)}))
		if diff := cmp.Diff(out, must[board.Document](t)(elsewhere.Export(ctx, boards.ExportQuery{}))); diff != "" {
			t.Errorf("exported, imported and exported again:\n%s", diff)
		}
		one := must[board.Document](t)(r.Export(ctx, boards.ExportQuery{Board: "site"}))
		if len(one.Boards) != 1 || len(one.Tasks) != 5 || len(one.Agents) != 5 {
			t.Errorf("one board has %d tasks and %d agents", len(one.Tasks), len(one.Agents))
		}
		if d, l := r.definition(t, "eve"); d.Cadence != "1m" || l.Registered.Due.IsZero() {
			t.Errorf("the loop of @eve is %+v", d)
		}
		all := must[[]boards.AgentView](t)(r.ListAgents(ctx))
		layers := map[board.Layer]int{}
		for _, a := range all {
			layers[a.Layer]++
		}
		if diff := cmp.Diff(map[board.Layer]int{board.Strategic: 1, board.Analyst: 2, board.Lead: 3, board.Specialist: 7}, layers); diff != "" {
			t.Errorf("layers:\n%s", diff)
		}
	})
}

func TestAnImportIsAllOfADocumentOrNothing(t *testing.T) {
	r := newRig(t, verbtest.New(t))
	ctx, ann := t.Context(), verbtest.Ann
	for name, c := range map[string]struct {
		request boards.ImportRequest
		exit    int
		says    string
	}{
		"a wrong task":      {boards.ImportRequest{Document: `{"boards":[{"name":"one"}],"tasks":[{"boardId":"one","title":"t","priority":"asap"}]}`}, loop.ExitUnreadable, `tasks[0].priority: "asap" is not one of`},
		"a secret":          {boards.ImportRequest{Document: `{"boards":[{"name":"one"}],"tasks":[{"boardId":"one","title":"t","description":"hunter2hunter2"}]}`}, loop.ExitUnreadable, "tasks[0].description: it has a secret in it"},
		"not JSON":          {boards.ImportRequest{Document: `{`}, loop.ExitUnreadable, "document: "},
		"a circle of leads": {boards.ImportRequest{Document: `{"boards":[{"name":"one"}],"agents":[{"handle":"a","boardIds":["one"],"lead":"b"},{"handle":"b","boardIds":["one"],"lead":"a"}]}`}, loop.ExitUnreadable, "cycle"},
		"no file":           {boards.ImportRequest{Path: "nothing.json", Base: r.Root}, loop.ExitNotFound, "there is no such file or folder"},
		"no board":          {boards.ImportRequest{Path: "README.md", Base: r.Root}, loop.ExitUsage, "write --board"},
		"no agents":         {boards.ImportRequest{Path: ".", Base: r.Root, Board: "one"}, loop.ExitNotFound, `there is no board "one"`},
	} {
		_, err := r.Import(ctx, ann, c.request)
		t.Run(name, func(t *testing.T) { wantFault(t, err, c.exit, c.says) })
	}
	if rows := r.allRows(t); len(rows) > 0 {
		t.Errorf("something was written: %+v", rows)
	}
}

func TestStepsOfAgentsAreImportedIntoABoard(t *testing.T) {
	r := newRig(t, verbtest.New(t))
	ctx, ann := t.Context(), verbtest.Ann
	r.addBoard(t, "one")
	r.addAgent(t, "dev", boards.AgentChange{Boards: []string{"one"}})
	tasks := "# Tasks\n\n## Active Tasks\n\n- **Step 1**: Write it\n  - Status: open\n  - Priority: high\n"
	for _, id := range []string{"dev", "qa"} {
		verbtest.Write(t, r.Root, "agents/"+id+"/TASKS.md", tasks)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(r.Root, "agents/TASKS.md")); err != nil {
		t.Fatal(err)
	}
	request := boards.ImportRequest{Path: ".", Base: r.Root, Board: "one"}
	done := must[boards.Imported](t)(r.Import(ctx, ann, request))
	if done.Added != 2 || len(done.Problems) == 0 {
		t.Errorf("imported %+v", done)
	}
	if again := must[boards.Imported](t)(r.Import(ctx, ann, request)); again.Added != 0 {
		t.Errorf("a second import added %d", again.Added)
	}
	list := must[[]boards.TaskRow](t)(r.ListTasks(ctx, boards.TaskQuery{Assignee: "dev", Limit: 9}))
	if len(list) != 1 || list[0].Priority != board.High || list[0].Status != board.Todo {
		t.Errorf("tasks of @dev: %+v", list)
	}
	file := must[boards.Imported](t)(r.PlanImport(ctx, boards.ImportRequest{Path: "agents/dev/TASKS.md", Base: r.Root, Board: "one"}))
	if file.Added != 0 {
		t.Errorf("the file alone adds %d", file.Added)
	}
}
