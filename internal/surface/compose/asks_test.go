package compose

import (
	"os"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/price"
)

// A loop with a budget in dollars and no model has to run with each driver: the
// program of one asked a model without a price, and the README's own example rested.
func TestWhatADriverAsksByItselfHasAPrice(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/budgets.md")
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, p := range Profiles() {
		for provider, model := range p.Asks {
			known++
			_, priced := price.BuiltIn().PriceOf(model)
			// What it puts out is not only text, which the table has no price for.
			if unpriced := p.Name == "opencode" && provider == "gemini"; priced == unpriced {
				t.Errorf("%s asks %s of %s, which has a price: %v", p.Name, model, provider, priced)
			}
			if !strings.Contains(string(doc), "`"+model+"`") {
				t.Errorf("docs/budgets.md does not say that %s asks %s", p.Name, model)
			}
		}
	}
	if known < 7 {
		t.Errorf("of %d models is known that a program asks them by itself", known)
	}
}
