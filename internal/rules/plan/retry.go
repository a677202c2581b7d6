package plan

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// RetryDecision says what follows a failed turn. The zero RetryDecision ends the run
// and holds nothing back.
type RetryDecision struct {
	TryAgain   bool      // the same run tries once more, at At
	NewSession bool      // with a new session, because the old one cannot go on
	Hold       bool      // runs on the same account do not start before At; a zero At: until a person resumes
	At         time.Time // of the next try or the end of the hold
	Why        string
}

const (
	moreTries  = 2                // of the same turn, where waiting for seconds helps
	firstPause = 2 * time.Second  // average before the first of them; four times that before the second
	soon       = 30 * time.Second // a run waits at most this long for a limit to be lifted
	skew       = time.Minute      // a reset this long ago or less still counts: clocks differ
	spread     = 2 * time.Minute  // runs that wait for the same reset start spread over this time
	mostReset  = 32 * 24 * time.Hour
	firstHold  = 5 * time.Minute
	mostHold   = 6 * time.Hour
)

// Retry says what follows a turn that failed. Attempt counts the errors in a
// row, from 1: those of the turn, and for a rate limit those of the account. Reset
// is when a limit is lifted, zero if unknown. Seed spreads the runs that wait: the
// same seed always gives the same time.
func Retry(class loop.FailureClass, attempt int, reset, now time.Time, seed uint64) RetryDecision {
	attempt = max(attempt, 1)
	switch class {
	case loop.FailureServer, loop.FailureCrash:
		return retryTurn(class, attempt, moreTries, now, seed)
	case loop.FailureHang, loop.FailureKilled:
		return retryTurn(class, attempt, 1, now, seed)
	case loop.FailureRateLimit:
		return retryLimited(attempt, reset, now, seed)
	case loop.FailureQuota, loop.FailureAuth, loop.FailureRequest:
		return RetryDecision{Hold: true, Why: fmt.Sprintf("%s: time does not help; it waits until a person resumes", class)}
	case loop.FailureOverflow:
		if attempt == 1 {
			return RetryDecision{TryAgain: true, NewSession: true, At: now, Why: "context_overflow: once more, with a new session"}
		}
	}
	return RetryDecision{Why: fmt.Sprintf("%s: the same turn would come to the same", class)}
}

// RetryBy is Retry for a definition with an error policy, which counts for errors of the
// agent's program, the provider and time-outs. What time or a person has to mend first is
// left to Retry.
func RetryBy(p loop.ErrorPolicy, class loop.FailureClass, attempt int, reset, now time.Time, seed uint64) RetryDecision {
	switch class {
	case loop.FailureRateLimit, loop.FailureQuota, loop.FailureAuth, loop.FailureRequest, loop.FailureOverflow:
		return Retry(class, attempt, reset, now, seed)
	}
	attempt = max(attempt, 1)
	if attempt > p.Retries {
		return RetryDecision{Why: fmt.Sprintf("%s: it was tried %d times", class, attempt)}
	}
	wait := p.WaitBefore(attempt)
	return RetryDecision{TryAgain: true, At: now.Add(wait), Why: fmt.Sprintf("%s: retry %d of %d, after %s", class, attempt, p.Retries, wait)}
}

// retryTurn allows up to most more tries. The pause before each has full jitter: it
// is from zero to twice its average.
func retryTurn(class loop.FailureClass, attempt, most int, now time.Time, seed uint64) RetryDecision {
	if attempt > most {
		return RetryDecision{Why: fmt.Sprintf("%s: it was tried %d times", class, attempt)}
	}
	pause := jitter(2*firstPause<<(2*(attempt-1)), seed, attempt)
	return RetryDecision{
		TryAgain: true, At: now.Add(pause),
		Why: fmt.Sprintf("%s: try %d of %d, after %s", class, attempt+1, most+1, pause.Round(100*time.Millisecond)),
	}
}

func retryLimited(attempt int, reset, now time.Time, seed uint64) RetryDecision {
	known := !reset.IsZero() && reset.After(now.Add(-skew))
	switch wait := reset.Sub(now); {
	case known && wait > mostReset:
		return RetryDecision{Hold: true, Why: fmt.Sprintf("rate_limit: until %s, too far away for a rate limit; it waits until a person resumes", formatTime(reset))}
	case known && wait <= soon && attempt <= moreTries:
		return RetryDecision{
			TryAgain: true, At: later(reset, now).Add(jitter(firstPause, seed, attempt)),
			Why: "rate_limit: it is lifted at " + formatTime(reset) + ", and the run waits for that",
		}
	case known && wait > soon:
		at := reset.Add(jitter(spread, seed, attempt))
		return RetryDecision{Hold: true, At: at, Why: "rate_limit: it is lifted at " + formatTime(reset)}
	}
	at := now.Add(doubleTimes(firstHold, mostHold, attempt-1) + jitter(spread, seed, attempt))
	return RetryDecision{Hold: true, At: at, Why: fmt.Sprintf("rate_limit: %d in a row, and no reset that can be waited for; until %s", attempt, formatTime(at))}
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A driver that fails coolAfter times in a row cools off.
const (
	coolAfter = 3
	firstCool = 15 * time.Minute
	mostCool  = 24 * time.Hour
)

// CoolOff returns until when a loop rests after its agent failed that many times in a
// row: 15 minutes after the third failure, doubling up to a day, plus up to two
// minutes. With fewer failures it is the zero time, and the loop does not rest.
func CoolOff(failed int64, now time.Time, seed uint64) time.Time {
	if failed < coolAfter {
		return time.Time{}
	}
	n := int(min(failed-coolAfter, 64))
	return now.Add(doubleTimes(firstCool, mostCool, n) + jitter(spread, seed, n))
}

// doubleTimes doubles first n times, up to most.
func doubleTimes(first, most time.Duration, n int) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}

// jitter is an evenly spread time of at least zero and less than span, chosen by
// seed and attempt (the finaliser of splitmix64).
func jitter(span time.Duration, seed uint64, attempt int) time.Duration {
	z := seed + uint64(attempt)*0x9e3779b97f4a7c15 //nolint:gosec // An attempt is never negative.
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return time.Duration(float64(span) * (float64(z>>11) / (1 << 53)))
}
