package definition

import "github.com/pawl-run/pawl/internal/loop"

// ownFields are pawl's own keys that have an effect. All are optional.
var ownFields = []Field{
	{
		Name: "agent", Kind: KindEnum, Values: []string{"command"}, Open: true,
		Absent:  "command, if agent_command is there",
		Meaning: "Who acts: a driver or an entry of the roster.",
		More: "command runs the program of agent_command and is the only driver so far. Another name is accepted together with " +
			"agent_command, and refused by run without it. pawl run --agent overrides it for one run, and the run records that.",
		Example: "command",
	},
	{
		Name: "allow_exec", Kind: KindFlag, Values: []string{"true", "false"}, Default: "false",
		Meaning: "Whether the loop may add executables, or make files executable.",
		More:    "Without it a candidate with a new executable file, or with one that became executable, is refused.",
		Example: "true",
	},
	{
		Name: "autoland", Kind: KindList, Values: []string{"none", "green-pr", "lockfile-patch", "draft", "label", "comment"},
		Absent:  "none: every landing asks a human",
		Meaning: "Classes of results that may land without a human, at L3.",
		More: "green-pr pushes a branch and opens a pull request once gates and guard passed, with land_via: pr; lockfile-patch lands " +
			"patch-level bumps of lockfiles on a branch that is not a main one. Mass deletions, agent settings, deploys, permissions, " +
			"downloads into a shell, changes of what judges the work, and moves of a main branch always ask a human.",
		Example: "[green-pr]",
	},
	{
		Name: "flaky", Kind: KindText, Absent: "one try, which decides",
		Meaning: "How many of how many tries a gate that is flaky must pass.",
		More: "2 of 3 passes a gate that passed twice in at most three tries, each in a copy of its own; every try stands in the " +
			"trace. At most 10 tries. It is for verify and guard alike. Without it a gate is tried once.",
		Example: "2 of 3",
	},
	{
		Name: "agent_command", Kind: KindCommand, Absent: "none: run refuses without one",
		Meaning: "The agent's program, a line for the shell.",
		More: "It gets the prompt on standard input and in the file PAWL_PROMPT, works in a copy of the tree, and may write a " +
			"report into the file PAWL_REPORT. Without a report its exit status is its claim: 0 is done. Its processes die with " +
			"its turn. See env for what it can see, and max_step_timeout for how long it may take.",
		Example: "./agent.sh --fast",
	},
	{
		Name: "model", Kind: KindText, Absent: "the driver's",
		Meaning: "The model that the driver is asked to use.",
		More: "Passed to drivers that choose one, and recorded with every turn. A program behind agent: command chooses for " +
			"itself.",
		Example: "claude-haiku-4-5",
	},
	{
		Name: "protocol", Kind: KindEnum, Default: loop.ProtocolSpine,
		Values:  []string{loop.ProtocolSpine, loop.ProtocolSpec, loop.ProtocolBoot, loop.ProtocolTasks, loop.ProtocolBoard},
		Meaning: "How the loop keeps its memory and picks its work.",
		More: "spine keeps STATE.md and run-log.md beside this file and works on the top of Priority. The others keep theirs in " +
			"files or rows of their own; run refuses one that this version does not have.",
		Example: "spine",
	},
	{
		Name: "sense", Kind: KindCommand, Absent: "only STATE.md is read",
		Meaning: "A command that looks for work before a token is spent.",
		More: "No output and exit status 0 mean that there is nothing to do: the run ends quiet. Any other output and exit status " +
			"are what was sensed, and stand in the prompt; a program that is not found or does not end within ten minutes fails " +
			"the run. Without it, and with an empty Priority, the goal itself is worked on.",
		Example: "git log --oneline -5 origin/main",
	},
	{
		Name: "base", Kind: KindText, Absent: "the branch checked out",
		Meaning: "The branch whose tip a run starts from.",
		More: "The tip is taken when the run begins and kept for its iterations. Uncommitted work in the checkout is not seen, " +
			"and the branch itself is not moved.",
		Example: "main",
	},
	{
		Name: "protect", Kind: KindGlobs, Absent: "the built-in list only",
		Meaning: "More files that the loop must not change.",
		More: "Files that verify, guard and sense run are protected as well. Added to the built-in list: tests, lockfiles, build, CI and agent settings, git's own files. A protected file may " +
			"be changed only if an entry of scope names it and does not merely cover it. Here globs may be as wide as they " +
			"like.",
		Example: `["db/migrations/**", "**/*.sql"]`,
	},
	{
		Name: "max_iterations", Kind: KindCount, Absent: "1 at L1, 3 above",
		Meaning: "How many tries one run has.",
		More: "Each iteration is one turn of the agent and its gates; what a gate said reaches the next. The run ends at the " +
			"limit, and the next run takes the step up again. See give_up_after, which ends a hopeless step sooner.",
		Example: "5",
	},
	{
		Name: "max_step_timeout", Kind: KindDuration, Default: "10m",
		Meaning: "The wall clock of one turn of the agent.",
		More: "Like 90s, 10m, 1h30m, 2d or 1w, at most a year; a bare number is refused. When it is over the agent's processes " +
			"are ended, and what they left is judged by the gates, because it may be good.",
		Example: "20m",
	},
	{
		Name: "max_wall_clock", Kind: KindDuration, Default: "45m",
		Meaning: "The wall clock of one run.",
		More: "Written like max_step_timeout. No further iteration starts after it, and commands that are running are given no " +
			"more than what is left.",
		Example: "2h",
	},
	{
		Name: "max_items", Kind: KindCount, Default: "1",
		Meaning: "How many steps one run may finish.",
		More: "With more than 1 a run goes on with the next step of Priority after one has passed, while max_iterations, " +
			"max_wall_clock and budget_tokens allow it.",
		Example: "3",
	},
	{
		Name: "give_up_after", Kind: KindCount, Default: "3",
		Meaning: "How often a gate may fail on one tree before a human is asked.",
		More: "The same gate has failed so often in a row, and the agent's changes were the same each time: the step is " +
			"escalated and the run ends gave_up. Another gate or another tree starts the count anew; it is kept across runs.",
		Example: "3",
	},
	{
		Name: "on_blocked", Kind: KindEnum, Default: "log_and_skip",
		Values:  []string{"log_and_skip", "escalate", "retry_next_cycle", "halt"},
		Meaning: "What happens to a step that the agent calls blocked.",
		More: "log_and_skip records it, and other steps go first for retry_blocked_after runs. escalate also hands it to a human. " +
			"retry_next_cycle tries it again in the next run. halt pauses the loop until a human resumes it.",
		Example: "escalate",
	},
	{
		Name: "on_failure", Kind: KindEnum, Default: "log_skip_continue",
		Values:  []string{"log_skip_continue", "escalate_and_skip", "retry_once", "halt"},
		Meaning: "What happens to a step that failed.",
		More: "log_skip_continue marks it failed, and open steps go first. escalate_and_skip also hands it to a human. retry_once " +
			"leaves it open after its first failure. halt pauses the loop until a human resumes it. Tries within one run are " +
			"counted by max_iterations.",
		Example: "retry_once",
	},
	{
		Name: "retry_blocked_after", Kind: KindCount, Default: "3",
		Meaning: "How many runs later a blocked step may be tried again.",
		More: "Counted in runs of the loop, quiet ones included: blocked in run 1, with 3 it is eligible first in run 4. It does " +
			"not apply with on_blocked: retry_next_cycle.",
		Example: "2",
	},
	{
		Name: "sandbox", Kind: KindEnum, Values: []string{"full", "landlock", "seatbelt", "external", "none"},
		Absent:  "nothing confines the agent, as with none",
		Meaning: "What must confine the agent and the gates.",
		More: "external says that pawl runs inside a container or a machine of its own; none that nothing confines the agent, " +
			"which is never allowed at L3. This version confines nothing itself, says so in every run, and refuses to run with " +
			"full, landlock and seatbelt.",
		Example: "external",
	},
	{
		Name: "env", Kind: KindList, Absent: "none",
		Meaning: "Names of more variables that the agent and the gates may see.",
		More: "Names only; the values are those that pawl itself was started with, and never stand in a file. PATH, HOME, USER, " +
			"LOGNAME, LANG, LC_ALL, TZ, TMPDIR and pawl's own are passed on in any case, and nothing else.",
		Example: "[CI, GOFLAGS]",
	},
}
