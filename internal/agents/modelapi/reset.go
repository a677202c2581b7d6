package modelapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestLimit is how far in the future a limit can plausibly end.
const longestLimit = 40 * 24 * time.Hour

// resetTime returns when a limit is lifted, from the first of these places that
// says so; zero if none does.
func resetTime(header http.Header, e VendorError, now time.Time) time.Time {
	for _, found := range []time.Time{
		retryAfter(header, now),
		resetInBody(e, now),
		windowReset(header, "Anthropic-Ratelimit-", "-Remaining", "-Reset", now),
		windowReset(header, "X-Ratelimit-", "Remaining-", "Reset-", now),
	} {
		if isPlausible(found, now) {
			return found
		}
	}
	return time.Time{}
}

// RetryAfter returns how long the vendor asks to wait before a retry; 0 if it
// does not say.
func (e VendorError) RetryAfter(header http.Header, now time.Time) time.Duration {
	for _, at := range []time.Time{retryAfter(header, now), resetInBody(e, now)} {
		if isPlausible(at, now) {
			return max(0, at.Sub(now))
		}
	}
	return 0
}

func isPlausible(at, now time.Time) bool {
	return !at.IsZero() && at.Sub(now) <= longestLimit && now.Sub(at) < time.Minute
}

// retryAfter reads Retry-After in its three forms.
func retryAfter(header http.Header, now time.Time) time.Time {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return fromNow(ms/1000, now)
	}
	value := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return fromNow(s, now)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return time.Time{}
	}
	return at
}

// fromNow returns the time in so many seconds; zero if that is not plausible.
func fromNow(seconds float64, now time.Time) time.Time {
	if !(seconds >= 0 && seconds <= longestLimit.Seconds()) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds * float64(time.Second)))
}

func resetInBody(e VendorError, now time.Time) time.Time {
	switch {
	case e.ResetsAt > 0:
		return time.Unix(e.ResetsAt, 0)
	case e.ResetsIn > 0:
		return fromNow(e.ResetsIn, now)
	}
	for _, d := range e.Details {
		if wait, err := time.ParseDuration(d.Delay); err == nil {
			return fromNow(wait.Seconds(), now)
		}
	}
	return time.Time{}
}

// windowReset reads a vendor's limits, of requests and of tokens. It returns the
// last reset of the limits that are exhausted, or of all if none says that it is.
func windowReset(header http.Header, prefix, remaining, reset string, now time.Time) time.Time {
	var last, empty time.Time
	for name, values := range header {
		rest, ours := strings.CutPrefix(name, prefix)
		if !ours || !strings.Contains(rest, reset) {
			continue
		}
		at := readTime(values[0], now)
		if !isPlausible(at, now) {
			continue
		}
		last = laterOf(last, at)
		if header.Get(prefix+strings.Replace(rest, reset, remaining, 1)) == "0" {
			empty = laterOf(empty, at)
		}
	}
	if !empty.IsZero() {
		return empty
	}
	return last
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// readTime reads a time as a date, as Unix seconds, as a duration such as 6m0s, or
// as seconds from now.
func readTime(text string, now time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	if wait, err := time.ParseDuration(text); err == nil {
		return fromNow(wait.Seconds(), now)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return time.Time{}
	case n > 1e12:
		return time.UnixMilli(n)
	case n > 1e9:
		return time.Unix(n, 0)
	}
	return fromNow(float64(n), now)
}
