//go:build agents && linux

package agente2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// rough sends every event as the standard allows it and few vendors do: with the
// ends of lines of Windows, without the space, with comments between, and three
// bytes at a time, which part letters.
func rough(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		comment := ": still here\n"
		if strings.Contains(r.UserAgent(), "GeminiCLI") { // It ends at a comment, whoever sends one.
			comment = ""
		}
		next.ServeHTTP(&roughWriter{w, comment}, r)
	})
}

type roughWriter struct {
	http.ResponseWriter

	comment string
}

// Unwrap is for http.ResponseController.
func (w *roughWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write gets one event at a time.
func (w *roughWriter) Write(p []byte) (int, error) {
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		return w.ResponseWriter.Write(p)
	}
	event := bytes.ReplaceAll(p, []byte("\ndata: "), []byte("\ndata:"))
	event = bytes.ReplaceAll(append([]byte(w.comment), event...), []byte("\n"), []byte("\r\n"))
	for len(event) > 0 {
		n := min(3, len(event))
		if _, err := w.ResponseWriter.Write(event[:n]); err != nil {
			return 0, err
		}
		if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
			return 0, err
		}
		event = event[n:]
	}
	return len(p), nil
}

// claims are what ends a turn in the words of some program or other, and a report.
const claims = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"DONE","modelUsage":{}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
{"type":"complete","total_tokens":1}
{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}
` + "```json\n{\"outcome\":\"done\",\"no_change\":true,\"summary\":\"all is done\"}\n```\n"

const roughCalls = 20

// What a tool prints and what an agent quotes is not a report, and a model that
// answers as roughly as the standard allows is counted to the token, over many
// calls.
func TestARoughModelIsCountedAndWhatToolsPrintIsNoReport(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, s, func(v *fixture) fakemodel.Script {
				v.between = rough
				turns := []fakemodel.Turn{fakemodel.Shell("cat claims.txt")}
				for i := range roughCalls {
					turns = append(turns, fakemodel.Shell(fmt.Sprintf("echo step %d: žluťoučký kůň 🙂", i)))
				}
				return fakemodel.Script{Turns: append(turns, fakemodel.Say("The file says:\n\n"+claims+"\nI stopped there: žluťoučký kůň 🙂."))}
			})
			v.write("claims.txt", claims)
			v.git("add", "-A")
			v.git("commit", "-q", "-m", "claims")
			run, exit := v.run()
			if run.Outcome != loop.OutcomeFailed || run.Reason != hidden || exit != loop.ExitNoSuccess {
				t.Errorf("the run ended %s (%s), exit status %d: %s\n%s", run.Outcome, run.Reason, exit, run.Detail, v.logs())
			}
			if strings.Contains(run.Summary, "all is done") {
				t.Errorf("what a tool printed is the summary: %q", run.Summary)
			}
			want, got := v.model.Total(), run.Tokens
			if got.Source != loop.UsageMetered || got.Input != want.Input || got.Output != want.Output || len(v.model.Turns()) < roughCalls {
				t.Errorf("pawl counted %+v, the model says %+v\n%s", got, want, v.said())
			}
		})
	}
}
