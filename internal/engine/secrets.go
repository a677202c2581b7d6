package engine

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/redact"
)

// hide takes known secrets and what is shaped like one out of a text that will
// be stored or shown.
func (e *Engine) hide(text string) string {
	if text == "" {
		return text
	}
	return e.secrets().String(text)
}

// leaks names each secret that a change adds: the file, the line and the name,
// never the value. What stood in the file before is not the agent's doing.
func leaks(secrets *redact.Redactor, changes []policy.Change) []string {
	var list []string
	for _, c := range changes {
		if c.New.Text == "" {
			continue
		}
		before := map[string]int{}
		for _, f := range secrets.Find([]byte(c.Old.Text)) {
			before[f.Name]++
		}
		for _, f := range secrets.Find([]byte(c.New.Text)) {
			if before[f.Name]--; before[f.Name] < 0 {
				list = append(list, fmt.Sprintf("%s: line %d holds a secret (%s)", c.Path, f.Line, f.Name))
			}
		}
	}
	return list
}
