package pattern

// usualBudget is the output tokens that one run of most patterns may use.
const usualBudget = 200_000

// usualPriority is that of all patterns but those with an order of their own: what keeps
// everybody waiting goes first, and the daily scan yields to all.
const usualPriority = 25

var catalogue = []Pattern{
	{
		Name: "daily-scan", Triggers: []string{"cadence"}, Locus: "local", Tiers: []string{"L1"},
		Does:       "Sweeps backlog and alerts into STATE; everything goes to a human.",
		Goal:       "Sweep the backlog, open alerts and recent changes into STATE.md once a day; never change code, close issues or message anyone.",
		Escalation: "every finding that needs a decision, anything about security, secrets or production",
		Scope:      "src/**", Budget: usualBudget, Tokens: Tokens{Input: 40_000, Output: 6_000, Subagents: 1}, Priority: 10,
	},
	{
		Name: "pr-watch", Triggers: []string{"event", "cadence"}, Locus: "connector", Tiers: []string{"L1"},
		Does:       "Flags pull requests that are stuck, failing or in conflict; never merges.",
		Goal:       "Flag pull requests that are stuck, failing or in conflict and say whose turn it is; never merge, close, approve or push.",
		Escalation: "every merge, every conflict that needs a choice, a pull request whose author does not answer",
		Scope:      "src/**", Budget: usualBudget, Tokens: Tokens{Input: 15_000, Output: 3_000, Subagents: 1}, Priority: 40,
	},
	{
		Name: "ci-watch", Triggers: []string{"event"}, Locus: "local", Tiers: []string{"L2"},
		Does:       "Detects red CI, classifies it, and from L2 on proposes a fix; flaky or infrastructure failures and all that is near deploy or secrets go to a human.",
		Goal:       "Detect red CI, classify the failure and from L2 on propose the smallest fix; never touch tests, CI configuration, deploys or secrets.",
		Escalation: "flaky tests, infrastructure failures, anything near deploy or secrets, a fix that needs a changed test",
		Scope:      "src/**", Verify: "npm test", Guard: "npm run typecheck", Sense: "gates", Budget: usualBudget, Tokens: Tokens{Input: 60_000, Output: 12_000, Subagents: 2}, Priority: 50,
	},
	{
		Name: "dep-bump", Triggers: []string{"cadence"}, Locus: "local", Tiers: []string{"L2"},
		Does:       "Bumps patch versions behind a cooldown; minor, major and advisories go to a human.",
		Goal:       "Bump dependencies by patch versions that are at least a week old; never bump a minor or major version or change code.",
		Escalation: "minor and major versions, security advisories, a bump that fails the guard",
		Scope:      "package.json", Verify: "npm test", Guard: "npm run build && npm test", Budget: usualBudget, Tokens: Tokens{Input: 30_000, Output: 8_000, Subagents: 1}, Priority: 30,
	},
	{
		Name: "changelog-gen", Triggers: []string{"event", "cadence"}, Locus: "local", Tiers: []string{"L1"},
		Does:       "Drafts release notes from what was merged; never publishes.",
		Goal:       "Draft release notes from what was merged since the last tag; never publish, tag or edit released sections.",
		Escalation: "publishing, breaking changes without a migration note, commits that it cannot classify",
		Scope:      "CHANGELOG.md", Budget: usualBudget, Tokens: Tokens{Input: 25_000, Output: 9_000, Subagents: 1}, Priority: 20,
	},
	{
		Name: "merge-hygiene", Triggers: []string{"cadence"}, Locus: "local", Tiers: []string{"L1"},
		Does:       "Finds dead branches and stale flags; never deletes unmerged work.",
		Goal:       "Find merged branches, stale feature flags and leftovers and list them; never delete unmerged work or rewrite history.",
		Escalation: "every deletion, branches with unmerged commits, flags that are still read somewhere",
		Scope:      "src/**", Budget: usualBudget, Tokens: Tokens{Input: 20_000, Output: 4_000, Subagents: 1}, Priority: 20,
	},
	{
		Name: "issue-sort", Triggers: []string{"cadence", "event"}, Locus: "connector", Tiers: []string{"L1"},
		Does:       "Suggests labels for new issues; never closes one or sets its priority.",
		Goal:       "Suggest labels and duplicates for new issues; never close an issue, set a priority or answer a person.",
		Escalation: "security reports, angry or legal text, an issue that fits no label",
		Scope:      "src/**", Budget: usualBudget, Tokens: Tokens{Input: 18_000, Output: 4_000, Subagents: 1}, Priority: usualPriority,
	},
	{
		Name: "metric-chase", Triggers: []string{"goal"}, Locus: "local", Tiers: []string{"L2"},
		Does:       "Drives a number to a target, keeps gains and discards regressions.",
		Goal:       "Drive the measured number to its target one change at a time, keep gains and discard regressions; never weaken the measurement.",
		Escalation: "a gain that costs another metric, a change of the measurement, no gain in three tries",
		Scope:      "src/**", Verify: "npm test -- --coverage", Guard: "npm run typecheck", Budget: 2 * usualBudget, Tokens: Tokens{Input: 50_000, Output: 20_000, Subagents: 3}, Priority: usualPriority,
	},
	{
		Name: "regression-watch", Triggers: []string{"cadence", "event"}, Locus: "local", Tiers: []string{"L1"},
		Does:       "Compares a benchmark with its baseline; one red run is advisory.",
		Goal:       "Compare the benchmark with its baseline and report what moved; never change code or move the baseline.",
		Escalation: "a regression seen in two runs, a benchmark that no longer runs, a new baseline",
		Scope:      "bench/**", Budget: usualBudget, Tokens: Tokens{Input: 45_000, Output: 8_000, Subagents: 1}, Priority: usualPriority,
	},
	{
		Name: "digest", Triggers: []string{"cadence"}, Locus: "connector", Tiers: []string{"L1"},
		Does:       "Summarises, read-only.",
		Goal:       "Summarise what happened since the last digest for the people who were not there; never act on any of it.",
		Escalation: "anything that needs an answer today, numbers that contradict each other",
		Scope:      "reports/**", Budget: usualBudget, Tokens: Tokens{Input: 30_000, Output: 7_000, Subagents: 1}, Priority: usualPriority,
	},
	{
		Name: "backfill", Triggers: []string{"goal"}, Locus: "local", Tiers: []string{"L2", "L3"},
		Does:       "Drains a queue, one verified item per step, bounded.",
		Goal:       "Drain the queue one verified item at a time until it is empty; never skip the check of an item or touch what is not in the queue.",
		Escalation: "an item that fails twice, an item that needs a decision, a queue that grows",
		Scope:      "src/**", Verify: "npm test", Guard: "npm run typecheck", Budget: usualBudget, Tokens: Tokens{Input: 40_000, Output: 15_000, Subagents: 2}, Priority: usualPriority,
	},
	{
		Name: "monitor", Triggers: []string{"event"}, Locus: "local", Tiers: []string{"L1"},
		Does:       "Triages an event and pages on a real anomaly; never remediates production.",
		Goal:       "Triage the event and say whether it is a real anomaly; never remediate, restart or change production.",
		Escalation: "every real anomaly, anything that customers see, an event that it cannot classify",
		Scope:      "src/**", Budget: usualBudget, Tokens: Tokens{Input: 12_000, Output: 3_000, Subagents: 1}, Priority: usualPriority,
	},
	{
		Name: "freshness", Triggers: []string{"cadence"}, Locus: "local", Tiers: []string{"L1"},
		Does:       "Checks documents, links and data again; a network failure is not drift.",
		Goal:       "Check documents, links and data again and report what is stale; never take a network failure for drift or rewrite a page.",
		Escalation: "a page whose subject no longer exists, contradicting sources, a change of meaning",
		Scope:      "docs/**", Budget: usualBudget, Tokens: Tokens{Input: 35_000, Output: 6_000, Subagents: 1}, Priority: usualPriority,
	},
	{
		Name: Custom, Does: "A loop that no other pattern describes.",
		Budget: usualBudget, Tokens: Tokens{Input: 30_000, Output: 8_000, Subagents: 1}, Priority: usualPriority,
	},
}
