package schedule

import (
	"errors"
	"fmt"
	"strings"
)

// cron is a parsed expression, with one bit per value. It selects minutes of the wall
// clock; the time zone decides which instants they are.
type cron struct {
	minute, hour, date, month, weekday uint64

	lastDate    bool     // L in the day of month
	nth         [7]uint8 // weekday#n: bit n of each weekday
	lastWeekday uint8    // weekdayL: one bit per weekday

	dateStar, weekdayStar bool // the field began with *
	wildcard              bool // the minute or the hour is a wildcard: follows elapsed time
}

var macros = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

func parseCron(text, key string) (cron, error) {
	expression, err := expandMacro(text)
	if err != nil {
		return cron{}, err
	}
	texts := strings.Fields(strings.ToUpper(expression))
	if len(texts) != 5 {
		return cron{}, fmt.Errorf("cron %q: %d fields; write five (minute hour day-of-month month day-of-week, "+
			"no seconds, no year) or an interval like 10m", text, len(texts))
	}
	var c cron
	for i, f := range fields {
		if err := f.parseInto(&c, texts[i], key); err != nil {
			return cron{}, fmt.Errorf("cron %q: %s: %w", text, f.name, err)
		}
	}
	c.wildcard = minuteField.isWildcard(texts[0], c.minute) || hourField.isWildcard(texts[1], c.hour)
	c.dateStar = strings.HasPrefix(texts[2], "*")
	c.weekdayStar = strings.HasPrefix(texts[4], "*")
	if !c.everFires() {
		return cron{}, fmt.Errorf("cron %q: day-of-month: never fires, no chosen month has such a day; "+
			"L is the last day of a month", text)
	}
	return c, nil
}

func expandMacro(text string) (string, error) {
	if !strings.HasPrefix(text, "@") {
		return text, nil
	}
	if expression, ok := macros[strings.ToLower(text)]; ok {
		return expression, nil
	}
	if strings.HasPrefix(text, "@every") {
		return "", fmt.Errorf("cron %q: write the interval alone, like 10m or 6h; the shortest is 1m", text)
	}
	return "", fmt.Errorf("cron %q: unknown; the words are @hourly @daily @weekly @monthly @yearly", text)
}

// everFires searches one whole cycle of the calendar: after 400 years the same dates
// fall on the same weekdays again.
func (c *cron) everFires() bool {
	_, ok := c.nextWall(firstOfCycle)
	return ok
}

// parseSpecial reads the items whose days differ from month to month: L, weekday#n
// and weekdayL. It reports false for any other item.
func parseSpecial(c *cron, f *field, item string) (bool, error) {
	switch {
	case f == dateField && item == "L":
		c.lastDate = true
		return true, nil
	case f == weekdayField && strings.Contains(item, "#"):
		name, nth, _ := strings.Cut(item, "#")
		weekday, err := f.parseValue(name)
		if err != nil {
			return true, err
		}
		n, ok := parseNumber(nth)
		if !ok || n < 1 || n > 5 {
			return true, fmt.Errorf("%s: the number after # is 1 to 5", item)
		}
		c.nth[weekday%7] |= 1 << n
		return true, nil
	case f == weekdayField && item == "L":
		return true, errors.New("name the weekday of L, like 5L for the last Friday")
	case f == weekdayField && strings.HasSuffix(item, "L"):
		weekday, err := f.parseValue(strings.TrimSuffix(item, "L"))
		if err != nil {
			return true, err
		}
		c.lastWeekday |= 1 << (weekday % 7)
		return true, nil
	}
	return false, nil
}
