package budgets

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// PricesFile is the name of a user's own prices in pawl's home. They stand
// before the built-in ones.
const PricesFile = "prices.json"

// maxPrices bounds a file of prices, in bytes.
const maxPrices = 4 << 20

// Prices returns the table that counts: the file, if one is named, and else
// the built-in one with what PricesFile of home puts over it. The error is a
// *loop.Fault with exit status 3 or 4.
func Prices(home, file string) (price.Table, error) {
	if file != "" {
		return readPrices(file, "name another file")
	}
	settings, err := ReadSettings(home)
	if err != nil {
		return price.Table{}, err
	}
	own, err := readPrices(filepath.Join(home, PricesFile), "remove it: the built-in prices count without it")
	if err != nil && !lookup.Absent(err) {
		return price.Table{}, err
	}
	table := price.BuiltIn()
	if err == nil {
		table = own.MergeOver(table)
	}
	table.NoAssumed = settings.Unpriced == UnpricedRefuse
	return table, nil
}

// Pricing says which prices count: those of a file, or of pawl's home.
type Pricing struct {
	Home string    // pawl's own folder
	File string    // instead of pawl's prices; empty: none
	Now  time.Time // changes that were announced for later do not count yet
}

// Load reads the prices of today. The error is that of Prices.
func (p Pricing) Load() (price.Table, error) {
	table, err := Prices(p.Home, p.File)
	return table.OnDay(p.Now.UTC().Format(time.DateOnly)), err
}

// PriceList is the prices that count, schema pawl.pricing/v1.
type PriceList struct {
	Data []price.Model `json:"data"`
	Meta PricesMeta    `json:"meta"`
}

// List lists the prices of the models with these names, found as for a run; of all
// models without a name. A model without a price is a *loop.Fault.
func (p Pricing) List(names ...string) (PriceList, error) {
	table, err := p.Load()
	if err != nil {
		return PriceList{}, err
	}
	list := PriceList{Data: table.Models, Meta: PricesMeta{table.AsOf, table.Source, "pawl.pricing/v1"}}
	if len(names) > 0 {
		list.Data = nil
	}
	for _, name := range names {
		m, ok := table.PriceOf(name)
		if !ok {
			name = strconv.Quote(name)
			return PriceList{}, &loop.Fault{
				Exit: loop.ExitNotFound, What: "price of " + name, Why: "no table has it", Err: loop.ErrNotFound,
				Fix:     `write {"models": {` + name + `: {"input_per_mtok": N, "output_per_mtok": N}}} into a file F, then: {1}`,
				Actions: []loop.Command{loop.PawlCommand("prices update").WithFlag("file", "F").WithBlanks("F")},
			}
		}
		list.Data = append(list.Data, m)
	}
	return list, nil
}

// readPrices reads a file; or is what can be done instead of correcting it.
func readPrices(file, or string) (price.Table, error) {
	fault := func(exit int, why string, err error) error {
		return &loop.Fault{
			Exit: exit, What: "read prices " + file, Why: why, Err: err,
			Fix: `write {"_as_of": "YYYY-MM", "models": {ID: {"input_per_mtok": N, "output_per_mtok": N}}}, or ` + or,
		}
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return price.Table{}, fault(loop.ExitNotFound, "there is no such file", errors.Join(loop.ErrNotFound, err))
	case err != nil:
		return price.Table{}, fault(loop.ExitUnreadable, err.Error(), err)
	case !info.Mode().IsRegular():
		return price.Table{}, fault(loop.ExitUnreadable, "it is not a regular file", nil)
	case info.Size() > maxPrices:
		return price.Table{}, fault(loop.ExitUnreadable, fmt.Sprintf("it has more than %d bytes", maxPrices), nil)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return price.Table{}, fault(loop.ExitUnreadable, err.Error(), err)
	}
	table, err := price.Parse(file, data)
	if err != nil {
		return table, fault(loop.ExitUnreadable, strings.TrimPrefix(err.Error(), "prices "+file+": "), err)
	}
	return table, nil
}

// PricesUpdate is what UpdatePrices did, schema pawl.prices-update/v1.
type PricesUpdate struct {
	Schema   string `json:"schema"`
	Added    int    `json:"added"`    // models that are new
	Replaced int    `json:"replaced"` // models that had a price
	File     string `json:"file"`     // that has the prices now
}

// UpdatePrices puts the prices of a file over those that the user has in home: a
// model of the same name is replaced, others are added, and what the file does not
// have stays. Nothing is written if either file cannot be read. The error is a
// *loop.Fault with exit status 3 or 4.
func UpdatePrices(home, file string) (PricesUpdate, error) {
	u := PricesUpdate{Schema: "pawl.prices-update/v1", File: filepath.Join(home, PricesFile)}
	old, err := readPrices(u.File, "remove it, and update again")
	if err != nil && !lookup.Absent(err) {
		return u, err
	}
	fresh, err := readPrices(file, "name another file")
	if err != nil {
		return u, err
	}
	for _, m := range fresh.Models {
		if _, had := old.FindID(m.ID); had {
			u.Replaced++
		} else {
			u.Added++
		}
	}
	table := fresh.MergeOver(old)
	table.Notice = cmp.Or(fresh.Notice, old.Notice)
	if err := os.MkdirAll(filepath.Dir(u.File), 0o700); err != nil {
		return u, err
	}
	return u, durable.ReplaceFile(u.File, table.JSON(), 0o600)
}
