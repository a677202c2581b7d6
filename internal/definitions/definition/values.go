package definition

import (
	"errors"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

func digitsOnly(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// parsePositive reads a whole number from 1 to most.
func parsePositive(text string, most int64) (int64, error) {
	if !digitsOnly(text) {
		return 0, errors.New("expected a whole number in digits, like 3")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > most {
		return 0, errors.New("expected at most " + strconv.FormatInt(most, 10))
	}
	if n == 0 {
		return 0, errors.New("expected at least 1; remove the key for the default")
	}
	return n, nil
}

// mostInt is the largest count that fits into an int of every platform.
const mostInt = math.MaxInt32

// longest is the longest valid duration.
const longest = 366 * 24 * time.Hour

var errDuration = errors.New("expected a duration like 90s, 10m, 1h30m, 2d or 1w")

// parseDuration reads Go's form, with w and d (24 hours) before it: 1d12h.
func parseDuration(text string) (time.Duration, error) {
	var total time.Duration
	rest := text
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, after, found := strings.Cut(rest, unit.letter)
		if !found {
			continue
		}
		if !digitsOnly(number) || len(number) > 3 {
			return 0, errDuration
		}
		n, _ := strconv.Atoi(number) // It has at most three digits.
		total += time.Duration(n) * unit.length
		rest = after
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || rest == "0" || strings.ContainsAny(rest, "+-") {
			return 0, errDuration
		}
		total += min(d, longest+1) // The sum does not overflow, and stays too long.
	}
	switch {
	case total <= 0:
		return 0, errors.New("expected more than nothing, like 10m; remove the key for the default")
	case total > longest:
		return 0, errors.New("expected at most a year")
	}
	return total, nil
}

var sizeForm = lazyregexp.New(sizePattern)

// parseSize reads a number of bytes.
func parseSize(text string) (int64, error) {
	parts := sizeForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, errors.New("expected a size like 8GiB or 500MB: a whole number and MB, GB, TB, MiB, GiB or TiB")
	}
	n, _ := strconv.ParseInt(parts[1], 10, 64) // The form has at most six digits.
	unit := map[string]int64{"MB": 1e6, "GB": 1e9, "TB": 1e12, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
	return n * unit[parts[2]], nil
}

// flakyRule reads how many of how many tries must pass, like 2 of 3.
func flakyRule(text string) (string, error) {
	problem := errors.New("expected how many of how many tries must pass, like 2 of 3, at most 10")
	need, of, ok := strings.Cut(strings.Join(strings.Fields(text), " "), " of ")
	m, err := parsePositive(need, 10)
	if !ok || err != nil {
		return "", problem
	}
	n, err := parsePositive(of, 10)
	if err != nil || m > n {
		return "", problem
	}
	return strconv.FormatInt(m, 10) + " of " + strconv.FormatInt(n, 10), nil
}

// mostDollars is the largest valid amount.
const mostDollars = 1_000_000

var (
	dollarsForm = lazyregexp.New(dollarsPattern)
	urlForm     = lazyregexp.New(urlPattern)
)

// parseDollars reads an amount of US dollars into millionths.
func parseDollars(text string) (int64, error) {
	if !dollarsForm.MatchString(text) {
		return 0, errors.New("expected US dollars like 2.50: more than nothing, at most " + strconv.Itoa(mostDollars) + ", with at most six decimals")
	}
	whole, part, _ := strings.Cut(strings.TrimLeft(text, "0"), ".")
	return strconv.ParseInt(whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
}

// baseURL reads the address of a model.
func baseURL(text string) (string, error) {
	if _, err := url.Parse(text); err != nil || !urlForm.MatchString(text) {
		return "", errors.New("expected an http or https URL without a user, query or fragment, like https://llm.example.com/v1")
	}
	return strings.TrimRight(text, "/"), nil
}
