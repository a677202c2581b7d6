package gate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// maxTries is the largest number of tries in a rule.
const maxTries = 10

// Rule says how many tries of a flaky gate must pass. The zero Rule is that of
// every other gate: one try, which must pass.
type Rule struct{ Need, Of int }

// ParseRule parses a rule such as "2 of 3". An empty text is the zero Rule.
func ParseRule(text string) (Rule, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Rule{}, nil
	}
	if len(words) != 3 || words[1] != "of" {
		return Rule{}, fmt.Errorf("read the rule %q for a flaky gate: it is not of the form \"2 of 3\"", text)
	}
	need, ok := parseCount(words[0])
	of, ok2 := parseCount(words[2])
	if !ok || !ok2 || need < 1 || need > of || of > maxTries {
		return Rule{}, fmt.Errorf("read the rule %q for a flaky gate: it must need 1 or more passes, of at most %d tries", text, maxTries)
	}
	return Rule{need, of}, nil
}

// String returns the rule in the form that ParseRule reads.
func (r Rule) String() string {
	if r == (Rule{}) {
		return ""
	}
	return fmt.Sprintf("%d of %d", r.Need, r.Of)
}

// undecided reports whether another try can still change the result.
func (r Rule) undecided(passed, tried int) bool {
	return passed < r.Need && r.Need-passed <= r.Of-tried
}

// runRule tries the gate until its rule is met or cannot be met any more. The
// result of the gate is that of the last try: a passing one if the rule is met,
// else a failing one.
func (c Command) runRule(ctx context.Context, in Input, s script) (loop.GateResult, error) {
	var res loop.GateResult
	var tries []loop.Try
	var took time.Duration
	passed := 0
	for in.Rule.undecided(passed, len(tries)) {
		if len(tries) > 0 && in.Fresh != nil {
			at, err := in.Fresh(ctx)
			if err != nil {
				return loop.GateResult{}, fmt.Errorf("ready try %d of the %s gate: %w", len(tries)+1, c.Name, err)
			}
			in.Place = at
		}
		var err error
		if res, err = c.runOnce(ctx, in, s); err != nil {
			return loop.GateResult{}, err
		}
		tries = append(tries, loop.Try{Pass: res.Pass, Exit: res.Exit, Took: res.Took})
		took += res.Took
		if res.Pass {
			passed++
		} else if Missing(res) || ctx.Err() != nil {
			break // Another try could not change the result.
		}
	}
	res.Tries, res.Took = tries, took
	return res, nil //nolint:nilerr // The tries before ctx ended are the result; the caller reads ctx itself.
}
