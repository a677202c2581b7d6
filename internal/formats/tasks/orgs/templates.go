package orgs

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Names of the files of an agent that are not read for its definition.
const (
	identityFile = "IDENTITY.md"
	soulFile     = "SOUL.md"
)

// newAgent returns the files of an agent that has no work yet.
func newAgent(id, interval, reportsTo string) []NewFile {
	file := func(name, text string) NewFile {
		return NewFile{Path: orgdef.AgentFile(id, name), Text: "# " + id + " — " + strings.TrimSuffix(name, ".md") + "\n" + text}
	}
	return []NewFile{
		{
			Path: orgdef.AgentFile(id, orgdef.LoopFile),
			Text: fmt.Sprintf(`---
primitive: loop-config
enabled: true
interval: %s
max_step_timeout: 10m
on_blocked: log_and_skip
on_failure: log_skip_continue
retry_blocked_after: 3
reads: [TASKS.md, CONTEXT.md, HEARTBEAT.md]
writes: [TASKS.md, HEARTBEAT.md]
cycle_log: true
# scope: ["src/**"]       # what it may change; without it the agent only reports
# verify: go test ./...   # what must pass
# agent: claude           # who works
---
You are %s. You work on one step of TASKS.md at a time, and report to %s.
`, interval, id, cmp.Or(reportsTo, "the owner")),
		},
		{Path: orgdef.AgentFile(id, taskfile.TasksFile), Text: taskfile.NewTasks(id)},
		{Path: orgdef.AgentFile(id, taskfile.ContextFile), Text: taskfile.NewContext(id)},
		{Path: orgdef.AgentFile(id, taskfile.HeartbeatFile), Text: taskfile.NewHeartbeat(id, interval, loop.FormatDuration(loop.DefaultStepTimeout))},
		{Path: orgdef.AgentFile(id, taskfile.InboxFile), Text: taskfile.NewInbox(id)},
		file(identityFile, "\nWho this agent is, for people. It is read for the agent only if `reads` of LOOP.md names it.\n"),
		file(soulFile, "\nHow this agent works, for people. It is read for the agent only if `reads` of LOOP.md names it.\n"),
	}
}
