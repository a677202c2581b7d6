package budgets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// SettingsFile is the name of a user's settings in pawl's home.
const SettingsFile = "settings.yaml"

// What Unpriced may be.
const (
	UnpricedAssume = "assume" // a model of a known family takes a price that is assumed
	UnpricedRefuse = "refuse" // it has no price, like any other
)

// Settings are those of SettingsFile. The zero Settings are those without a file.
type Settings struct {
	Unpriced string // empty: UnpricedAssume
}

var unpricedValues = []string{UnpricedAssume, UnpricedRefuse}

// ReadSettings reads the settings of a home; without a file they are the zero Settings. The
// error is a *loop.Fault with exit status 4.
func ReadSettings(home string) (s Settings, err error) {
	file := filepath.Join(home, SettingsFile)
	fault := func(why, fix string) error {
		return &loop.Fault{Exit: loop.ExitUnreadable, What: "read the settings " + file, Why: why, Fix: fix}
	}
	_, err = os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	doc, _, err := definition.Load(file)
	if err != nil {
		return s, err
	}
	for _, key := range doc.Keys() {
		if key.Name != "unpriced" {
			if near := readiness.Misspelt(key.Name, []string{"unpriced"}); near != "" {
				return s, fault(fmt.Sprintf("line %d: %s is not a key", key.Line, readiness.Quote(key.Name)), "did you mean "+near+"?")
			}
			continue
		}
		at, _ := doc.Scalar(key.Name)
		if s.Unpriced = at.Text; !slices.Contains(unpricedValues, s.Unpriced) {
			return s, fault(fmt.Sprintf("line %d: unpriced is %s", at.Line, readiness.Quote(at.Text)), "write one of: "+strings.Join(unpricedValues, ", "))
		}
	}
	return s, nil
}
