package sim

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Tally is what a loop came to.
type Tally struct {
	Loop       string               `json:"loop,omitempty"` // empty: all of them
	Cadence    string               `json:"cadence,omitempty"`
	Drawn      string               `json:"drawn_from,omitempty"` // past_runs or pattern
	Planned    int                  `json:"planned"`              // times of its cadence
	Coalesced  int                  `json:"coalesced"`            // of which another run made up for
	Skipped    int                  `json:"skipped"`
	Events     int                  `json:"events"` // that fire it: ends of other loops, new days of its budget
	Runs       int                  `json:"runs"`   // that have ended
	Outcomes   map[loop.Outcome]int `json:"outcomes"`
	Collisions int                  `json:"collisions"` // runs that found another one in their way
	Deferred   int                  `json:"deferred"`   // of them ended quiet, to come again
	WaitedMS   int64                `json:"waited_ms"`  // that the others waited, all together
	LongestMS  int64                `json:"longest_wait_ms"`
	Unfunded   int                  `json:"unfunded"` // runs that no budget paid for
	QuietRatio float64              `json:"quiet_ratio"`
	Tokens     int64                `json:"tokens"` // input, cache writes and output
	Output     int64                `json:"output_tokens"`
	MicroUSD   int64                `json:"micro_usd"`
	Unpriced   int                  `json:"unpriced_runs"` // runs whose model has no price; micro_usd does not contain them
	Assumed    int                  `json:"assumed_runs"`  // runs whose model has a price that is assumed; micro_usd contains it
}

// Result is what a simulation came to, schema pawl.sim/v1.
type Result struct {
	Schema string    `json:"schema"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Seed   uint64    `json:"seed"`
	Loops  []Tally   `json:"loops"`
	Total  Tally     `json:"total"`
	Queued int       `json:"queued"` // runs that have not begun at the end
	Live   int       `json:"live"`   // runs that have not ended then
}

func (c *Tally) addWait(d time.Duration) {
	c.WaitedMS += d.Milliseconds()
	c.LongestMS = max(c.LongestMS, d.Milliseconds())
}

func (c *Tally) addRun(run loop.Run, microUSD int64, priced, assumed bool) {
	if c.Outcomes == nil {
		c.Outcomes = map[loop.Outcome]int{}
	}
	c.Runs++
	c.Outcomes[run.Outcome]++
	c.Tokens += run.Usage.ChargedTokens()
	c.Output += run.Usage.Output
	c.MicroUSD += microUSD
	if !priced && !run.Usage.Zero() {
		c.Unpriced++
	}
	if assumed && !run.Usage.Zero() {
		c.Assumed++
	}
}

// add adds what another loop came to.
func (c *Tally) add(d Tally) {
	c.Planned += d.Planned
	c.Coalesced += d.Coalesced
	c.Skipped += d.Skipped
	c.Events += d.Events
	c.Runs += d.Runs
	for outcome, n := range d.Outcomes {
		c.Outcomes[outcome] += n
	}
	c.Collisions += d.Collisions
	c.Deferred += d.Deferred
	c.WaitedMS += d.WaitedMS
	c.LongestMS = max(c.LongestMS, d.LongestMS)
	c.Unfunded += d.Unfunded
	c.Tokens += d.Tokens
	c.Output += d.Output
	c.MicroUSD += d.MicroUSD
	c.Unpriced += d.Unpriced
	c.Assumed += d.Assumed
}

// close fills in what follows from the rest.
func (c *Tally) close() {
	if c.Outcomes == nil {
		c.Outcomes = map[loop.Outcome]int{}
	}
	if c.Runs > 0 {
		c.QuietRatio = float64(c.Outcomes[loop.OutcomeQuiet]) / float64(c.Runs)
	}
}

// result reads the ledgers, and adds up.
func (s *simulation) result(ctx context.Context) (Result, error) {
	r := Result{
		Schema: "pawl.sim/v1", From: s.Start.UTC(), To: s.now, Seed: s.Seed, Loops: []Tally{}, Total: Tally{Outcomes: map[loop.Outcome]int{}},
		Queued: len(s.queue), Live: len(s.lives),
	}
	err := s.store.View(ctx, func(rd *store.Reader) error {
		for _, l := range s.order {
			ticks, err := rd.Ticks(ctx, l.row.ID, time.Time{}, mostTicks)
			if err != nil {
				return err
			}
			if s.Times != nil {
				s.Times(l.row.Name, ticks)
			}
			for _, k := range ticks {
				l.counts.Planned += k.N
				switch k.Verdict {
				case loop.TickCoalesced:
					l.counts.Coalesced += k.N
				case loop.TickSkipped:
					l.counts.Skipped += k.N
				case loop.TickRan:
				}
			}
			events, err := rd.LoopEvents(ctx, l.row.ID, mostTicks)
			if err != nil {
				return err
			}
			l.counts.Events = len(events)
		}
		return nil
	})
	for _, l := range s.order {
		l.counts.Drawn = "pattern"
		if len(l.Past) > 0 {
			l.counts.Drawn = "past_runs"
		}
		l.counts.close()
		r.Loops = append(r.Loops, l.counts)
		r.Total.add(l.counts)
	}
	r.Total.close()
	return r, err
}
