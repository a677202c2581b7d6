package model

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longest is how far away the end of a limit can be that is believed.
const longest = 40 * 24 * time.Hour

// resetOf says when a limit is lifted, in the first place of these in which the
// vendor says it; zero if it does not.
func resetOf(header http.Header, e vendorError, now time.Time) time.Time {
	for _, found := range []time.Time{
		after(header, now),
		inBody(e, now),
		windows(header, "Anthropic-Ratelimit-", "-Remaining", "-Reset", now),
		windows(header, "X-Ratelimit-", "Remaining-", "Reset-", now),
	} {
		if believed(found, now) {
			return found
		}
	}
	return time.Time{}
}

func believed(at, now time.Time) bool {
	return !at.IsZero() && at.Sub(now) <= longest && now.Sub(at) < time.Minute
}

// after reads Retry-After, in its three forms.
func after(header http.Header, now time.Time) time.Time {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return in(ms/1000, now)
	}
	value := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return in(s, now)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return time.Time{}
	}
	return at
}

// in is so many seconds from now; zero if that is no time.
func in(seconds float64, now time.Time) time.Time {
	if !(seconds >= 0 && seconds <= longest.Seconds()) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds * float64(time.Second)))
}

func inBody(e vendorError, now time.Time) time.Time {
	switch {
	case e.ResetsAt > 0:
		return time.Unix(e.ResetsAt, 0)
	case e.ResetsIn > 0:
		return in(e.ResetsIn, now)
	}
	for _, d := range e.Details {
		if wait, err := time.ParseDuration(d.Delay); err == nil {
			return in(wait.Seconds(), now)
		}
	}
	return time.Time{}
}

// windows reads the limits that a vendor keeps, of requests and of tokens. The
// last to open counts, of those that have nothing left if any says so.
func windows(header http.Header, prefix, remaining, reset string, now time.Time) time.Time {
	var last, empty time.Time
	for name, values := range header {
		rest, ours := strings.CutPrefix(name, prefix)
		if !ours || !strings.Contains(rest, reset) {
			continue
		}
		at := moment(values[0], now)
		if !believed(at, now) {
			continue
		}
		last = later(last, at)
		if header.Get(prefix+strings.Replace(rest, reset, remaining, 1)) == "0" {
			empty = later(empty, at)
		}
	}
	if !empty.IsZero() {
		return empty
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// moment reads a time as a date, as Unix seconds, as a duration such as 6m0s, or
// as seconds from now.
func moment(text string, now time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	if wait, err := time.ParseDuration(text); err == nil {
		return in(wait.Seconds(), now)
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
	return in(float64(n), now)
}
