package readiness

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pawl-run/pawl/internal/rules/price"
)

// How long a provider keeps a prompt prefix.
const (
	TTLAuto = "auto" // the shortest that outlasts the time between two runs
	TTL5m   = "5m"
	TTL1h   = "1h"
)

// ttls are sorted from the shortest to the longest. Write is the price of a token that
// the first run of the day writes to the cache.
var ttls = []struct {
	name    string
	minutes float64
	write   func(price.Model) float64
}{
	{TTL5m, 5, func(m price.Model) float64 { return m.CacheWrite5m }},
	{TTL1h, 60, func(m price.Model) float64 { return m.CacheWrite1h }},
}

const minutesPerDay = 1440

// Caching is a Cost if the static part of the prompt is written to the provider's cache
// once a day and read by every later run. If it is not Beneficial, it has a Reason and
// no money.
type Caching struct {
	Beneficial bool
	Reason     string  // one line with the numbers
	TTL        string  // TTL5m or TTL1h
	Prefix     int64   // tokens of one agent
	PerDay     float64 // US dollars
	PerHorizon float64
	Savings    float64 // 0 to 1, of the cost without caching; 0 if that is 0
}

func (c Cost) estimateCaching(m price.Model, w Workload) *Caching {
	interval := minutesPerDay / c.RunsPerDay
	k := &Caching{Prefix: int64(math.RoundToEven(float64(c.Input) * w.PrefixFraction))}
	if k.Prefix < m.MinPrefix {
		k.Reason = fmt.Sprintf("prefix %d < %d", k.Prefix, m.MinPrefix)
		return k
	}
	if m.CacheRead >= m.Input && m.Input > 0 {
		k.Reason = "cached input of " + m.ID + " costs as much as any other"
		return k
	}
	for _, ttl := range ttls {
		if interval <= ttl.minutes && (w.TTL == TTLAuto || w.TTL == ttl.name) {
			k.Beneficial, k.TTL = true, ttl.name
			k.computeMoney(c, m, ttl.write(m))
			return k
		}
	}
	limit := "the " + w.TTL + " TTL"
	if w.TTL == TTLAuto {
		limit = "every TTL"
	}
	k.Reason = formatMinutes(interval) + " min exceeds " + limit
	return k
}

func (k *Caching) computeMoney(c Cost, m price.Model, write float64) {
	reads := float64(max(c.RunsPerDay-1, 0) * m.CacheRead)
	prefix := float64(float64(k.Prefix) / 1e6 * (write + reads))
	rest := float64(float64(c.Input-k.Prefix) / 1e6 * m.Input * c.RunsPerDay)
	output := float64(float64(c.Output) / 1e6 * m.Output * c.RunsPerDay)
	k.PerDay = (prefix + rest + output) * float64(c.Subagents)
	k.PerHorizon = k.PerDay * float64(c.Days)
	if c.PerDay > 0 {
		k.Savings = (c.PerDay - k.PerDay) / c.PerDay
	}
}

// formatMinutes writes at most two decimals.
func formatMinutes(n float64) string {
	return strconv.FormatFloat(roundTo(n, 2), 'f', -1, 64)
}
