package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/price"
	"github.com/pawl-run/pawl/internal/readiness"
	"github.com/pawl-run/pawl/internal/turn"
)

// UpdatePrices puts the prices of a file over those that the user has in home: a
// model of the same name is replaced, others are added, and what the file does not
// have stays. It returns how many models are new and how many were replaced.
// Nothing is written if either file cannot be read. The error is a *loop.Fault with
// exit status 3 or 4.
func UpdatePrices(home, file string) (added, replaced int, err error) {
	own := filepath.Join(home, PricesFile)
	old, err := readPrices(own, "remove it, and update again")
	if err != nil && !absent(err) {
		return 0, 0, err
	}
	fresh, err := readPrices(file, "name another file")
	if err != nil {
		return 0, 0, err
	}
	for _, m := range fresh.Models {
		if _, had := old.Model(m.ID); had {
			replaced++
			continue
		}
		added++
	}
	table := fresh.Over(old)
	table.Notice = cmp.Or(fresh.Notice, old.Notice)
	return added, replaced, replaceFile(own, table.JSON())
}

// replaceFile writes a file so that whoever reads it sees the old one or the new.
func replaceFile(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(file), ".prices-*")
	if err != nil {
		return err
	}
	_, err = next.Write(data)
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}

// Asked is the model that the agent of a definition asks: the one that is named,
// else the one that its program asks by itself. Empty: nobody knows before it runs.
func (d Doctor) Asked(ctx context.Context, def loop.Definition) string {
	who, err := d.actor(ctx, def)
	if err != nil {
		return def.Model
	}
	return turn.Actor{Agent: who, Profile: d.profile(who.Driver)}.Asked("")
}

// price adds the row of what the loop's model costs.
func (d Doctor) price(ctx context.Context, c Checked, add adder) {
	def := c.Definition
	table, err := Prices(d.Home, "")
	if err != nil {
		f := faultIn(err)
		add(readiness.StateBad, "price", f.Why, f.Fix, f.Actions...)
		return
	}
	model := d.Asked(ctx, def)
	if m, ok := table.Find(model); ok {
		add(readiness.StateOK, "price", fmt.Sprintf("%s: %g USD for a million tokens of input, %g of output, as of %s", model, m.Input, m.Output, table.AsOf), "")
		return
	}
	switch capped := d.moneyCap(ctx, c); {
	case model == "" && capped != "":
		add(readiness.StateWarn, "price", "which model the agent asks is known when it does; one without a price is refused, because "+capped, "write model: NAME")
	case capped != "":
		add(readiness.StateBad, "price", unpriced(capped, model), unpricedFix, PriceUpdate)
	case model != "":
		add(readiness.StateWarn, "price", model+" has no price: what a run costs will be unknown", "{1} adds one", PriceUpdate)
	}
}

// PriceUpdate is the command that adds the price of a model.
var PriceUpdate = loop.Pawl("prices update").With("file", "F").Blank("F")

const unpricedFix = "{1} adds a price (0 is one, for a model of your own); model: NAME asks another model; budget_tokens_day caps tokens instead"

func unpriced(capped, model string) string {
	return fmt.Sprintf("%s and the model %q has no price: a run would end as budget before its agent starts", capped, model)
}

// moneyCap says which budget has a cap in money; empty if none has.
func (d Doctor) moneyCap(ctx context.Context, c Checked) string {
	if c.Definition.BudgetUSDDay > 0 {
		return ownCap
	}
	if d.Service == nil {
		return ""
	}
	rows, err := d.Service.Budgets(ctx, BudgetTarget{Loop: c.Name})
	if err != nil {
		return "" // What keeps a store from being read is a row of its own.
	}
	for _, r := range rows {
		if r.What == "micro_usd" {
			return "the budget of " + r.Whose() + " has a cap in money"
		}
	}
	return ""
}

const ownCap = "budget_usd_day is set"

// Price adds what the prices say about the model that the loop's agent asks: a cap
// in money on what has no price is an error that a run meets.
func (c *Checked) Price(model string, t price.Table) {
	if _, ok := t.Find(model); ok || model == "" || c.Definition.BudgetUSDDay == 0 {
		return
	}
	c.More = append(c.More, readiness.Finding{
		Kind: readiness.KindNote, Severity: readiness.SeverityError, Key: "budget_usd_day",
		Message: unpriced(ownCap, model) + "; " + loop.Advise(unpricedFix, PriceUpdate).String(), Line: max(c.capped.Line, 1), Column: max(c.capped.Column, 1),
	})
}
