package plan

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// LandingMove is what becomes of a yes to a landing that has not come about.
type LandingMove string

// Moves of a landing.
const (
	LandingTry    LandingMove = "try"
	LandingWait   LandingMove = "wait"   // until At
	LandingRest   LandingMove = "rest"   // until a person asks for it
	LandingExpire LandingMove = "expire" // the yes is not valid any more
)

// LandingDecision says what to do about a yes to a landing. Reason is for the step whose
// result is to land; empty: the landing is tried, or does not keep the step from being
// worked on.
type LandingDecision struct {
	Move   LandingMove
	Reason loop.Reason
	At     time.Time // of the next try, of LandingWait
	Why    string
}

// MaxLandings is how often one yes is tried to be carried out before it rests until a
// person asks for it again.
const MaxLandings = 5

// firstLandingWait is the time between the first try and the second. Each later wait is
// four times as long: five tries take seven hours.
const firstLandingWait, mostLandingWait = 5 * time.Minute, 6 * time.Hour

// NextLanding says what a run of the loop does about a yes to a landing. A last try that
// lies in the future keeps nothing back: a clock was set back since.
func NextLanding(a loop.Approval, now time.Time) LandingDecision {
	at := a.Tried.Add(doubleTimes(firstLandingWait, mostLandingWait, 2*(a.Tries-1)))
	switch {
	case !now.Before(a.Expires):
		return LandingDecision{Move: LandingExpire, Why: "the yes is valid until " + formatTime(a.Expires)}
	case a.Tries >= MaxLandings:
		return LandingDecision{
			Move: LandingRest, Reason: loop.ReasonLandingRests,
			Why: fmt.Sprintf("it was tried %d times, and rests until a person asks for it", a.Tries),
		}
	case a.Tries > 0 && now.Before(at) && !now.Before(a.Tried):
		return LandingDecision{
			Move: LandingWait, Reason: loop.ReasonLandingWaits, At: at,
			Why: fmt.Sprintf("try %d of %d is due at %s", a.Tries+1, MaxLandings, formatTime(at)),
		}
	}
	return LandingDecision{Move: LandingTry, Why: fmt.Sprintf("try %d of %d", a.Tries+1, MaxLandings)}
}
