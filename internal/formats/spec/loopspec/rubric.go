package loopspec

import (
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Rubric is what reviewers judge by.
type Rubric struct {
	ID        string   `json:"id"`
	Criteria  []string `json:"criteria"`
	UpdatedAt int64    `json:"updatedAt"` // Unix milliseconds
}

// SeedRubric returns the rubric of a spec before its first judgement: the checks of its
// reviewer gates.
func SeedRubric(gates []loop.Gate, id string, now time.Time) Rubric {
	r := Rubric{ID: id, Criteria: []string{}, UpdatedAt: now.UnixMilli()}
	for _, g := range gates {
		if check := strings.TrimSpace(g.Check); g.Kind == loop.GateReviewer && check != "" {
			r.Criteria = append(r.Criteria, check)
		}
	}
	return r
}

// flagMark begins a criterion that a human has flagged.
const flagMark = "Human-flagged miss: "

// Refine returns the rubric with what a human says was missed as a criterion, instead of
// those that contain it. An empty flag changes nothing.
func (r Rubric) Refine(flag string, now time.Time) Rubric {
	flag = strings.TrimSpace(flag)
	if flag == "" {
		return r
	}
	r.Criteria = slices.DeleteFunc(slices.Clone(r.Criteria), func(c string) bool {
		return strings.Contains(strings.ToLower(c), strings.ToLower(flag))
	})
	r.Criteria = append(r.Criteria, flagMark+flag)
	r.UpdatedAt = now.UnixMilli()
	return r
}
