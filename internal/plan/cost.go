package plan

import (
	"slices"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/price"
)

// Cost prices what models were used for by the table. It returns the list with
// MicroUSD and Priced of each model filled in, and the sum with the prices that
// it is made of. A model without a price is named and costs nothing here: the
// caller must not take that for free. Neither argument changes.
func Cost(models []loop.ModelUsage, t price.Table) ([]loop.ModelUsage, loop.Cost) {
	models = slices.Clone(models)
	cost := loop.Cost{AsOf: t.AsOf}
	for i, m := range models {
		p, ok := t.Find(m.Model)
		if !ok {
			models[i].MicroUSD, models[i].Priced = 0, false
			if !m.Zero() && !slices.Contains(cost.Unpriced, m.Model) {
				cost.Unpriced = append(cost.Unpriced, m.Model)
			}
			continue
		}
		models[i].MicroUSD, models[i].Priced = p.Cost(priced(m.Usage)), true
		sum := loop.Amount{MicroUSD: cost.MicroUSD}.Add(loop.Amount{MicroUSD: models[i].MicroUSD})
		cost.MicroUSD = sum.MicroUSD
		used := loop.ModelPrice{Model: p.ID, Input: p.Input, Output: p.Output}
		if !slices.Contains(cost.Prices, used) {
			cost.Prices = append(cost.Prices, used)
		}
	}
	if len(models) == 0 {
		return models, loop.Cost{}
	}
	return models, cost
}

// priced takes the writes to a cache apart by how long they are kept, because
// they cost differently. A long part that is more than the whole is believed:
// it is the dearer one.
func priced(u loop.Usage) price.Usage {
	return price.Usage{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead,
		CacheWrite5m: max(0, u.CacheWrite-u.CacheWrite1h), CacheWrite1h: u.CacheWrite1h,
	}
}
