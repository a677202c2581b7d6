package stopline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/stopline"
)

func TestEachStopLineWarnsAndThenHalts(t *testing.T) {
	fine := stopline.Counters{Iterations: 49, Errors: 2, Minutes: 29.9, Confidence: new(0.7)}
	for name, c := range map[string]struct {
		change func(*stopline.Counters)
		want   []string
	}{
		"nothing":             {func(*stopline.Counters) {}, nil},
		"no confidence":       {func(c *stopline.Counters) { c.Confidence = nil }, nil},
		"iterations warn":     {func(c *stopline.Counters) { c.Iterations = 50 }, []string{"stop_line_warning: iterations 50, warning at 50"}},
		"iterations halt":     {func(c *stopline.Counters) { c.Iterations = 100 }, []string{"stop_line: iterations 100, critical at 100"}},
		"errors warn":         {func(c *stopline.Counters) { c.Errors = 4 }, []string{"stop_line_warning: errors 4, warning at 3"}},
		"errors halt":         {func(c *stopline.Counters) { c.Errors = 5 }, []string{"stop_line: errors 5, critical at 5"}},
		"minutes warn":        {func(c *stopline.Counters) { c.Minutes = 30.25 }, []string{"stop_line_warning: minutes 30.25, warning at 30"}},
		"minutes halt":        {func(c *stopline.Counters) { c.Minutes = 60 }, []string{"stop_line: minutes 60, critical at 60"}},
		"confidence warns":    {func(c *stopline.Counters) { c.Confidence = new(0.5) }, []string{"stop_line_warning: confidence 0.5, warning below 0.7"}},
		"confidence halts":    {func(c *stopline.Counters) { c.Confidence = new(0.0) }, []string{"stop_line: confidence 0, critical below 0.5"}},
		"what halts is first": {func(c *stopline.Counters) { c.Iterations, c.Errors = 60, 7 }, []string{"stop_line: errors 7, critical at 5", "stop_line_warning: iterations 60, warning at 50"}},
	} {
		t.Run(name, func(t *testing.T) {
			counters := fine
			c.change(&counters)
			var got []string
			for _, crossed := range stopline.Judge(stopline.Defaults(), counters) {
				got = append(got, string(crossed.Reason())+": "+crossed.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
