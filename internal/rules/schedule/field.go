package schedule

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// field is one of the five fields of a cron expression.
type field struct {
	name     string
	min, max int // lowest and highest value that may be written
	top      int // last value of * and of an open step: 7 is a second Sunday
	spread   int // last value that H takes: days 29 to 31 are not in every month
	names    []string
	set      func(*cron) *uint64
}

var (
	minuteField = &field{name: "minute", max: 59, top: 59, spread: 59, set: func(c *cron) *uint64 { return &c.minute }}
	hourField   = &field{name: "hour", max: 23, top: 23, spread: 23, set: func(c *cron) *uint64 { return &c.hour }}
	dateField   = &field{
		name: "day-of-month", min: 1, max: 31, top: 31, spread: 28,
		set: func(c *cron) *uint64 { return &c.date },
	}
	monthField = &field{
		name: "month", min: 1, max: 12, top: 12, spread: 12,
		names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"},
		set:   func(c *cron) *uint64 { return &c.month },
	}
	weekdayField = &field{
		name: "day-of-week", max: 7, top: 6, spread: 6,
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"},
		set:   func(c *cron) *uint64 { return &c.weekday },
	}
	fields = []*field{minuteField, hourField, dateField, monthField, weekdayField}
)

// parseInto reads one field, a comma-separated list of items, into c.
func (f *field) parseInto(c *cron, text, key string) error {
	for item := range strings.SplitSeq(text, ",") {
		special, err := parseSpecial(c, f, item)
		if err != nil {
			return err
		}
		if special {
			continue
		}
		values, err := f.parseItem(item, key)
		if err != nil {
			return err
		}
		*f.set(c) |= values
	}
	if f == weekdayField && c.weekday&(1<<7) != 0 {
		c.weekday = c.weekday&^(1<<7) | 1
	}
	return nil
}

// parseItem reads *, a, a-b, H or H(a-b), each with an optional /step, as bits.
func (f *field) parseItem(item, key string) (uint64, error) {
	base, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		var err error
		if step, err = f.parseStep(stepText); err != nil {
			return 0, err
		}
	}
	if strings.HasPrefix(base, "H") {
		return f.parseHashed(base, step, stepped, key)
	}
	lo, hi, err := f.parseRange(base, stepped)
	if err != nil {
		return 0, err
	}
	return stepBits(lo, hi, step), nil
}

func (f *field) parseStep(text string) (int, error) {
	n, ok := parseNumber(text)
	size := f.top - f.min + 1
	switch {
	case !ok || n == 0:
		return 0, fmt.Errorf("step /%s: write a whole number from 1 to %d", clipText(text), size)
	case n > size:
		return 0, fmt.Errorf("step /%d: the field has only %d values; for a longer time write an interval like 90m", n, size)
	}
	return n, nil
}

// parseRange returns the first and the last value of *, a or a-b. A single value with
// a step goes up to the end of the field.
func (f *field) parseRange(base string, stepped bool) (lo, hi int, err error) {
	if base == "*" {
		return f.min, f.top, nil
	}
	first, last, ranged := strings.Cut(base, "-")
	if lo, err = f.parseValue(first); err != nil {
		return 0, 0, err
	}
	switch {
	case !ranged && !stepped:
		return lo, lo, nil
	case !ranged:
		return lo, max(lo, f.top), nil
	}
	if hi, err = f.parseValue(last); err != nil {
		return 0, 0, err
	}
	if f == weekdayField && last == "SUN" && lo > 0 {
		hi = 7
	}
	if hi < lo {
		return 0, 0, fmt.Errorf("%s runs backwards: write %s-%d,%d-%s", base, first, f.top, f.min, last)
	}
	return lo, hi, nil
}

func (f *field) parseValue(text string) (int, error) {
	if i := slices.Index(f.names, text); i >= 0 {
		return i + f.min, nil
	}
	n, ok := parseNumber(text)
	switch {
	case !ok && f.names != nil:
		return 0, fmt.Errorf("%q is neither a number from %d to %d nor a name like %s", clipText(text), f.min, f.max, f.names[1])
	case !ok:
		return 0, fmt.Errorf("%q is not a number from %d to %d", clipText(text), f.min, f.max)
	case n < f.min || n > f.max:
		return 0, fmt.Errorf("%d is not from %d to %d", n, f.min, f.max)
	}
	return n, nil
}

// parseHashed reads H and H(a-b). The key chooses the value or, with a step, the first
// value.
func (f *field) parseHashed(base string, step int, stepped bool, key string) (uint64, error) {
	lo, hi := f.min, f.spread
	if base != "H" {
		inner, opened := strings.CutPrefix(base, "H(")
		inner, closed := strings.CutSuffix(inner, ")")
		if !opened || !closed || !strings.Contains(inner, "-") {
			return 0, fmt.Errorf("%q: write H, H/15 or H(0-29)", clipText(base))
		}
		var err error
		if lo, hi, err = f.parseRange(inner, false); err != nil {
			return 0, err
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.name + "\x00" + key))
	span := hi - lo + 1
	if !stepped {
		at := lo + int(h.Sum64()%uint64(span))
		return stepBits(at, at, 1), nil
	}
	return stepBits(lo+int(h.Sum64()%uint64(min(step, span))), hi, step), nil
}

// isWildcard reports whether a field follows elapsed time: it begins with *, is H with
// a step, or contains every value.
func (f *field) isWildcard(text string, set uint64) bool {
	return strings.HasPrefix(text, "*") || strings.HasPrefix(text, "H/") || set == stepBits(f.min, f.top, 1)
}

func stepBits(lo, hi, step int) uint64 {
	var set uint64
	for v := lo; v <= hi; v += step {
		set |= 1 << v
	}
	return set
}

func clipText(text string) string {
	if len(text) > 20 {
		return text[:20] + "…"
	}
	return text
}
