package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/price"
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
	own, err := readPrices(filepath.Join(home, PricesFile), "remove it: the built-in prices count without it")
	if absent(err) {
		return price.BuiltIn(), nil
	}
	if err != nil {
		return price.Table{}, err
	}
	return own.Over(price.BuiltIn()), nil
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
