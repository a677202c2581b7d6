// Package orgtree is an organisation of eleven agents with task files, in the shapes of real
// trees: manifests, placeholder rows, CRLF, a byte order mark, lines that no format knows.
package orgtree

import (
	"fmt"
	"strings"
)

// Agents is how many agents there are.
const Agents = 11

// Files are an organisation of eleven agents as they are found in real trees, by their paths.
func Files() map[string]string {
	departments := []struct {
		name, lead string
		members    []string
	}{
		{"engineering", "atlas", []string{"forge", "pixel", "trace"}},
		{"research", "scout", []string{"quill", "delta"}},
		{"content", "muse", []string{"ink", "lens"}},
	}
	var b strings.Builder
	b.WriteString("schema: org-manifest/v2\norg:\n  hierarchy:\n    chief:\n      agent: jarvis\n  departments:\n")
	files := map[string]string{}
	add := func(id, tier, department, superior string) {
		files["agents/"+id+"/MANIFEST.yaml"] = fmt.Sprintf("agent:\n  id: %s\n  name: %s\n  tier: %s\n  role: works as %s\n  department: %s\n  reports_to: %s\nloop:\n  enabled: true\n  interval: 15m\n  max_step_timeout: 10m\n  on_blocked: log_and_skip\n  on_failure: log_skip_continue\n  retry_blocked_after: 3\n  reads: [TASKS.md, CONTEXT.md, HEARTBEAT.md]\n  writes: [TASKS.md, HEARTBEAT.md]\n  escalation: jarvis\n  cycle_log: true\n", id, strings.ToUpper(id), tier, id, department, superior)
		files["agents/"+id+"/TASKS.md"] = "# Tasks\r\n\r\n## Active Tasks\r\n\r\n## Task Format\r\n\r\n- **Step N**: description\r\n  - Status: open\r\n\r\n## Completed Tasks\r\n"
		files["agents/"+id+"/HEARTBEAT.md"] = "# Heartbeat\n\n## Cycle Log\n\n| Timestamp | Step | Outcome | Duration | Notes |\n|---|---|---|---|---|\n| _awaiting first cycle_ | — | — | — | — |\n"
		files["agents/"+id+"/INBOX.md"] = "\ufeff# Inbox\n\n## Pending\n\n### [2026-05-04T10:00:00Z] From: jarvis | Priority: high\n\nLook at it.\nTask-ID: T-1\n\n## Processed\n"
		for _, name := range []string{"CONTEXT", "IDENTITY", "SOUL"} {
			files["agents/"+id+"/"+name+".md"] = "# " + name + "\n"
		}
	}
	add("jarvis", "1", "command", "owner")
	for _, d := range departments {
		fmt.Fprintf(&b, "    %s:\n      lead: %s\n      members: [%s]\n", d.name, d.lead, strings.Join(d.members, ", "))
		add(d.lead, "2", d.name, "jarvis")
		for _, id := range d.members {
			add(id, "2", d.name, d.lead)
		}
	}
	b.WriteString("coordination:\n  escalation_chain: [department_lead, chief, owner]\n  task_routing:\n    code: forge\n    research: quill\nloop:\n  intervals: {chief: 5m, lead: 10m, member: 15m}\n  resilience: {max_retries_per_step: 3}\n")
	files["manifest.yaml"] = b.String()
	return files
}
