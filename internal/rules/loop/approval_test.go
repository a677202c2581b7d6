package loop

import "testing"

func TestOnlyALandingHasToBeMadeAgainWhenItsBaseMoved(t *testing.T) {
	land := Action{Kind: ActionLand, Onto: "a", Stack: []Lower{{Onto: "b"}}}
	push := Action{Kind: ActionPush, Onto: "a"}
	for tip, c := range map[string]struct{ land, push, moved bool }{
		"a": {land: true, push: true}, "b": {land: true}, "c": {moved: true},
	} {
		if land.MayAdvance(tip) != c.land || push.MayAdvance(tip) != c.push || land.BaseMoved(tip) != c.moved || push.BaseMoved(tip) {
			t.Errorf("%s: %v, want %+v", tip, []bool{land.MayAdvance(tip), push.MayAdvance(tip), land.BaseMoved(tip), push.BaseMoved(tip)}, c)
		}
	}
}
