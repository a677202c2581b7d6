// Package schedule reads a cadence, the text that says how often a loop fires,
// and computes the next time it fires. A cadence is an interval (10m, 6h, 1d,
// 1d12h, 2w) or a five-field cron expression.
//
// It never waits, never reads a clock and keeps no record of what fired: the
// same cadence, time and zone always give the same answer. It never returns a
// cadence that cannot fire; Parse refuses those.
package schedule

import (
	"errors"
	"strings"
	"time"
)

// Cadence says when a loop fires. It is a value: copying and comparing it is
// cheap and safe. The zero Cadence never fires.
type Cadence struct {
	text   string
	every  time.Duration // 0 for cron
	anchor time.Time     // intervals only
	cron   cron
}

// maxText is the longest valid cadence, in bytes.
const maxText = 256

// Parse reads an interval or a cron expression. The error names the field and the
// fix. An expression that never fires (0 0 31 2 *) is an error. Parse is ParseFor
// with an empty key.
func Parse(text string) (Cadence, error) { return ParseFor(text, "") }

// ParseFor is Parse with the key, such as a loop's name, that decides which
// value each H of a cron expression takes. One key always gives one value, and
// different keys spread evenly, so that a fleet does not fire all at once.
func ParseFor(text, key string) (Cadence, error) {
	if len(text) > maxText {
		return Cadence{}, errors.New("longer than 256 bytes: write an interval like 1h or five cron fields")
	}
	text = strings.Join(strings.Fields(text), " ")
	c := Cadence{text: text}
	var err error
	switch {
	case text == "":
		err = errors.New("empty: write an interval like 1h or five cron fields like 0 9 * * 1-5")
	case looksLikeCron(text):
		c.cron, err = parseCron(text, key)
	default:
		c.every, err = parseInterval(text)
	}
	if err != nil {
		return Cadence{}, err
	}
	return c, nil
}

func looksLikeCron(text string) bool {
	return strings.HasPrefix(text, "@") || strings.ContainsAny(text, " *")
}

// String is the cadence as it was written, with single spaces.
func (c Cadence) String() string { return c.text }

// Interval returns the time between two firings of an interval. It reports false for
// cron.
func (c Cadence) Interval() (time.Duration, bool) { return c.every, c.every > 0 }

// Anchored returns c with its intervals counted from at: it fires any number of
// intervals before or after at. Without an anchor they are counted from
// the beginning of 1970 in UTC, so 1h fires on the hour. Cron has no anchor.
func (c Cadence) Anchored(at time.Time) Cadence {
	if c.every > 0 {
		c.anchor = at.Round(0)
	}
	return c
}

// Next returns the first time strictly after after at which the cadence fires, in
// loc; a nil loc is UTC. Called again with its own result, it walks all firings.
//
// Intervals follow elapsed time, and a day is 24 hours. Cron follows the wall
// clock of loc: where the minute or the hour is a wildcard, every real minute
// that shows a matching time counts, also one that the clock shows twice. Any
// other expression names fixed times, and each fires once a day: the first
// time where the clock shows it twice, and where the clock skips it, right
// after the gap.
//
// The zero time means never, which happens only for the zero Cadence and
// beyond the year 9999.
func (c Cadence) Next(after time.Time, loc *time.Location) time.Time {
	if loc == nil {
		loc = time.UTC
	}
	if y := after.Year(); y < 1 || y > maxYear {
		return time.Time{}
	}
	switch {
	case c.every > 0:
		return nextInterval(c.anchor, c.every, after).In(loc)
	case c.cron == (cron{}):
		return time.Time{}
	case c.cron.wildcard:
		return c.cron.nextElapsed(after, loc)
	}
	return c.cron.nextFixed(after, loc)
}
