package loop_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestFund(t *testing.T) {
	opens := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	stands := func(most, used, reserved loop.Amount) loop.Standing {
		return loop.Standing{Budget: loop.Budget{Window: loop.WindowDay, Cap: most}, Used: used, Reserved: reserved, Opens: opens}
	}
	tokens := func(n int64) loop.Amount { return loop.Amount{Tokens: n} }
	roomy := stands(tokens(1000), tokens(10), tokens(20))
	for name, c := range map[string]struct {
		standing   []loop.Standing
		held, want loop.Amount
		short      loop.Shortage // zero: funded
	}{
		"no budget":                             {nil, loop.Amount{}, tokens(math.MaxInt64), loop.Shortage{}},
		"no cap":                                {[]loop.Standing{stands(loop.Amount{}, tokens(5), loop.Amount{})}, loop.Amount{}, tokens(9), loop.Shortage{}},
		"what is left, exactly":                 {[]loop.Standing{roomy}, loop.Amount{}, tokens(970), loop.Shortage{}},
		"one more than is left":                 {[]loop.Standing{roomy}, loop.Amount{}, tokens(971), loop.Shortage{Budget: roomy.Budget, What: "tokens", Cap: 1000, Left: 970, Need: 971, Opens: opens}},
		"growing by what is left":               {[]loop.Standing{roomy}, tokens(20), tokens(990), loop.Shortage{}},
		"growing by more":                       {[]loop.Standing{roomy}, tokens(20), tokens(991), loop.Shortage{Budget: roomy.Budget, What: "tokens", Cap: 1000, Left: 970, Need: 971, Opens: opens}},
		"an overrun cap funds nothing":          {[]loop.Standing{stands(tokens(10), tokens(30), loop.Amount{})}, loop.Amount{}, tokens(1), loop.Shortage{Budget: loop.Budget{Window: loop.WindowDay, Cap: tokens(10)}, What: "tokens", Cap: 10, Need: 1, Opens: opens}},
		"shrinking below an overrun cap":        {[]loop.Standing{stands(tokens(10), tokens(30), tokens(5))}, tokens(5), tokens(4), loop.Shortage{}},
		"another dimension":                     {[]loop.Standing{roomy}, loop.Amount{}, loop.Amount{Items: 9, Wall: time.Hour}, loop.Shortage{}},
		"sums that fit no number leave nothing": {[]loop.Standing{stands(tokens(math.MaxInt64), tokens(math.MaxInt64), tokens(math.MaxInt64))}, loop.Amount{}, tokens(1), loop.Shortage{Budget: loop.Budget{Window: loop.WindowDay, Cap: tokens(math.MaxInt64)}, What: "tokens", Cap: math.MaxInt64, Need: 1, Opens: opens}},
		"the tightest is named": {
			[]loop.Standing{stands(tokens(100), tokens(50), loop.Amount{}), stands(loop.Amount{Tokens: 1000, Wall: 100}, tokens(900), loop.Amount{Wall: 99})},
			loop.Amount{},
			loop.Amount{Tokens: 500, Wall: 2},
			loop.Shortage{Budget: loop.Budget{Window: loop.WindowDay, Cap: loop.Amount{Tokens: 1000, Wall: 100}}, What: "wall", Cap: 100, Left: 1, Need: 2, Opens: opens},
		},
	} {
		t.Run(name, func(t *testing.T) {
			short, ok := loop.CheckFunds(c.standing, c.held, c.want)
			if d := cmp.Diff(c.short, short); d != "" || ok != (c.short == loop.Shortage{}) {
				t.Errorf("funded = %v: %s", ok, d)
			}
		})
	}
}

func TestWhatIsFundedFitsAndWhatIsNotDoesNot(t *testing.T) {
	n := rapid.Int64Range(0, 30)
	amount := rapid.Custom(func(t *rapid.T) loop.Amount {
		return loop.Amount{Tokens: n.Draw(t, "tokens"), MicroUSD: n.Draw(t, "usd"), Items: n.Draw(t, "items")}
	})
	rapid.Check(t, func(t *rapid.T) {
		most, used, others := amount.Draw(t, "cap"), amount.Draw(t, "used"), amount.Draw(t, "others")
		held, want := amount.Draw(t, "held"), amount.Draw(t, "want")
		standing := []loop.Standing{{Budget: loop.Budget{Cap: most}, Used: used, Reserved: others.Add(held)}}
		fits := true
		for i, limit := range most.Parts() {
			grows := want.Parts()[i] > held.Parts()[i]
			if limit > 0 && grows && used.Parts()[i]+others.Parts()[i]+want.Parts()[i] > limit {
				fits = false
			}
		}
		short, ok := loop.CheckFunds(standing, held, want)
		if ok != fits {
			t.Fatalf("funded = %v, want %v", ok, fits)
		}
		if !ok && short.Need <= short.Left {
			t.Fatalf("%d is needed and %d left", short.Need, short.Left)
		}
	})
}

func TestAmountsAddUpAndComeApart(t *testing.T) {
	n := rapid.Int64Range(0, math.MaxInt64/2)
	amount := rapid.Custom(func(t *rapid.T) loop.Amount {
		var p loop.AmountParts
		for i := range p {
			p[i] = n.Draw(t, loop.Dimensions[i])
		}
		return p.Amount()
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := amount.Draw(t, "a"), amount.Draw(t, "b")
		if got := a.Add(b).Sub(b); got != a || a.CheckRoom(b) != nil || a.Validate() != nil {
			t.Fatalf("a + b - b = %+v, room %v, valid %v", got, a.CheckRoom(b), a.Validate())
		}
		if m := a.Max(b); m.Max(a) != m || m.Max(b) != m || !a.Sub(m).Zero() {
			t.Fatalf("max = %+v", m)
		}
	})
	if err := (loop.Amount{Wall: -1}).Validate(); err == nil || err.Error() != "wall: -1 is negative" {
		t.Errorf("Valid = %v", err)
	}
	if err := (loop.Amount{Items: 2}).CheckRoom(loop.Amount{Items: math.MaxInt64 - 1}); err == nil {
		t.Error("a sum that fits no number has room")
	}
}
