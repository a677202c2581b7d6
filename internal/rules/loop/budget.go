package loop

import (
	"slices"
	"time"
)

// Amount is how much was used, or may be used. In a cap, zero means no cap.
type Amount struct {
	Tokens     int64         `json:"tokens,omitempty"`    // input, cache writes and output
	Output     int64         `json:"output,omitempty"`    // output tokens alone
	MicroUSD   int64         `json:"micro_usd,omitempty"` // millionths of a US dollar
	Wall       time.Duration `json:"wall,omitempty"`      // agent time only; gates and waiting are not counted
	Iterations int64         `json:"iterations,omitempty"`
	Items      int64         `json:"items,omitempty"`
}

// Add returns the sum of both amounts. A number that would overflow is the largest
// one.
func (a Amount) Add(b Amount) Amount {
	return Amount{
		Tokens: addCounts(a.Tokens, b.Tokens), Output: addCounts(a.Output, b.Output), MicroUSD: addCounts(a.MicroUSD, b.MicroUSD),
		Wall:       time.Duration(addCounts(int64(a.Wall), int64(b.Wall))),
		Iterations: addCounts(a.Iterations, b.Iterations), Items: addCounts(a.Items, b.Items),
	}
}

// Zero reports whether all numbers of a are zero.
func (a Amount) Zero() bool { return a == Amount{} }

// BudgetScope says whose spending a budget bounds.
type BudgetScope struct {
	Kind string `json:"kind"` // one of the Budget constants
	ID   string `json:"id"`   // of the loop or the workspace, or the name of the agent; empty for all
}

// Kinds of scopes, from the narrowest to the widest.
const (
	BudgetLoop      = "loop"
	BudgetAgent     = "agent"
	BudgetWorkspace = "workspace"
	BudgetAll       = "all"
)

// BudgetWindow is the time over which spending is added up.
type BudgetWindow string

// The windows. Days and months are those of UTC.
const (
	WindowRun   BudgetWindow = "run"
	WindowDay   BudgetWindow = "day"
	WindowMonth BudgetWindow = "month"
)

// Start returns when the window that contains now began. For a run it is the zero
// time: its window does not depend on the clock.
func (w BudgetWindow) Start(now time.Time) time.Time {
	y, m, d := now.UTC().Date()
	switch w {
	case WindowDay:
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	case WindowMonth:
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	case WindowRun:
	}
	return time.Time{}
}

// End returns when the next window opens. For a run it is the zero time.
func (w BudgetWindow) End(now time.Time) time.Time {
	switch w {
	case WindowDay:
		return w.Start(now).AddDate(0, 0, 1)
	case WindowMonth:
		return w.Start(now).AddDate(0, 1, 0)
	case WindowRun:
	}
	return time.Time{}
}

// Budget caps what a scope may spend in each window.
type Budget struct {
	Scope  BudgetScope  `json:"scope"`
	Window BudgetWindow `json:"window"`
	Cap    Amount       `json:"cap"`
	By     string       `json:"by,omitempty"` // who set it; "definition" for the caps of the definition
	Set    time.Time    `json:"set,omitzero"`
}

// Shortage says why a budget does not fund a request: which of its caps is too low,
// how much of it is left and when the next window opens.
type Shortage struct {
	Budget Budget    `json:"budget"`
	What   string    `json:"what"` // tokens output micro_usd wall iterations items
	Cap    int64     `json:"cap"`  // in the unit of What; wall in nanoseconds
	Left   int64     `json:"left"`
	Need   int64     `json:"need"`
	Opens  time.Time `json:"opens,omitzero"` // zero: it does not open by itself
}

// Standing is a budget with what its current window has used and reserved.
type Standing struct {
	Budget   Budget    `json:"budget"`
	Used     Amount    `json:"used"`
	Reserved Amount    `json:"reserved"` // by runs that have not been settled
	Opens    time.Time `json:"opens,omitzero"`
}

// Cost is what a run or a turn cost, with the prices that were used. The zero Cost
// means that no model was used.
type Cost struct {
	MicroUSD int64        `json:"micro_usd"`
	Unpriced []string     `json:"unpriced,omitempty"` // models without a price; MicroUSD does not contain their cost
	Prices   []ModelPrice `json:"prices,omitempty"`
	AsOf     string       `json:"as_of,omitempty"` // date of the table
}

// Assumed lists the models whose price is assumed.
func (c Cost) Assumed() (models []string) {
	for _, p := range c.Prices {
		if p.Assumed != "" && !slices.Contains(models, p.Model) {
			models = append(models, p.Model)
		}
	}
	return models
}

// Add returns the sum of both costs, with all prices that were used.
func (c Cost) Add(d Cost) Cost {
	sum := Cost{MicroUSD: addCounts(c.MicroUSD, d.MicroUSD), Unpriced: slices.Clone(c.Unpriced), Prices: slices.Clone(c.Prices), AsOf: c.AsOf}
	if d.AsOf != "" {
		sum.AsOf = d.AsOf
	}
	for _, m := range d.Unpriced {
		if !slices.Contains(sum.Unpriced, m) {
			sum.Unpriced = append(sum.Unpriced, m)
		}
	}
	for _, p := range d.Prices {
		if !slices.Contains(sum.Prices, p) {
			sum.Prices = append(sum.Prices, p)
		}
	}
	return sum
}

// ModelPrice is a price that was used: tokens in US dollars per million, searches
// per thousand. Calls with long input may have had the higher prices of the table.
type ModelPrice struct {
	Model        string  `json:"model"`
	Input        float64 `json:"input_per_mtok"`
	Output       float64 `json:"output_per_mtok"`
	CacheRead    float64 `json:"cache_read_per_mtok,omitempty"`
	CacheWrite5m float64 `json:"cache_write_5m_per_mtok,omitempty"`
	CacheWrite1h float64 `json:"cache_write_1h_per_mtok,omitempty"`
	WebSearch    float64 `json:"web_search_per_1000,omitempty"`
	FileSearch   float64 `json:"file_search_per_1000,omitempty"`
	Assumed      string  `json:"assumed,omitempty"` // the family of which the price is assumed, because the model has none
}

// Hold keeps runs of a subject from starting until a time: an account that is
// limited, or a loop that cools off after errors.
type Hold struct {
	Subject string    `json:"subject"` // account:… or loop:…
	Until   time.Time `json:"until,omitzero"`
	Reason  Reason    `json:"reason,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	Errors  int64     `json:"errors"` // in a row, without a successful turn between them
	Updated time.Time `json:"updated,omitzero"`
}
