package bootstate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const plainTask = `{"id": "a", "title": "A", "status": "pending", "priority": "high"}`

// tasksOf is a file with one task more than the plain one, or with other members.
func tasksOf(more string) string {
	return "{\"version\": \"1.0.0\", \"tasks\": [\n" + plainTask + ",\n" + more + "]}"
}

func TestTasksOfAnotherShapeAreTakenOverWhereTheMeaningIsPlain(t *testing.T) {
	for name, c := range map[string]struct{ src, want, note string }{
		"an urgent priority":  {tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "urgent"}`), tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "critical"}`), "replaced /tasks/1/priority urgent by critical"},
		"a completed task":    {tasksOf(`{"id": "b", "title": "B", "status": "completed", "priority": "low"}`), tasksOf(`{"id": "b", "title": "B", "status": "done", "priority": "low"}`), "replaced /tasks/1/status completed by done"},
		"other letters":       {tasksOf(`{"id": "b", "title": "B", "status": "In Progress", "priority": "LOW"}`), tasksOf(`{"id": "b", "title": "B", "status": "in-progress", "priority": "low"}`), "replaced /tasks/1/status In Progress by in-progress"},
		"an extra field":      {tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "low", "owner": {"x": [1.50]}}`), tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "low", "metadata": {"owner": {"x": [1.50]}}}`), "moved /tasks/1/owner to metadata"},
		"a comment of a task": {tasksOf(`{"_comment": "why", "id": "b", "title": "B", "status": "pending", "priority": "low", "metadata": {"x": 1}}`), tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "low", "metadata": {"x": 1, "_comment": "why"}}`), "moved /tasks/1/_comment to metadata"},
		"a comment of the file": {
			`{"_comment": "mine", "version": "1.0.0", "tasks": [` + plainTask + `]}`, `{"version": "1.0.0", "tasks": [` + plainTask + `], "metadata": {"_comment": "mine"}}`, "moved /_comment to metadata",
		},
		"a list of completed tasks": {
			`{"version": "1.0.0", "tasks": [{"id": "a", "title": "A", "status": "pending", "priority": "high", "dependencies": ["z"]}], "completed": [{"id": "z", "title": "Z"}]}`,
			`{"version": "1.0.0", "tasks": [{"id": "a", "title": "A", "status": "pending", "priority": "high", "dependencies": ["z"]}, {"id": "z", "title": "Z", "status": "done", "priority": "medium"}]}`,
			"took the 1 tasks of /completed for tasks that are done",
		},
		"a list of completed names": {
			`{"version": "1.0.0", "tasks": [` + plainTask + `], "completed": ["z"]}`, `{"version": "1.0.0", "tasks": [` + plainTask + `], "metadata": {"completed": ["z"]}}`, "moved /completed to metadata",
		},
		"tasks by their ids": {
			`{"version": "1.0.0", "tasks": {"a": {"title": "A", "status": "pending", "priority": "high"}, "7": {"id": 7, "title": "B", "status": "wip", "priority": "low"}}}`,
			`{"version": "1.0.0", "tasks": [` + plainTask + `, {"id": "7", "title": "B", "status": "in-progress", "priority": "low"}]}`, "made a list of the tasks, which were written by their ids",
		},
		"a list alone":      {"[" + plainTask + "]", `{"version": "1.0.0", "tasks": [` + plainTask + `]}`, "took the list for the tasks"},
		"no version":        {`{"tasks": [` + plainTask + `]}`, `{"version": "1.0.0", "tasks": [` + plainTask + `]}`, "set version to 1.0.0"},
		"an empty object":   {`{}`, `{"version": "1.0.0", "tasks": []}`, "added an empty list of tasks"},
		"numbers as ids":    {tasksOf(`{"id": 2, "title": "B", "status": "pending", "priority": "low", "dependencies": ["a"]}, {"id": "c", "title": "C", "status": "pending", "priority": "low", "dependencies": [2]}`), tasksOf(`{"id": "2", "title": "B", "status": "pending", "priority": "low", "dependencies": ["a"]}, {"id": "c", "title": "C", "status": "pending", "priority": "low", "dependencies": ["2"]}`), "made a text of the number /tasks/1/id"},
		"one dependency":    {tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "low", "dependencies": "a"}`), tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "low", "dependencies": ["a"]}`), "made a list of /tasks/1/dependencies"},
		"null":              {tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": null, "description": null, "dependencies": null}`), tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "medium"}`), "removed /tasks/1/description, which was null"},
		"a day":             {tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "low", "createdAt": "2026-01-05"}`), tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "low", "createdAt": "2026-01-05T00:00:00.000Z"}`), "completed /tasks/1/createdAt 2026-01-05, as UTC"},
		"no status":         {tasksOf(`{"id": "b", "title": "B", "priority": "low"}`), tasksOf(`{"id": "b", "title": "B", "status": "pending", "priority": "low"}`), "set /tasks/1/status to pending"},
		"a byte-order mark": {"\ufeff[" + plainTask + "]", `{"version": "1.0.0", "tasks": [` + plainTask + `]}`, "took the list for the tasks"},
		"201 characters": {
			tasksOf(`{"id": "b", "title": "` + strings.Repeat("ü", 201) + `", "status": "pending", "priority": "low", "description": "more"}`),
			tasksOf(`{"id": "b", "title": "` + strings.Repeat("ü", 199) + `…", "description": "` + strings.Repeat("ü", 201) + `\n\nmore", "status": "pending", "priority": "low"}`),
			"shortened /tasks/1/title, which is whole in the description",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, wrong := FormatSchemas().ReadTodo([]byte(c.want))
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			f := found()
			f.Tasks.Content = []byte(c.src)
			m, repairs, stop := FormatSchemas().Recover(f)
			if stop != nil {
				t.Fatal(stop, stop.Findings)
			}
			if jsontree.Compare(m.Tasks.tree, want.tree) != 0 {
				t.Errorf("the tasks: %s", cmp.Diff(string(want.Encode()), string(m.Tasks.Encode())))
			}
			if !slices.ContainsFunc(repairs, func(r Repair) bool {
				return r.Reason == loop.ReasonTodoStructural && strings.Contains(r.Note, c.note) && strings.Contains(m.Changelog, r.Note)
			}) {
				t.Errorf("%q is not said: %+v", c.note, repairs)
			}
			f.Tasks.Content = m.Tasks.Encode()
			if _, again, stop := FormatSchemas().Recover(f); stop != nil || len(again) > 0 {
				t.Errorf("the second recovery: %v %v", again, stop)
			}
		})
	}
}

func TestTasksWhoseMeaningIsNotPlainAreLeftToAPerson(t *testing.T) {
	second := func(fields string) string { return tasksOf(`{"id": "b", "title": "B", ` + fields + `}`) }
	for name, c := range map[string]struct{ src, finding string }{
		"an unknown status":          {second(`"status": "review", "priority": "low"`), `3:37: /tasks/1/status: "review" is not one of "pending", "in-progress", "blocked", "done"`},
		"an unknown priority":        {second(`"status": "pending", "priority": "someday"`), `3:60: /tasks/1/priority: "someday" is not one of "critical", "high", "medium", "low"`},
		"a priority that is a rank":  {second(`"status": "pending", "priority": 1`), `3:60: /tasks/1/priority: is number, not string`},
		"a misspelt field":           {second(`"status": "pending", "prioritty": "low"`), `3:48: /tasks/1/prioritty: the name "prioritty" is not allowed here; did you mean priority?`},
		"dependencies in words":      {second(`"status": "pending", "priority": "low", "dependencies": "a and c"`), `3:83: /tasks/1/dependencies: is string, not array`},
		"dependencies by their ids":  {second(`"status": "pending", "priority": "low", "dependencies": {"a": true}`), `3:83: /tasks/1/dependencies: is object, not array`},
		"no title":                   {tasksOf(`{"id": "b", "status": "pending", "priority": "low"}`), `3:1: /tasks/1: "title" is missing`},
		"an id with a space":         {tasksOf(`{"id": "b c", "title": "B", "status": "pending", "priority": "low"}`), `3:8: /tasks/1/id: "b c" does not match ^[a-zA-Z0-9_-]+$`},
		"an id that is no whole one": {tasksOf(`{"id": 1.5, "title": "B", "status": "pending", "priority": "low"}`), `3:8: /tasks/1/id: is number, not string`},
		"a title alone":              {tasksOf(`"Buy milk"`), `3:1: /tasks/1: is string, not object`},
		"a number":                   {`7`, `1:1: is number, not object`},
		"null":                       {` null`, `1:2: is null, not object`},
		"tasks under another name":   {`{"version": "1.0.0", "work": [` + plainTask + `]}`, `1:1: "tasks" is missing`},
		"in a list alone":            {`[` + plainTask + ",\n" + `{"id": "b", "title": "B", "status": "later", "priority": "low"}]`, `2:37: /1/status: "later" is not one of "pending", "in-progress", "blocked", "done"`},
		"by their ids":               {`{"version": "1.0.0", "tasks": {"b/c": {"title": "B", "status": "pending", "priority": "low"}}}`, `/tasks/b~1c/id: "b/c" does not match ^[a-zA-Z0-9_-]+$`},
		"by other ids":               {`{"version": "1.0.0", "tasks": {"a": {"id": "b", "title": "B", "status": "pending", "priority": "low"}}}`, `1:31: /tasks: is object, not array`},
		"a list that was not done":   {`{"version": "1.0.0", "tasks": [], "completed": [{"id": "b", "title": "B", "status": "pending"}], "metadata": {"completed": 1}}`, `1:35: /completed: the name "completed" is not allowed here`},
		"metadata that is a text":    {second(`"status": "pending", "priority": "low", "owner": "ann", "metadata": "x"`), `3:67: /tasks/1/owner: the name "owner" is not allowed here`},
		"one name twice":             {second(`"status": "pending", "priority": "low", "status": "done"`), `3:67: /tasks/1/status: `},
		"a NUL in a text":            {tasksOf(`{"id": "b", "title": "B\u0000", "status": "pending", "priority": "low"}`), `3:22: /tasks/1/title: `},
		"half of a character":        {tasksOf(`{"id": "b", "title": "B\ud800", "status": "pending", "priority": "low"}`), `3:22: /tasks/1/title: `},
		"two bytes a character":      {"\xff\xfe{\x00}\x00", `1:1: `},
	} {
		t.Run(name, func(t *testing.T) {
			f := found()
			f.Tasks.Content = []byte(c.src)
			m, repairs, stop := FormatSchemas().Recover(f)
			if stop == nil || stop.Reason != loop.ReasonStateManual || stop.Path != "agent/TODO.json" || len(repairs) > 0 {
				t.Fatalf("it goes on with %v:\n%s", repairs, m.Tasks.Encode())
			}
			var got []string
			for _, one := range stop.Findings {
				got = append(got, one.String())
			}
			if !strings.Contains(strings.Join(got, "\n"), c.finding) {
				t.Errorf("findings:\n%s\nwant %s", strings.Join(got, "\n"), c.finding)
			}
		})
	}
}

// Whatever value stands where in a file that is JSON, no task leaves it: either all are
// taken over, with all that people wrote, or the file is left to a person.
func TestNoTaskEverLeavesAFileThatIsJSON(t *testing.T) {
	odd := []string{
		`null`, `true`, `0`, `7`, `-1`, `1.5`, `""`, `"T-1"`, `"urgent"`, `"done"`, `"completed"`, `"odd words"`, `"2026-01-05"`, `[]`, `["T-1"]`, `[7]`, `{}`, `{"odd words": 1}`,
		`[{"id": "odd", "title": "Odd"}]`, `"` + strings.Repeat("long ", 60) + `"`,
	}
	names := []string{"_comment", "completed", "done", "owner", "prioritty", "Status", "deps", "notes", "metadata", "description", "createdAt"}
	rapid.Check(t, func(rt *rapid.T) {
		tree, _ := parse([]byte(goodTodo))
		for range rapid.IntRange(1, 3).Draw(rt, "oddities") {
			value, _ := parse([]byte(rapid.SampledFrom(odd).Draw(rt, "value")))
			tasks := (Todo{tree}).items()
			in := tree
			if len(tasks) > 0 && rapid.IntRange(0, 3).Draw(rt, "in a task") > 0 {
				in = rapid.SampledFrom(tasks).Draw(rt, "task")
			}
			name := rapid.SampledFrom(names).Draw(rt, "name")
			if in != tree && rapid.Bool().Draw(rt, "replaced") {
				name = rapid.SampledFrom([]string{"title", "status", "priority", "dependencies", "blockedReason", "metadata"}).Draw(rt, "field")
			}
			in.Set(name, value)
		}
		if rapid.IntRange(0, 5).Draw(rt, "shape") == 0 {
			tree = tree.Get(fieldTasks)
		}
		f := found()
		f.Tasks.Content = jsontree.Encode(tree)
		if rapid.Bool().Draw(rt, "no history") {
			f.TasksHistory = nil
		}
		m, repairs, stop := FormatSchemas().Recover(f)
		if stop != nil {
			if len(stop.Findings) == 0 || stop.Findings[0].Line < 1 {
				rt.Fatalf("%s\nstops without a place: %v", f.Tasks.Content, stop)
			}
			return
		}
		for _, id := range []string{"T-1", "T-2", "T-3"} {
			if _, there := m.Tasks.Task(id); !there {
				rt.Fatalf("%s\nhas lost %s: %v\n%s", f.Tasks.Content, id, repairs, m.Tasks.Encode())
			}
		}
		for _, words := range []string{"odd words", "Odd", strings.Repeat("long ", 60)} {
			if had, has := strings.Count(string(f.Tasks.Content), words), strings.Count(string(m.Tasks.Encode()), words); has < had {
				rt.Fatalf("%s\nhas lost %q: %v\n%s", f.Tasks.Content, words, repairs, m.Tasks.Encode())
			}
		}
		before, _ := FormatSchemas().ReadTodo(f.Tasks.Content)
		if before.IsZero() || jsontree.Compare(before.tree, m.Tasks.tree) != 0 && len(repairs) == 0 {
			rt.Fatalf("%s\nis changed, and nobody is told:\n%s", f.Tasks.Content, m.Tasks.Encode())
		}
	})
}

func TestABrokenFileThatIsNotTextIsKeptInBase64(t *testing.T) {
	for content, want := range map[string]string{"{\x00": "ewA=\n", "\xff{": "/3s=\n", "{,}": "{,}"} {
		f := found()
		f.Tasks.Content = []byte(content)
		m, repairs, stop := FormatSchemas().Recover(f)
		if stop != nil || len(repairs) != 1 || repairs[0].Keep == nil || repairs[0].Keep.Content != want {
			t.Fatalf("%q: %v %+v", content, stop, repairs)
		}
		if got := m.Tasks.KeptPath("agent/TODO.json"); got != repairs[0].Keep.Path || !strings.Contains(repairs[0].Note, got) {
			t.Errorf("%q is kept as %s, and %s is named: %s", content, repairs[0].Keep.Path, got, repairs[0].Note)
		}
	}
	for _, path := range []string{"agent/STATE.json", "agent/TODO.json.broken-/../x", "agent/TODO.json", ""} {
		todo := emptyTodo()
		todo.setNote("x")
		todo.tree.Get(fieldMetadata).Set(fieldKept, jsontree.NewText(path))
		if got := todo.KeptPath("agent/TODO.json"); got != "" {
			t.Errorf("%q is taken for %s", path, got)
		}
	}
}
