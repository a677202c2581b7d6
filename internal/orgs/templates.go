package orgs

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/orgdef"
)

// Names of the files of an agent that are not read for its definition.
const (
	tasksFile     = "TASKS.md"
	contextFile   = "CONTEXT.md"
	heartbeatFile = "HEARTBEAT.md"
	inboxFile     = "INBOX.md"
	identityFile  = "IDENTITY.md"
	soulFile      = "SOUL.md"
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
		file(tasksFile, `
## Active Tasks

## Task Format

- **Step N**: description
  - Status: open | in-progress | blocked | done | failed
  - Priority: critical | high | medium | low
  - Blocked reason: why it cannot go on
  - Retry count: 0
  - Depends on: Step 1, Step 2
  - Result: what came of it

## Completed Tasks
`),
		file(contextFile, "\n## Stack\n\n## Constraints\n\n## Known Pitfalls\n\n## Decision Pipeline\n"),
		file(heartbeatFile, `
## Current Status

- **State**: idle
- **Last Cycle**: —
- **Cycles Today**: 0
- **Steps Completed Today**: 0
- **Steps Blocked Today**: 0
- **Steps Failed Today**: 0

## Loop Configuration

- **Interval**: `+interval+`
- **Max Step Timeout**: 10m

## Cycle Log

| Timestamp | Step | Outcome | Duration | Notes |
|---|---|---|---|---|

## Health Trends
`),
		file(inboxFile, "\n## Pending\n\n## Processed\n"),
		file(identityFile, "\nWho this agent is, for people. It is read for the agent only if `reads` of LOOP.md names it.\n"),
		file(soulFile, "\nHow this agent works, for people. It is read for the agent only if `reads` of LOOP.md names it.\n"),
	}
}
