package schedule

import (
	"fmt"
	"strings"
	"time"
)

// maxInterval makes a typing error like 1000000d an error.
const maxInterval = 3660 * day

const day = 24 * time.Hour

var intervalUnits = []struct {
	letter byte
	length time.Duration
}{{'w', 7 * day}, {'d', day}, {'h', time.Hour}, {'m', time.Minute}}

// parseInterval reads 10m, 6h, 1d12h or 2w: whole numbers, longest unit first.
func parseInterval(text string) (time.Duration, error) {
	var total time.Duration
	rest := text
	for _, unit := range intervalUnits {
		number, after, found := strings.Cut(rest, string(unit.letter))
		if !found {
			continue
		}
		n, ok := parseNumber(number)
		if !ok {
			return 0, badInterval(text)
		}
		if n > int(maxInterval/unit.length) {
			return 0, fmt.Errorf("interval %s: longer than ten years", text)
		}
		total += time.Duration(n) * unit.length
		rest = after
	}
	switch {
	case rest != "":
		return 0, badInterval(text)
	case total < time.Minute:
		return 0, fmt.Errorf("interval %s: the shortest is 1m", text)
	case total > maxInterval:
		return 0, fmt.Errorf("interval %s: longer than ten years", text)
	}
	return total, nil
}

func badInterval(text string) error {
	if number, ok := strings.CutSuffix(text, "s"); ok && strings.TrimRight(number, "0123456789") != number {
		return fmt.Errorf("interval %s: seconds are too short; the shortest is 1m", text)
	}
	return fmt.Errorf("interval %s: write whole numbers with m, h, d or w, longest first, like 10m, 6h or 1d12h, "+
		"or five cron fields", text)
}

// parseNumber reads up to six digits and nothing else.
func parseNumber(text string) (int, bool) {
	if text == "" || len(text) > 6 {
		return 0, false
	}
	n := 0
	for _, digit := range []byte(text) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		n = n*10 + int(digit-'0')
	}
	return n, true
}

// nextInterval is the first anchor + k*every that is after after. It counts in
// seconds because time.Time.Sub saturates after 292 years.
func nextInterval(anchor time.Time, every time.Duration, after time.Time) time.Time {
	if anchor.IsZero() {
		anchor = time.Unix(0, 0)
	}
	step := int64(every / time.Second)
	elapsed := after.Unix() - anchor.Unix()
	past := elapsed % step // Before the anchor it is negative, and next is later than after at once.
	next := time.Unix(after.Unix()-past, int64(anchor.Nanosecond()))
	if !next.After(after) {
		next = next.Add(every)
	}
	return next
}
