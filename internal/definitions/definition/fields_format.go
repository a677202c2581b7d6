package definition

import (
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// formatFields are the keys of the published format, in the order of its table.
var formatFields = []Field{
	{
		Name: "name", Format: true, Required: RequiredAlways, Kind: KindText,
		Meaning: "The loop's identifier, the same as the name of its directory.",
		More: "It must equal the name of the directory below .loops, and is part of branch names (pawl/NAME/1) and of " +
			"commands. Write it in kebab case: lower-case words, digits and single hyphens; anything else is warned of, and " +
			"refused where a branch cannot be named after it.",
		Example: "keep-green",
	},
	{
		Name: "pattern", Format: true, Required: RequiredAdvised, Kind: KindEnum, Values: pattern.Names(), Open: true,
		Meaning: "The entry of the pattern catalogue that the loop follows.",
		More: "The pattern gives the usual tokens of one run, with which estimate and doctor compute. Another name than the " +
			"catalogue's is allowed and has no such numbers; write custom for a loop that nothing there describes. The format " +
			"requires the key; without it the loop still runs and is warned of.",
		Example: "ci-watch",
	},
	{
		Name: "tier", Format: true, Required: RequiredAlways, Kind: KindEnum,
		Values:  []string{string(loop.TierReport), string(loop.TierAssisted), string(loop.TierUnattended)},
		Meaning: "How much the loop may do: report, propose, or act unattended.",
		More: "L1 reports and changes nothing but its own memory. L2 works on a copy and proposes a branch; from there on " +
			"verify, guard and worktree are needed. L3 acts inside a sandbox, and is refused with sandbox: none. " +
			"Every loop starts at L1 and never skips a rung.",
		Example: "L2",
	},
	{
		Name: "cadence", Format: true, Required: RequiredAdvised, Kind: KindCadence,
		Meaning: "How often the loop fires.",
		More: "An interval in minutes, hours, days or weeks (10m, 6h, 1d12h, 2w), a cron expression of five fields (0 9 * * 1-5) that " +
			"can fire, or one of the words @hourly @daily @weekly @monthly @yearly; in YAML put what begins with * or @ into quotes. A run that a person starts does not " +
			"wait for it. The format requires the key; a loop without it is never scheduled.",
		Example: "1h",
	},
	{
		Name: "goal", Format: true, Required: RequiredAlways, Kind: KindText,
		Meaning: "One sentence: what the loop does and what it must not do.",
		More: "It stands at the top of every prompt, and is worked on itself when the loop has no other work. It is text for " +
			"the agent: what must hold is said by scope, verify and guard. Put it into quotes if it has a # or a colon.",
		Example: `"Keep the tests green; never touch the public API."`,
	},
	{
		Name: "scope", Format: true, Required: RequiredAlways, Kind: KindGlobs,
		Meaning: "The files that the loop may change, as bounded globs.",
		More: "Paths are relative to the repository. The whole tree (*, **, .) is refused, as are exclusions with ! and paths " +
			"that leave the tree. A change outside of the scope ends the run as refused, and the work is kept. Tests, lockfiles, " +
			"build, CI and agent settings stay protected unless an entry names them; .loops and .git always do. See protect.",
		Example: `["src/**", "docs/*.md"]`,
	},
	{
		Name: "verify", Format: true, Required: RequiredFromL2, Kind: KindCommand,
		Meaning: "The gate: the command that must pass for work to count as done.",
		More: "pawl runs it by /bin/sh -c on a clean copy of exactly the tree that would be proposed; exit status 0 passes. " +
			"The end of its output is what the next try is told. Below L2 it may wait as a placeholder.",
		Example: "go test ./...",
	},
	{
		Name: "guard", Format: true, Required: RequiredFromL2, Kind: KindCommand,
		Meaning: "The command that must always pass beside verify.",
		More: "Usually the full suite, a type check or a build: what a change must not break while it satisfies verify. It runs " +
			"like verify, on the same clean copy.",
		Example: "go vet ./... && go build ./...",
	},
	{
		Name: "permission_mode", Format: true, Required: RequiredAlways, Kind: KindEnum,
		Values:  readiness.PermissionModes(),
		Meaning: "The mode in which agents that have modes are started.",
		More: "plan and dontAsk fit L1; dontAsk, auto and acceptEdits fit L2; bypassPermissions fits L3 and only inside " +
			"isolation. The mode called default asks a person and is invalid here. Programs without modes, which agent: command " +
			"runs, do not see it; scope and gates bind them all the same.",
		Example: "dontAsk",
	},
	{
		Name: "worktree", Format: true, Required: RequiredFromL2, Kind: KindFlag,
		Meaning: "Whether changes are made in a copy outside of the checkout.",
		More: "From L2 on it must be true, written so: yes, True and on are other words. pawl always works on a copy; below L2 " +
			"the key changes nothing and its value is not looked at.",
		Example: "true",
	},
	{
		Name: "escalation", Format: true, Required: RequiredAlways, Kind: KindText,
		Meaning: "What is handed to a human instead of done.",
		More: "It is in every prompt: an agent that meets such a case ends its turn with the outcome escalate. At L3 it, or " +
			"the scope, should name the isolation (container, sandbox).",
		Example: "anything near deploy or secrets, a fix that needs a changed test",
	},
	{
		Name: "budget_tokens", Format: true, Required: RequiredAdvised, Kind: KindCount,
		Absent:  "no cap",
		Meaning: "The most output tokens of one run, sub-agents included.",
		More: "Counted in output tokens, in digits only: 200_000 and 2e5 are refused. No further iteration starts when they are " +
			"used up; the one that is running is not cut. Programs that report no usage are counted by a stated estimate. Without " +
			"the key only max_iterations and max_wall_clock bound a run.",
		Example: "200000",
	},
	{
		Name: "kill_switch", Format: true, Required: RequiredAlways, Kind: KindText,
		Meaning: "The stop signal that each run checks first.",
		More: "The files .loops/PAUSED and .loops/NAME/PAUSED always stop the loop; pawl pause makes them. So does every path that " +
			"this key names: each word with a / in it, of the repository unless it begins with /. They are looked for before anything " +
			"else, before each effect and while the agent works, and check lists them; a path that git tracks would stop the loop for " +
			"ever and is an error. If the key names the label loop-pause and origin is on a code host, gh is asked for it: on the " +
			"repository as a topic, on an open issue or pull request. If it cannot be asked, no run starts at L3, and below it is said.",
		Example: `".loops/keep-green/PAUSED exists"`,
	},
	{
		Name: "land_via", Format: true, Required: RequiredAdvised, Kind: KindEnum, Values: []string{"human", "pr"}, Open: true,
		Absent:  "human",
		Meaning: "Who gates and lands winning branches.",
		More: "human asks a person; approval lands the branch: pawl approve. pr asks too, and approval pushes the branch to origin and " +
			"opens a pull request with gh. Any other name is who the branch is announced to; pawl then asks nobody and lands " +
			"nothing. Advised from L2 on; below, nothing is proposed. Sessions of the boot protocol push their commits by themselves where " +
			"the key is missing; with human or pr a person is asked first, and approval pushes up to the commit that was shown.",
		Example: "human",
	},
}
