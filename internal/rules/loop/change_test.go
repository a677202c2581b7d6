package loop

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whole is a complete change of each kind.
func whole() map[ChangeKind]Change {
	return map[ChangeKind]Change{
		ChangeEdit:    {Kind: ChangeEdit, Path: ".loops/x/STATE.md", Before: "a", Content: "b"},
		ChangeAppend:  {Kind: ChangeAppend, Path: ".loops/x/run-log.md", Content: "line"},
		ChangeAside:   {Kind: ChangeAside, Path: ".loops/x/STATE.md", Content: "STATE.md.broken"},
		ChangeStep:    {Kind: ChangeStep, Step: &Step{Key: "k"}},
		ChangeRow:     {Kind: ChangeRow, Row: &Row{Set: "tasks", Key: "t1", Version: 3, Body: json.RawMessage(`{"done":true}`)}},
		ChangeDeliver: {Kind: ChangeDeliver, Delivery: &Delivery{To: "ann", Key: "run_1/1", Kind: "note", Text: "look"}},
		ChangeReceive: {Kind: ChangeReceive, Delivery: &Delivery{To: "ann", Key: "run_1/1"}},
		ChangeCommit:  {Kind: ChangeCommit, Commit: &Commit{Branch: "main", Onto: "abc", Paths: []string{"agent/STATE.json"}, Message: "one step"}},
		ChangePush:    {Kind: ChangePush, Push: &Push{Remote: "origin", Branch: "main", Commit: "abc"}},
	}
}

func TestAChangeIsAppliedOrRefusedByItsKind(t *testing.T) {
	for kind, want := range map[ChangeKind]bool{
		ChangeEdit: true, ChangeAppend: true, ChangeAside: true, ChangeStep: true,
		ChangeDeliver: true, ChangeReceive: true, ChangeRow: true, ChangeCommit: false, ChangePush: false,
	} {
		err := CheckChanges([]Change{whole()[ChangeEdit], whole()[kind]})
		switch {
		case want && err != nil:
			t.Errorf("%s: %v, want no error", kind, err)
		case !want && (!errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), `change "`+string(kind)+`": this version of pawl cannot apply it`)):
			t.Errorf("%s: %v, want that it cannot be applied", kind, err)
		}
	}
	if err := CheckChanges([]Change{{Kind: "wish"}}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an unknown kind: %v, want errors.ErrUnsupported", err)
	}
}

func TestAChangeWithoutItsDataIsInvalid(t *testing.T) {
	bad := map[string]Change{
		"a path out of the workspace": {Kind: ChangeEdit, Path: "../x", Content: "x"},
		"an absolute path":            {Kind: ChangeAppend, Path: "/etc/passwd", Content: "x"},
		"aside without a name":        {Kind: ChangeAside, Path: "x"},
		"a step without a key":        {Kind: ChangeStep, Step: &Step{}},
		"a row without a set":         {Kind: ChangeRow, Row: &Row{Key: "k"}},
		"a row of a negative version": {Kind: ChangeRow, Row: &Row{Set: "s", Key: "k", Version: -1}},
		"a row that is not JSON":      {Kind: ChangeRow, Row: &Row{Set: "s", Key: "k", Body: json.RawMessage("{")}},
		"a row that is no object":     {Kind: ChangeRow, Row: &Row{Set: "s", Key: "k", Body: json.RawMessage("[1]")}},
		"a delivery to nobody":        {Kind: ChangeDeliver, Delivery: &Delivery{Key: "k", Text: "t"}},
		"a commit of nothing":         {Kind: ChangeCommit, Commit: &Commit{Branch: "b", Onto: "o", Message: "m"}},
		"a commit of what is outside": {Kind: ChangeCommit, Commit: &Commit{Branch: "b", Onto: "o", Message: "m", Paths: []string{"../x"}}},
		"a push of any commit":        {Kind: ChangePush, Push: &Push{Remote: "r", Branch: "b"}},
	}
	for kind := range whole() {
		bad["nothing of "+string(kind)] = Change{Kind: kind}
	}
	for name, ch := range bad {
		if err := CheckChanges([]Change{ch}); err == nil || !strings.HasPrefix(err.Error(), "invalid change") {
			t.Errorf("%s: %v, want an invalid change", name, err)
		}
	}
}

func TestAChangeOfEveryKindIsData(t *testing.T) {
	for kind, ch := range whole() {
		body, err := json.Marshal(ch)
		if err != nil {
			t.Fatal(err)
		}
		var back Change
		if err := json.Unmarshal(body, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ch, back); diff != "" {
			t.Errorf("%s through JSON (-want +got):\n%s", kind, diff)
		}
	}
}
