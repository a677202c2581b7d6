package spend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// dollar prices every token of one model at a cent.
func dollar(model string, u loop.Usage) (int64, bool) {
	return 10_000 * (u.ChargedTokens() + u.CacheRead), model == "priced"
}

func TestAnAccountIsNeverSpentBeyondItsGrantByHonestAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grant := loop.Amount{
			Tokens: rapid.Int64Range(0, 2000).Draw(t, "tokens"), Output: rapid.Int64Range(0, 500).Draw(t, "output"),
			MicroUSD: rapid.Int64Range(0, 10_000_000).Draw(t, "money"),
		}
		a := &Account{Grant: grant, Price: dollar}
		var open []*Charge
		asks := map[*Charge]Call{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(open) > 0 && rapid.Bool().Draw(t, "end") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				c := open[i]
				u := loop.Usage{
					Input:  rapid.Int64Range(0, asks[c].Input).Draw(t, "read"),
					Output: rapid.Int64Range(0, c.Output).Draw(t, "written"), Source: loop.UsageMetered,
				}
				if !c.Progress(context.Background(), "priced", u) {
					t.Fatalf("an answer within what it may be was cut: %+v", u)
				}
				c.Settle("priced", u)
				open = append(open[:i], open[i+1:]...)
			} else {
				q := Call{Model: "priced", Input: rapid.Int64Range(1, 300).Draw(t, "input"), Output: rapid.Int64Range(1, 900).Draw(t, "most")}
				c, _, err := a.tryFund(context.Background(), q)
				if err != nil && !errors.As(err, new(*loop.Fault)) {
					t.Fatal(err)
				}
				if c != nil {
					open, asks[c] = append(open, c), q
				}
			}
			if what := exceededCap(grant, a.Used()); what != "" {
				t.Fatalf("%s: used %+v of %+v", what, a.Used(), grant)
			}
		}
	})
}

func TestALiarSpendsNoMoreThanOneAnswerBeyondTheGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grant := rapid.Int64Range(1, 2000).Draw(t, "tokens")
		a := &Account{Grant: loop.Amount{Tokens: grant}}
		var largest int64
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			c, _, err := a.tryFund(context.Background(), Call{Model: "m", Input: rapid.Int64Range(1, 300).Draw(t, "input"), Output: 100})
			if err != nil {
				break
			}
			u := loop.Usage{Input: rapid.Int64Range(0, 9000).Draw(t, "read"), Output: rapid.Int64Range(0, 9000).Draw(t, "written")}
			largest = max(largest, u.ChargedTokens())
			c.Settle("m", u)
		}
		if used := a.Used().Tokens; used > grant+largest {
			t.Fatalf("used %d of %d, the largest answer had %d", used, grant, largest)
		}
	})
}

func TestCallsAtTheSameTimeStayWithinTheGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grant := rapid.Int64Range(1000, 20000).Draw(t, "grant")
		asks := rapid.SliceOfN(rapid.Int64Range(1, 3000), 1, 40).Draw(t, "asks")
		a := &Account{Grant: loop.Amount{Tokens: grant}}
		var all sync.WaitGroup
		for i, n := range asks {
			all.Go(func() {
				c, err := a.Open(context.Background(), Call{Model: "m", Input: n, Output: n})
				if err != nil {
					return
				}
				defer c.Release()
				for out := range c.Output / 100 {
					if !c.Progress(context.Background(), "m", loop.Usage{Input: n, Output: out * 100}) {
						t.Errorf("call %d was cut within what it holds", i)
					}
				}
				c.Settle("m", loop.Usage{Input: n, Output: c.Output})
			})
		}
		all.Wait()
		if used := a.Used().Tokens; used > grant {
			t.Fatalf("used %d of %d", used, grant)
		}
	})
}

func TestMoreIsAskedForWhatIsNeeded(t *testing.T) {
	var asked []int64
	a := &Account{Grant: loop.Amount{Tokens: 100}, More: func(_ context.Context, need loop.Amount) (loop.Amount, error) {
		asked = append(asked, need.Tokens)
		return loop.Amount{Tokens: min(need.Tokens, 500)}, nil
	}}
	for i, want := range []int64{50, 50, 150} {
		c, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: want - 10})
		if err != nil || c.Output != want-10 {
			t.Fatalf("call %d: %+v, %v", i, c, err)
		}
		c.Settle("m", loop.Usage{Input: 10, Output: want - 10})
	}
	if len(asked) != 1 || asked[0] != 250 {
		t.Errorf("asked for %v, want 250 once", asked)
	}
	c, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 900})
	if err != nil || c.Output != 240 {
		t.Fatalf("the last call may write %+v, %v", c, err)
	}
	if c.Progress(t.Context(), "m", loop.Usage{Input: 20, Output: 240}) {
		t.Error("it outgrew the grant and went on")
	}
	if f := new(loop.Fault); !errors.As(a.Cause(), &f) || f.Exit != loop.ExitBudget || !strings.Contains(f.Why, "510 of 500 tokens") {
		t.Errorf("cause = %v", a.Cause())
	}
}

func TestAStreamGoesOnWithMore(t *testing.T) {
	a := &Account{Grant: loop.Amount{Tokens: 100}, More: func(_ context.Context, need loop.Amount) (loop.Amount, error) {
		return loop.Amount{Tokens: min(need.Tokens+100, 1000)}, nil
	}}
	c, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 10})
	if err != nil {
		t.Fatal(err)
	}
	for out := int64(0); out <= 990; out += 10 {
		if !c.Progress(t.Context(), "m", loop.Usage{Input: 10, Output: out}) {
			t.Fatalf("cut at %d", out)
		}
	}
	if c.Progress(t.Context(), "m", loop.Usage{Input: 10, Output: 1000}) {
		t.Error("it went beyond all that there is")
	}
}

func TestWhatHadNoCapGetsNoneWithMore(t *testing.T) {
	a := &Account{Grant: loop.Amount{Tokens: 100}, More: func(context.Context, loop.Amount) (loop.Amount, error) {
		return loop.Amount{Tokens: 1000, Output: 5, MicroUSD: 5}, nil
	}}
	if c, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 500}); err != nil || c.Output != 500 {
		t.Errorf("Open = %+v, %v, want all 500 tokens of output", c, err)
	}
}

func TestWhyNoMoreWasGrantedIsTheCause(t *testing.T) {
	why := errors.New("the day's window of the loop has 5 tokens left")
	a := &Account{Grant: loop.Amount{Tokens: 10}, More: func(context.Context, loop.Amount) (loop.Amount, error) { return loop.Amount{}, why }}
	if _, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 10}); !errors.Is(err, why) || !errors.Is(a.Cause(), why) {
		t.Errorf("Open = %v, cause = %v", err, a.Cause())
	}
	want := "0 of 10 tokens are used, and the next call needs about 11; no more was granted: " + why.Error()
	if f := new(loop.Fault); !errors.As(a.Cause(), &f) || f.Why != want {
		t.Errorf("cause = %+v, want %s", f, want)
	}
}

func TestTheCauseSaysThatASingleTokenIsMissing(t *testing.T) {
	a := &Account{Grant: loop.Amount{Tokens: 10}}
	c, err := a.Open(t.Context(), Call{Model: "m", Input: 9, Output: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.Settle("m", loop.Usage{Input: 9, Output: 1})
	_, err = a.Open(t.Context(), Call{Model: "m", Output: 1})
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Why != "10 of 10 tokens are used, and the next call needs about 1" {
		t.Errorf("Open = %v, want what is used and what it needs", err)
	}
}

func TestAnExhaustedAccountAsksForNothingMore(t *testing.T) {
	asked := 0
	a := &Account{Grant: loop.Amount{Output: 10}, More: func(context.Context, loop.Amount) (loop.Amount, error) {
		asked++
		return loop.Amount{}, errors.New("no")
	}}
	if a.OpenReported("m").Progress(t.Context(), loop.Usage{Output: 11}) || asked != 1 {
		t.Fatalf("asked for more %d times, want once, and the turn cut", asked)
	}
	if want := "11 of 10 output tokens are used;"; !strings.Contains(fmt.Sprint(a.Cause()), want) {
		t.Errorf("cause = %v, want %s in it", a.Cause(), want)
	}
	if c, err := a.Open(t.Context(), Call{Model: "m", Input: 1, Output: 1}); err == nil || asked != 1 {
		t.Errorf("Open = %+v, %v after asking for more %d times, want it refused at once", c, err, asked)
	}
}

// The second call comes while the first one asks for more, and finds an account that
// is exhausted.
func TestACallThatWaitedForARefusalIsRefusedToo(t *testing.T) {
	asked, refuse := make(chan struct{}), make(chan struct{})
	a := &Account{Grant: loop.Amount{Tokens: 10}, More: func(context.Context, loop.Amount) (loop.Amount, error) {
		close(asked)
		<-refuse
		return loop.Amount{}, errors.New("no")
	}}
	errs := make(chan error, 2)
	open := func() {
		_, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 10})
		errs <- err
	}
	go open()
	<-asked
	go open()
	time.Sleep(20 * time.Millisecond) // It is before the refusal or after it; both must refuse.
	close(refuse)
	for range 2 {
		if err := <-errs; err == nil || !errors.Is(err, a.Cause()) {
			t.Errorf("Open = %v, want %v", err, a.Cause())
		}
	}
}

func TestTheLastTokenOfAGrantIsWritten(t *testing.T) {
	a := &Account{Grant: loop.Amount{Tokens: 11}}
	if c, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 5}); err != nil || c.Output != 1 {
		t.Errorf("Open = %+v, %v, want one token of output", c, err)
	}
}

func TestAnAnswerWithoutNumbersLiftsNoCap(t *testing.T) {
	a := &Account{Grant: loop.Amount{Tokens: 10}, More: func(context.Context, loop.Amount) (loop.Amount, error) { return loop.Amount{}, nil }}
	if c, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 10}); err == nil {
		t.Errorf("funded with %+v", c)
	}
}

func TestACallWaitsForWhatAnotherHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Account{Grant: loop.Amount{Tokens: 100}}
		first, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 90})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			_, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 40})
			got <- err
		}()
		synctest.Wait()
		select {
		case err := <-got:
			t.Fatalf("the second did not wait: %v", err)
		default:
		}
		first.Settle("m", loop.Usage{Input: 10, Output: 20})
		if err := <-got; err != nil {
			t.Errorf("the second = %v", err)
		}
	})
}

// What the first call holds is all but the input of the second and one token.
func TestACallWaitsAlsoForTheLastTokenOfAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Account{Grant: loop.Amount{Tokens: 11}}
		first, err := a.Open(t.Context(), Call{Model: "m", Input: 1, Output: 10})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			first.Release()
		}()
		if c, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 10}); err != nil || c.Output != 1 {
			t.Errorf("Open = %+v, %v, want one token of output once the first call has given back what it held", c, err)
		}
	})
}

func TestACallDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Account{Grant: loop.Amount{Tokens: 100}}
		if _, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 90}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Open(t.Context(), Call{Model: "m", Input: 10, Output: 40}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second = %v", err)
		}
		if a.Cause() != nil {
			t.Errorf("what is held is not used: %v", a.Cause())
		}
	})
}

func TestMoneyIsACapOfItsOwn(t *testing.T) {
	a := &Account{Grant: loop.Amount{MicroUSD: 1_000_000}, Price: dollar}
	c, err := a.Open(t.Context(), Call{Model: "priced", Input: 40, Output: 900})
	if err != nil || c.Output != 60 {
		t.Fatalf("for a dollar of 100 tokens a call may write %+v, %v", c, err)
	}
	if !c.Progress(t.Context(), "priced", loop.Usage{Input: 40, Output: 60}) || c.Progress(t.Context(), "priced", loop.Usage{Input: 40, Output: 61}) {
		t.Error("it was not cut at the dollar")
	}
	if want := "$1.0100 of $1.0000"; !strings.Contains(fmt.Sprint(a.Cause()), want) {
		t.Errorf("cause = %v, want %s in it", a.Cause(), want)
	}
}

func TestACallThatNeverFitsIsRefusedAtOnceThoughOthersHoldSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Account{Grant: loop.Amount{MicroUSD: 1_000_000}, Price: dollar}
		if _, err := a.Open(t.Context(), Call{Model: "priced", Input: 10, Output: 10}); err != nil {
			t.Fatal(err)
		}
		_, err := a.Open(t.Context(), Call{Model: "priced", Input: 100, Output: 10})
		if _, ok := errors.AsType[*loop.Fault](err); !ok || !strings.Contains(err.Error(), "$0.0000 of $1.0000 are used, and the next call costs about $1.0100") {
			t.Errorf("a call of more than the grant = %v, want what it costs", err)
		}
	})
}

func TestWhatIsToBeCachedIsHeldAtItsHigherPrice(t *testing.T) {
	for name, c := range map[string]struct {
		call Call
		want loop.Usage
	}{
		"not cached":         {Call{}, loop.Usage{Input: 9, CacheRead: 3, Output: 7}},
		"cached":             {Call{CacheWrite: true}, loop.Usage{CacheWrite: 9, CacheRead: 3, Output: 7}},
		"cached for an hour": {Call{CacheWrite: true, CacheWrite1h: true}, loop.Usage{CacheWrite: 9, CacheWrite1h: 9, CacheRead: 3, Output: 7}},
		"an hour of nothing": {Call{CacheWrite1h: true}, loop.Usage{Input: 9, CacheRead: 3, Output: 7}},
	} {
		c.call.Input, c.call.Cached = 9, 3
		if got := c.call.usageWith(7); got != c.want {
			t.Errorf("%s: held as %+v, want %+v", name, got, c.want)
		}
	}
}

func TestAModelWithoutAPriceIsRefusedOnlyIfMoneyHasACap(t *testing.T) {
	q := Call{Model: "new", Input: 1, Output: 1}
	a := &Account{Grant: loop.Amount{MicroUSD: 1}, Price: dollar}
	if _, err := a.Open(t.Context(), q); err == nil || !strings.Contains(err.Error(), "add a price") {
		t.Errorf("Open = %v", err)
	}
	if a.Cause() != nil {
		t.Errorf("cause = %v", a.Cause())
	}
	b := &Account{Grant: loop.Amount{Tokens: 100}, Price: dollar}
	c, err := b.Open(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	c.Settle("", loop.Usage{Input: 1})
	if _, models := b.Total(); len(models) != 1 || models[0].Model != "new" || models[0].Priced {
		t.Errorf("models = %+v", models)
	}
}

// A provider may have given the model that was asked a longer name.
func TestACallIsPricedByTheNameThatHasAPrice(t *testing.T) {
	u := loop.Usage{Input: 10}
	for name, c := range map[string]struct {
		price           func(string, loop.Usage) (int64, bool)
		answered, asked string
		want            loop.ModelUsage
	}{
		"that answered":     {dollar, "priced", "short", loop.ModelUsage{Model: "priced", Usage: u, MicroUSD: 100_000, Priced: true}},
		"that was asked":    {dollar, "priced-20270101", "priced", loop.ModelUsage{Model: "priced", Usage: u, MicroUSD: 100_000, Priced: true}},
		"nothing answered":  {dollar, "", "priced", loop.ModelUsage{Model: "priced", Usage: u, MicroUSD: 100_000, Priced: true}},
		"neither":           {dollar, "new-20270101", "new", loop.ModelUsage{Model: "new-20270101", Usage: u}},
		"there are no more": {nil, "priced", "priced", loop.ModelUsage{Model: "priced", Usage: u}},
	} {
		a := &Account{Price: c.price}
		if d := cmp.Diff(c.want, a.priceUsage(c.answered, c.asked, u)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestTotalsAreByModelAndHoldWhatIsUnderWay(t *testing.T) {
	a := &Account{Price: dollar}
	for _, model := range []string{"b", "priced", "b"} {
		c, err := a.Open(t.Context(), Call{Model: model, Input: 1, Output: 1})
		if err != nil {
			t.Fatal(err)
		}
		c.Settle(model, loop.Usage{Input: 10, Output: 1, CacheRead: 5, Source: loop.UsageMetered})
		c.Settle(model, loop.Usage{Input: 10})
		c.Release()
	}
	c, err := a.Open(t.Context(), Call{Model: "live", Input: 1, Output: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.Progress(t.Context(), "live", loop.Usage{Input: 7, Output: 3, Source: loop.UsageEstimated})
	total, models := a.Total()
	if want := (loop.Usage{Input: 37, Output: 6, CacheRead: 15, Source: loop.UsageEstimated}); total != want {
		t.Errorf("total = %+v, want %+v", total, want)
	}
	var got []string
	for _, m := range models {
		got = append(got, fmt.Sprintf("%s %d $%d %t", m.Model, m.Input, m.MicroUSD, m.Priced))
	}
	if want := []string{"b 20 $0 false", "live 7 $0 false", "priced 10 $160000 true"}; !slices.Equal(got, want) {
		t.Errorf("models = %q, want %q", got, want)
	}
	if a.Calls() != 3 || a.Used().Tokens != 43 {
		t.Errorf("%d calls used %+v", a.Calls(), a.Used())
	}
	c.Release()
	if total, _ := a.Total(); total.Input != 30 {
		t.Errorf("after its release %+v", total)
	}
}
