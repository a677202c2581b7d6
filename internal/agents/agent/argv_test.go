//go:build unix

package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

func TestArgumentsReachTheProgramAsTheyAre(t *testing.T) {
	hostile := []string{"--plain", "two words", `"$(echo no)"; echo no`, "", "a\nb", "'", "-"}
	want := strings.Join(hostile, "|") + "|"
	for name, c := range map[string]struct {
		command string
		want    string
	}{
		"without a command":                    {"", want},
		"behind a command":                     {`printf '%s|'`, want},
		"behind a command that has its own":    {`printf '%s|' 'of its own'`, "of its own|" + want},
		"behind a command that sets variables": {`env A=1 printf '%s|'`, want},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			args := hostile
			if c.command == "" {
				args = append([]string{"%s|"}, hostile...)
			}
			_, err := proc.Plain{}.Run(t.Context(), proc.Spec{
				Argv: agent.CommandLine(agent.Request{Command: c.command}, "printf", args...), Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
				Stdout: &out, Timeout: time.Minute,
			})
			if err != nil || out.String() != c.want {
				t.Errorf("the program got %q, %v; want %q", out.String(), err, c.want)
			}
		})
	}
}
