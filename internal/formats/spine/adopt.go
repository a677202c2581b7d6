package spine

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// adoptReport puts the report of an agent into the lists. Lists that the report does
// not have stay as they are. If it has none, its findings go to Watch.
func (s *session) adoptReport(it loop.Iteration) {
	if it.Words != "" {
		s.keepWords(it.Words)
		return
	}
	r, err := report.Parse([]byte(it.Report))
	if err != nil {
		return // The iteration failed for this reason already.
	}
	if r.State == nil {
		for _, finding := range r.Items {
			s.state.Add(SectionWatch, 0, finding)
		}
		return
	}
	lists := [][]string{r.State.Priority, r.State.Watch, r.State.Noise}
	for i, section := range sections {
		if lists[i] != nil {
			continue
		}
		for _, item := range s.state.Items(section) {
			lists[i] = append(lists[i], listEntry(item))
		}
	}
	s.state.ReplaceLists(lists[0], lists[1], lists[2])
}

// listEntry is an item as an entry of a list, after its priority.
func listEntry(it Item) string {
	if it.Priority == 0 {
		return it.Text
	}
	return "[P" + string(rune('0'+it.Priority)) + "] " + it.Text
}

// keepWords puts the last words of a turn without a report into Watch, where a human
// finds them, and removes those of an earlier run.
func (s *session) keepWords(words string) {
	said, sensed, _ := strings.Cut(words, "\n"+loop.SensedMark)
	for _, it := range s.state.Items(SectionWatch) {
		if strings.HasPrefix(it.Text, loop.WordsMark) || strings.HasPrefix(it.Text, loop.SensedMark) {
			s.state.Remove(it.Key)
		}
	}
	s.state.Add(SectionWatch, 0, said)
	if sensed != "" {
		s.state.Add(SectionWatch, 0, loop.SensedMark+sensed)
	}
}
