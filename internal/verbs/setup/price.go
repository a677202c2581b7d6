package setup

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
)

// AskedModel returns the model that the agent of a definition uses: the one that is
// named, else the default of its program. It is empty if it is unknown before a run.
func (d Doctor) AskedModel(ctx context.Context, def loop.Definition) string {
	who, err := d.loopActor(ctx, def)
	if err != nil {
		return def.Model
	}
	return turn.Actor{Agent: who, Profile: d.driverProfile(who.Driver)}.UsedModel("")
}

// EstimatedLoop is what is known of a loop before its next run, without what its runs used.
func (d Doctor) EstimatedLoop(ctx context.Context, c loops.Checked) budgets.EstimatedLoop {
	return budgets.EstimatedLoop{Name: c.Name, Pattern: c.Config.Pattern.Text, Cadence: c.Config.Cadence.Text, Model: d.AskedModel(ctx, c.Definition)}
}

// checkPrice adds the row of the price of the loop's model.
func (d Doctor) checkPrice(ctx context.Context, c loops.Checked, add adder) {
	def := c.Definition
	table, err := budgets.Prices(d.Home, "")
	if err != nil {
		f := faultIn(err)
		add(readiness.StateBad, "price", f.Why, f.Fix, f.Actions...)
		return
	}
	model := d.AskedModel(ctx, def)
	m, ok := table.PriceOf(model)
	switch {
	case ok && m.Assumed != "":
		add(readiness.StateWarn, "price", loops.AssumedSentence(m), loops.AssumedFix.Text, loops.AssumedFix.Actions...)
		return
	case ok:
		add(readiness.StateOK, "price", fmt.Sprintf("%s: %g USD for a million tokens of input, %g of output, as of %s", model, m.Input, m.Output, table.AsOf), "")
		return
	}
	switch capped := d.moneyCap(ctx, c); {
	case model == "" && capped != "":
		add(readiness.StateWarn, "price", "which model the agent asks is known when it does; one without a price is refused, because "+capped, "write model: NAME")
	case capped != "":
		add(readiness.StateBad, "price", loops.UnpricedSentence(capped, model), loops.UnpricedFix.Text, loops.UnpricedFix.Actions...)
	case model != "":
		add(readiness.StateWarn, "price", model+" has no price: what a run costs will be unknown", "{1} adds one", loops.AddPrice)
	}
}

// moneyCap names a budget with a cap in money; empty if no budget has one.
func (d Doctor) moneyCap(ctx context.Context, c loops.Checked) string {
	if c.Definition.BudgetUSDDay > 0 {
		return loops.OwnCap
	}
	if d.Service == nil {
		return ""
	}
	rows, err := d.Service.budgets(ctx, budgets.Target{Loop: c.Name})
	if err != nil {
		return "" // Another row says that the store cannot be read.
	}
	for _, r := range rows {
		if r.What == "micro_usd" {
			return "the budget of " + r.Whose() + " has a cap in money"
		}
	}
	return ""
}
