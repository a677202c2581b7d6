package api

import "testing"

func TestEveryVerbThatChangesSomethingSaysHowItIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	for _, v := range Verbs() {
		switch how, said := onceBy[v.Name]; {
		case v.Writes && !said:
			t.Errorf("%s changes something: say in onceBy how a call with a key is carried out once", v.Name)
		case !v.Writes && said:
			t.Errorf("%s only reads, and onceBy has it", v.Name)
		case how == byRun && v.out != StartRun.out && v.out != FireRun.out:
			t.Errorf("%s returns no run, and is found by it", v.Name)
		}
	}
}
