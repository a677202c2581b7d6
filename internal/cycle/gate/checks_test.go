package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestADefinitionHasTheGatesThatItNamesInTheirOrder(t *testing.T) {
	verify, guard := Command{"verify", "make test", loop.ReasonGateFailed}, Command{"guard", "./guard.sh", loop.ReasonGuardFailed}
	for name, c := range map[string]struct {
		d    loop.Definition
		want []Command
	}{
		"both":  {loop.Definition{Verify: verify.Line, Guard: guard.Line}, []Command{verify, guard}},
		"one":   {loop.Definition{Guard: guard.Line}, []Command{guard}},
		"none":  {loop.Definition{}, []Command{}},
		"sense": {loop.Definition{Sense: "true"}, []Command{}},
	} {
		if diff := cmp.Diff(c.want, Commands(c.d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAGateIsTheSameWhateverItIsCalled(t *testing.T) {
	a, b := Command{Name: "verify", Line: "true"}.Check(), Command{Name: "guard@base", Line: "true"}.Check()
	if a.ID() != b.ID() || a.ID() == (Command{Name: "verify", Line: "false"}).Check().ID() {
		t.Error("an id is not that of the command")
	}
	if rule := (Check{Name: "verify", Kind: "invariant", Line: "true"}); rule.ID() == a.ID() {
		t.Error("a rule has the id of a command of the same text")
	}
}

// The ids are in stores: tests that were counted by an earlier version stay known.
func TestTheIDOfACommandStaysAsItIs(t *testing.T) {
	const want = "93481188ffc3776cccff54a237da2df4f1ed6c4363d83e9bda43d47af56d5d3f"
	if got := (Command{Name: "verify", Line: "make test"}).Check().ID("ws", "full"); got != want {
		t.Errorf("id = %s, want %s", got, want)
	}
}
