package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestATryThatFailedLeavesTheNextOneNeitherReportNorLinks(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	outside := filepath.Join(t.TempDir(), "outside")
	tries := 0
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		var report, prompt string
		for _, kv := range req.Env {
			if v, ok := strings.CutPrefix(kv, "PAWL_REPORT="); ok {
				report = v
			}
			if v, ok := strings.CutPrefix(kv, "PAWL_PROMPT="); ok {
				prompt = v
			}
		}
		if tries++; tries > 1 {
			if _, err := os.Stat(report); err == nil {
				t.Error("the report of the first try is there")
			}
			return agent.Result{Ended: proc.Exited, Claims: true, Message: "nothing", Usage: loop.Usage{Input: 1, Source: loop.UsageReported}}, nil
		}
		for _, err := range []error{
			os.WriteFile(report, []byte(`{"outcome":"escalate","reason":"of the first try"}`), 0o600), os.Remove(prompt), os.Symlink(outside, prompt),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		return agent.Result{
			Ended: proc.Exited, Claims: true, Usage: loop.Usage{Input: 1, Source: loop.UsageReported},
			Failure: &loop.Failure{Class: loop.FailureOverflow, Text: "too long"},
		}, nil
	}
	def := until("grep -q two src/a.txt", "u", []string{"src/**"})
	def.MaxIterations = 1
	run := r.run(r.target("u", pinned{}, def), engine.Firing{})
	if tries != 2 || run.Outcome == loop.OutcomeEscalated {
		t.Errorf("after %d tries the run ended %s: %s", tries, run.Outcome, run.Detail)
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("the prompt was written through a link")
	}
}
