package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/loop"
)

func TestADefinitionHasTheGatesThatItNamesInTheirOrder(t *testing.T) {
	verify, guard := Check{"verify", "make test", loop.ReasonGateFailed}, Check{"guard", "./guard.sh", loop.ReasonGuardFailed}
	for name, c := range map[string]struct {
		d    loop.Definition
		want []Check
	}{
		"both":  {loop.Definition{Verify: verify.Line, Guard: guard.Line}, []Check{verify, guard}},
		"one":   {loop.Definition{Guard: guard.Line}, []Check{guard}},
		"none":  {loop.Definition{}, []Check{}},
		"sense": {loop.Definition{Sense: "true"}, []Check{}},
	} {
		if diff := cmp.Diff(c.want, Checks(c.d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAGateIsTheSameWhateverItIsCalled(t *testing.T) {
	a, b := Check{Name: "verify", Line: "true"}, Check{Name: "guard@base", Line: "true"}
	if a.ID() != b.ID() || a.ID() == (Check{Name: "verify", Line: "false"}).ID() {
		t.Error("an id is not that of the command")
	}
}
