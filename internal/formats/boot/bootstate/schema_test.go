package bootstate

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/draft07"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// schemasOf are those of the format with parts replaced, as a boot repository may have
// them.
func schemasOf(t *testing.T, state, tasks *strings.Replacer) Schemas {
	t.Helper()
	x := Schemas{StateFile: "schemas/state-schema.json", TasksFile: "schemas/todo-schema.json"}
	var problems []draft07.Problem
	x.Set, problems = draft07.Compile(map[string][]byte{
		x.StateFile: []byte(state.Replace(string(stateSchema))), x.TasksFile: []byte(tasks.Replace(string(todoSchema))),
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return x
}

func TestABootRepositoryHasSchemasOfItsOwn(t *testing.T) {
	same := strings.NewReplacer()
	t.Run("a field is required that has no default", func(t *testing.T) {
		x := schemasOf(t, strings.NewReplacer(`["version",`, `["owner", "version",`, `"metadata": {`, `"owner": {"type": "string"}, "metadata": {`), same)
		_, _, stop := x.Recover(found())
		if stop == nil || stop.Reason != loop.ReasonStateManual || len(stop.Findings) != 1 || stop.Findings[0].String() != `1:1: "owner" is missing` {
			t.Errorf("stop = %+v", stop)
		}
		f := found()
		f.State.Content = []byte(replaced(t, goodState, `"errors"`, `"owner": "me", "errors"`))
		if m, repairs, stop := x.Recover(f); stop != nil || len(repairs) > 0 || !strings.Contains(string(m.State.Encode()), `"owner": "me"`) {
			t.Errorf("a field of its own: %v %v", repairs, stop)
		}
	})
	t.Run("a default that does not fit", func(t *testing.T) {
		x := schemasOf(t, strings.NewReplacer(`"idle", `, ""), same)
		f := found()
		f.State.Content = []byte(replaced(t, goodState, `  "currentPhase": "testing",`+"\n", ""))
		if _, _, stop := x.Recover(f); stop == nil || stop.Reason != loop.ReasonStateManual {
			t.Errorf("stop = %+v", stop)
		}
	})
	t.Run("a note has no place", func(t *testing.T) {
		x := schemasOf(t, same, strings.NewReplacer(`"metadata": {"type": "object"}
  },
  "additionalProperties": false,
  "definitions"`, `"metadata": {"type": "object", "maxProperties": 0}
  },
  "additionalProperties": false,
  "definitions"`))
		f := found()
		f.Tasks.Content = []byte("{")
		m, repairs, stop := x.Recover(f)
		if stop != nil || len(repairs) != 1 || m.Tasks.Note() != "" || len(m.Tasks.Tasks()) != 3 {
			t.Errorf("%v %v\n%s", repairs, stop, m.Tasks.Encode())
		}
		if m, _, _ := FormatSchemas().Recover(f); m.Tasks.Note() != repairs[0].Note {
			t.Errorf("elsewhere the note is %q", m.Tasks.Note())
		}
	})
}

func TestTheSchemasOfTheFormatAreOnesOfTheDraft(t *testing.T) {
	state, tasks := SchemaFiles()
	if _, problems := draft07.Compile(map[string][]byte{"schemas/state-schema.json": state, "schemas/todo-schema.json": tasks}); len(problems) > 0 {
		t.Error(problems)
	}
}
