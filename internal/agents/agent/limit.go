package agent

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// farthestReset is how far in the future the end of a limit can plausibly be.
const farthestReset = 40 * 24 * time.Hour

var (
	// limitWords match messages that a window of an account is used up.
	limitWords = lazyregexp.New(`(?i)\b(?:session|weekly|daily|monthly|hourly|usage|rate|opus|sonnet|fable|\d+-hour|\d+-day) limit\b|\blimit reached\b|\bhit your (?:\S+ ){0,3}limit\b`)
	// exhaustedWords match messages that the account needs to be paid for.
	exhaustedWords = lazyregexp.New(`(?i)\bout of (?:extra usage|credits?)\b|\bcredit balance is too low\b|\bquota exceeded\b|\binsufficient_quota\b`)
	// resetWords match messages that it will work again later.
	resetWords = lazyregexp.New(`(?i)\b(?:resets?|try again|available again)\b`)

	resetEpoch   = lazyregexp.New(`\|\s*(\d{10}|\d{13})\b`)
	resetAfter   = lazyregexp.New(`(?i)\b(?:resets?|try again|available again) in ((?:\d+ ?[a-z]+(?:,? (?:and )?)?)+)`)
	durationPart = lazyregexp.New(`(?i)(\d+) ?(d|h|m|s)[a-z]*`)
	resetAt      = lazyregexp.New(`(?i)\b(?:resets?|try again|available again)(?: (?:at|on))? (?:([a-z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}))?,? (?:at )?)?(?:([a-z]{3})[a-z]*,? (?:at )?)?(\d{1,2})(?::(\d{2}))? ?(am|pm)?(?: \(([A-Za-z_+\-/0-9]{1,40})\)| (UTC|GMT))?`)
)

// LimitClass returns what the text of an error says about the limits of an
// account; empty if it says nothing about them. The text must be an error of a
// program or a vendor, never one that a model wrote.
func LimitClass(words string) loop.FailureClass {
	spent := exhaustedWords.MatchString(words)
	switch {
	case spent && !resetWords.MatchString(words):
		return loop.FailureQuota
	case spent, limitWords.MatchString(words):
		return loop.FailureRateLimit
	}
	return ""
}

// LimitReset returns when a limit is lifted, according to the text of an error:
// as Unix time, as a duration from now, or as a time of day, which means the next
// one, in the named zone or else in that of now. It returns zero if the time
// cannot be read, is in the past or is too far away.
func LimitReset(words string, now time.Time) time.Time {
	for _, at := range []time.Time{resetFromEpoch(words), resetFromWait(words, now), resetFromClock(words, now)} {
		if at.After(now) && at.Sub(now) <= farthestReset {
			return at.UTC()
		}
	}
	return time.Time{}
}

func resetFromEpoch(words string) time.Time {
	m := resetEpoch.FindStringSubmatch(words)
	if m == nil {
		return time.Time{}
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // The pattern allows at most 13 digits.
	if len(m[1]) == 13 {
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
}

func resetFromWait(words string, now time.Time) time.Time {
	m := resetAfter.FindStringSubmatch(words)
	if m == nil {
		return time.Time{}
	}
	units := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}
	var wait time.Duration
	for _, part := range durationPart.FindAllStringSubmatch(m[1], -1) {
		n, err := strconv.Atoi(part[1])
		if err != nil || n > int(farthestReset/time.Second) {
			return time.Time{}
		}
		wait += time.Duration(n) * units[strings.ToLower(part[2])]
	}
	return now.Add(wait)
}

func resetFromClock(words string, now time.Time) time.Time {
	m := resetAt.FindStringSubmatch(words)
	if m == nil {
		return time.Time{}
	}
	month, weekday := m[1], m[4]
	hour, _ := strconv.Atoi(m[5])
	minute, _ := strconv.Atoi(m[6])
	switch half := strings.ToLower(m[7]); {
	case half == "" && m[6] == "", half != "" && (hour < 1 || hour > 12), hour > 23, minute > 59:
		return time.Time{} // not a time of day
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	zone := now.Location()
	if name := m[8] + m[9]; name != "" {
		var err error
		if zone, err = time.LoadLocation(name); err != nil {
			return time.Time{}
		}
	}
	today := now.In(zone)
	at := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, hour, minute, 0, 0, zone)
	}
	if month != "" {
		return resetOnDate(month, m[2], m[3], today, at)
	}
	for days := range 8 {
		next := at(today.Year(), today.Month(), today.Day()+days)
		if next.After(now) && (weekday == "" || strings.EqualFold(next.Weekday().String()[:3], weekday)) {
			return next
		}
	}
	return time.Time{}
}

func resetOnDate(name, dayText, yearText string, today time.Time, at func(int, time.Month, int) time.Time) time.Time {
	parsed, err := time.Parse("Jan", strings.ToUpper(name[:1])+strings.ToLower(name[1:]))
	if err != nil {
		return time.Time{}
	}
	day, _ := strconv.Atoi(dayText)
	year, err := strconv.Atoi(yearText)
	if err == nil {
		return at(year, parsed.Month(), day)
	}
	next := at(today.Year(), parsed.Month(), day)
	if today.Sub(next) > 24*time.Hour {
		next = at(today.Year()+1, parsed.Month(), day)
	}
	return next
}
