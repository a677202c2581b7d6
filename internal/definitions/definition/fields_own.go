package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
)

// modelToolNames are the values of model_tools, with none for an empty list.
func modelToolNames() []string {
	names := []string{"none"}
	for _, t := range loop.ModelTools() {
		names = append(names, string(t))
	}
	return names
}

// onForms says in words what the key on can name.
func onForms() string {
	var words []string
	for _, f := range loop.OnForms {
		words = append(words, f.Form+": "+f.Fires+".")
	}
	return strings.Join(words, " ")
}

// patternPriorities says in words what priority holds without the key.
func patternPriorities() string {
	usual, _ := pattern.Find(pattern.Custom)
	var words []string
	list := pattern.All()
	slices.SortStableFunc(list, func(a, b pattern.Pattern) int { return cmp.Compare(b.Priority, a.Priority) })
	for _, p := range list {
		if p.Priority != usual.Priority {
			words = append(words, fmt.Sprintf("%s has %d", p.Name, p.Priority))
		}
	}
	return strings.Join(words, ", ") + fmt.Sprintf(", every other pattern %d", usual.Priority)
}

// ownFields are pawl's own keys that have an effect. All are optional.
var ownFields = []Field{
	{
		Name: "agent", Kind: KindEnum, Open: true,
		Values:  []string{"claude", "codex", "gemini", "opencode", "qwen", "goose", "acp", "api", "command"},
		Absent:  "command, if agent_command is there",
		Meaning: "Who acts: a driver or an entry of the roster.",
		More: "claude, codex, gemini, opencode, qwen and goose drive those programs, acp any agent of the Agent Client Protocol that " +
			"agent_command starts, api needs nothing but a key or a local model, command runs any program. pawl agent drivers shows " +
			"what this machine has, pawl agent create adds entries to the roster. pawl run --agent overrides it for one run, and the " +
			"run records that.",
		Example: "claude",
	},
	{
		Name: "allow_exec", Kind: KindFlag, Values: []string{"true", "false"}, Default: "false",
		Meaning: "Whether the loop may add executables, or make files executable.",
		More:    "Without it a candidate with a new executable file, or with one that became executable, is refused.",
		Example: "true",
	},
	{
		Name: "portable_names", Kind: KindFlag, Values: []string{"true", "false"}, Default: "true",
		Meaning: "Whether new files must have names that Windows can hold.",
		More: "Names of devices such as aux, NUL.txt or COM1, and names with one of < > : \" | ? * in them: a checkout on Windows fails " +
			"or writes something else. Paths that the base has may be changed and deleted in any case.",
		Example: "false",
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
		More: "2 of 3 passes a gate that passed twice in at most three tries, each in a copy of its own; the trace shows every try. " +
			"At most 10 tries. It is for verify and guard alike. Without it a gate is tried once.",
		Example: "2 of 3",
	},
	{
		Name: "agent_command", Kind: KindCommand, Absent: "none: run refuses without one",
		Meaning: "The agent's program, a line for the shell.",
		More: "It gets the prompt on standard input and in the file PAWL_PROMPT, works in a copy of the tree, and may write a " +
			"report into the file PAWL_REPORT. Without a report its exit status is its claim: 0 is done. Its processes die with " +
			"its turn. See env for what it can see, and max_step_timeout for how long it may take. " +
			"In a sandbox, claude -p, codex exec and the like are refused without provider or env, because they have no login there: " +
			"write agent: claude. A script must be in the repository.",
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
		Name: "effort", Kind: KindEnum, Values: []string{"minimal", "low", "medium", "high", "xhigh", "max"}, Absent: "the driver's",
		Meaning: "How hard the model is to think.",
		More: "Passed to the agent's program, or to the vendor by agent: api. claude has low to max, codex, opencode and qwen minimal to " +
			"xhigh, gemini minimal to high, api all that its vendor takes; goose, acp and command have none, and check refuses the key. " +
			"Thinking is paid for as output.",
		Example: "high",
	},
	{
		Name: "mcp", Kind: KindList, Absent: "none",
		Meaning: "MCP servers that the agent may use.",
		More: "NAME=COMMAND is a line for the shell that is started inside the sandbox and talks on its standard streams; NAME=URL, as " +
			"docs=https://mcp.example.com/v1, is reached through the proxy, and its host must be in network. All tools of a server that is named are allowed. For claude, codex, " +
			"opencode and goose; check refuses the key for the others. Servers that the tree or the user has set up are never started.",
		Example: `["files=node tools/files-mcp.js"]`,
	},
	{
		Name: "pawl_tools", Kind: KindEnum, Values: []string{"none", "read", "post"}, Default: "none",
		Meaning: "Which of pawl's own tools the agent has inside of a run.",
		More: "read: it looks at loops, runs, tasks and messages of its workspace. post: it also writes messages, comments and tasks in its own " +
			"name, makes loops from templates below its own, and runs, flags, pauses and stops those. Their budget comes out of that of its loop. " +
			"The tools are the MCP server pawl, reached by a token that ends with the turn. For claude, codex, opencode and goose; check refuses the key for the others.",
		Example: "post",
	},
	{
		Name: "provider", Kind: KindEnum, Values: []string{"anthropic", "openai", "gemini"}, Absent: "the driver's",
		Meaning: "Whose shape of requests the model is asked in.",
		More: "openai is also that of Ollama, vLLM, llama.cpp and most gateways, with base_url. An agent: command that is given one finds " +
			"the endpoint in the usual variables, and its tokens are metered. Another provider is configured in the agent's own program, " +
			"with env and network.",
		Example: "openai",
	},
	{
		Name: "base_url", Kind: KindText, Absent: "the provider's",
		Meaning: "Where requests to the model are forwarded to.",
		More: "An http or https URL, as the provider's own libraries take it. Programs in the sandbox never see it: they ask pawl's " +
			"endpoint, which may forward to this machine too, as to a local model. Without it ANTHROPIC_BASE_URL, OPENAI_BASE_URL or " +
			"GOOGLE_GEMINI_BASE_URL in pawl's own environment counts, with the vendor's key beside it and with no other.",
		Example: "http://127.0.0.1:11434/v1",
	},
	{
		Name: "auth", Kind: KindEnum, Values: []string{"inject", "lend"}, Absent: "inject if there is a key, else lend",
		Meaning: "How the agent gets at its model.",
		More: "inject: the key stays outside of the sandbox, requests get it on their way, every token is metered and the budget is kept " +
			"to the token. lend: the program's own login is put into its home for one run at a time; the program can read it, reaches " +
			"its vendor's hosts, and reports its usage itself. A login that it renewed is given back after a run that was not refused and in " +
			"which its vendor was seen renewing it; else it is kept beside the old one (pawl agent login).",
		Example: "inject",
	},
	{
		Name: "resume", Kind: KindFlag, Values: []string{"true", "false"}, Default: "false",
		Meaning: "Whether runs go on with one conversation.",
		More: "By default each turn begins with a fresh context, which costs least and forgets nothing that the loop's memory holds. With " +
			"true the driver's last conversation is taken up again, until it is long; drivers that cannot do that begin anew and say so.",
		Example: "true",
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
		Meaning: "What looks for work before a token is spent: a command, or gates.",
		More: "No output and exit status 0 mean that there is nothing to do: the run ends quiet. Any other output and exit status " +
			"are what was sensed, and are in the prompt; a program that is not found or does not end within ten minutes fails " +
			"the run. gates is for a loop whose goal is that verify and guard pass: they are tried on the base, once for a base tree, " +
			"and while they pass and Priority is empty there is nothing to do. Without sense, and with an empty Priority, the goal " +
			"itself is worked on; a goal that needed no change is worked on again when the base, the definition, run.md or what was sensed has changed.",
		Example: "gates",
	},
	{
		Name: "base", Kind: KindText, Absent: "the branch checked out",
		Meaning: "The branch whose tip a run starts from.",
		More: "The tip is taken when the run begins and kept for its iterations. Uncommitted work in the checkout is not seen, " +
			"and the branch itself is not moved.",
		Example: "main",
	},
	{
		Name: "instructions", Kind: KindGlobs, Absent: "the repository's instructions for agents along the scope",
		Meaning: "Which of the repository's instructions the agent is given.",
		More: "By default AGENTS.md, CLAUDE.md, GEMINI.md, QWEN.md, .goosehints, .cursorrules, .claude/CLAUDE.md, .claude/rules and " +
			".github/copilot-instructions.md of the top, of each folder on the way to what scope names, and below it, with the files that " +
			"they import. A list of globs replaces these; none gives nothing. Skills " +
			"and sub-agents are given if the list names them, as .claude/skills/** and .claude/agents/**. They are read from the run's base, never from what an agent " +
			"changed, and rank below the loop's own rules. 32 KiB of a file and 64 KiB of all are given: pawl trace says of which. See docs/agents.md.",
		Example: `["AGENTS.md", "docs/style.md"]`,
	},
	{
		Name: "protect", Kind: KindGlobs, Absent: "the built-in list only",
		Meaning: "More files that the loop must not change.",
		More: "Added to the built-in list: tests by the names that their frameworks take, lockfiles, build, CI and agent settings, git's " +
			"own files. Files that verify, guard and sense run are protected as well, and so is what these run in turn, as far as it " +
			"can be read on the base: scripts and what they source, recipes of a Makefile and what it includes, scripts of package.json " +
			"and of similar files, modules of python -m, folders of go run. A protected file may be changed only if an entry of scope " +
			"names it and does not merely cover it. If files of the scope can rewrite a gate all the same, check, the approval and why " +
			"name it. Here globs may be as wide as they like.",
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
		Name: "max_disk", Kind: KindSize, Default: "8GiB",
		Meaning: "How much disk the files of one run may take up.",
		More: "A whole number with MB, GB, TB, MiB, GiB or TiB. Counted every 5 s over what the run itself writes: its layer of the tree, " +
			"caches, homes and temporary files on disk; of a copy without layers, by how much it grew. A run that has more ends " +
			"with the outcome budget, and the largest folders are named. What fits into a snapshot is kept.",
		Example: "20GiB",
	},
	{
		Name: "budget_usd_day", Kind: KindAmount, Absent: "none",
		Meaning: "The most US dollars that the loop may spend in a day.",
		More: "A day of UTC. A run reserves what it will probably need before it begins, is refused if that is not left, and is cut off " +
			"at what it reserved if no more can be had. A model that has no price takes twice the dearest of its family, or the run ends price_unknown before its agent starts: pawl prices update --file F adds one. pawl budget set " +
			"adds budgets for months, agents and workspaces.",
		Example: "2.50",
	},
	{
		Name: "budget_tokens_day", Kind: KindCount, Absent: "none",
		Meaning: "The most tokens that the loop may use in a day.",
		More:    "Input, cache writes and output, in a day of UTC; cache reads are shown and priced apart. Reserved like budget_usd_day.",
		Example: "2000000",
	},
	{
		Name: "max_items", Kind: KindCount, Default: "1",
		Meaning: "How many steps one run may finish.",
		More: "With more than 1, a run takes the next step of Priority when one has passed, as long as max_iterations, " +
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
		Name: "timezone", Kind: KindText, Default: "UTC",
		Meaning: "The zone in which a cron cadence is read.",
		More: "A name of the time zone database. Where the clocks go forward, a fixed time that they leave out fires right after the gap; where they go " +
			"back, a fixed time fires once. `pawl next` shows both. Intervals do not depend on it.",
		Example: "Europe/Berlin",
	},
	{
		Name: "catch_up", Kind: KindEnum, Values: []string{string(loop.CatchUpSkip), string(loop.CatchUpOne), string(loop.CatchUpAll)}, Default: string(loop.CatchUpOne),
		Meaning: "How many runs make up for those that were missed.",
		More: "Runs are missed while no pawl up or pawl worker is at work. one makes up for all of them with a single run; all makes up for each, for " +
			"at most 100; skip waits for the next planned time, unless start_deadline says how late a run may still start.",
		Example: "skip",
	},
	{
		Name: "start_deadline", Kind: KindDuration, Absent: "none",
		Meaning: "After how long a run is not worth starting any more.",
		More:    "A planned time that could not be kept for so long is skipped, whatever catch_up says.",
		Example: "2h",
	},
	{
		Name: "jitter", Kind: KindDuration, Default: "0",
		Meaning: "By how much a start may be put off, so that loops spread.",
		More: "By how much is the same each time for one loop and one planned time, and never beyond the next one. The cron field H spreads loops " +
			"without it.",
		Example: "2m",
	},
	{
		Name: "on", Kind: KindList, Absent: "none",
		Meaning: "Events that fire the loop, beside its cadence.",
		More: onForms() + " While the loop is paused or at work, events wait; then one run has them all, and sees them. pawl up and pawl worker notice events, and " +
			"pawl up --listen receives webhooks; docs/always-on.md says more about each kind. A YAML reader of version 1.1 takes the bare key for a truth value; pawl does not.",
		Example: `["ref:refs/heads/main", "file:docs/**"]`,
	},
	{
		Name: "priority", Kind: KindCount, Absent: "the pattern's",
		Meaning: "Which loop goes first where scopes overlap; higher is sooner.",
		More: "Loops of one repository whose scopes overlap never run at once. One that fires while another of the same or a higher priority " +
			"is at work or due ends quiet, with deferred_to, and comes again at its next tick; one of a higher priority waits. " + patternPriorities() +
			". A loop that may change nothing (L1) excludes none.",
		Example: "60",
	},
	{
		Name: "defer_bound", Kind: KindCount, Default: "5",
		Meaning: "After how many deferrals in a row the loop goes first.",
		More:    "Then its next run waits until what is at work has ended, and all others defer to it. It keeps a loop of low priority from starving.",
		Example: "2",
	},
	{
		Name: "node_labels", Kind: KindList, Absent: "none: any node on which the workspace lies",
		Meaning: "Labels that a machine must have to execute runs of the loop.",
		More: "All of them, on a machine on which the workspace lies. pawl nodes set --label and pawl worker --labels give labels to a machine; pawl nodes shows " +
			"them. check is an error while no machine that pawl has seen lately has them.",
		Example: "[gpu]",
	},
	{
		Name: "invariants", Kind: KindList, Absent: "none",
		Meaning: "Conditions on the result that must hold, beside the gates.",
		More: "Expressions that are true or false, such as diff.files <= 3. They see what changed (diff.files, diff.added, diff.removed, diff.paths), the files of the " +
			"result (files, json(PATH), yaml(PATH)), what the commands printed (output(\"verify\")), and the same of the base with base. before it, so that a number never " +
			"gets worse: json(\"cov.json\").total >= base.json(\"cov.json\").total. They run nothing. pawl explain invariant lists all names, each with an example.",
		Example: `["diff.files <= 3"]`,
	},
	{
		Name: "reviewer", Kind: KindText, Default: "none",
		Meaning: "What another model has to find in the result, beside the gates.",
		More: "An agent other than the one that did the work gets the goal, this text, the change and what was said about it, and answers PASS or FAIL with its reasons, which the next try " +
			"is told. It works in an empty tree, without the network and the variables of the loop; its tokens are the run's. It is asked last, and only if no command has failed. Its pass " +
			"is one more condition, never enough alone. Where nobody can be asked, or the model is the one that did the work, or nobody sees which one it is (a lent login, a program that pawl " +
			"does not meter), the run ends waiting_human and you decide.",
		Example: `"The change is minimal and explains itself."`,
	},
	{
		Name: "reviewer_agent", Kind: KindText, Absent: "that of PAWL_REVIEWER_AGENT, or agent with reviewer_model",
		Meaning: "Who reviews: a driver or an entry of the roster.",
		More: "Used together with reviewer: the cheap model makes, the expensive one judges. Without it and without reviewer_model the critic of PAWL_REVIEWER_AGENT and PAWL_REVIEWER_MODEL, in the " +
			"environment of pawl, reviews. It needs a key, because only then pawl sees which model answers.",
		Example: "critic",
	},
	{
		Name: "reviewer_model", Kind: KindText, Absent: "the reviewing agent's own",
		Meaning: "The model that reviews.",
		More:    "Used together with reviewer. It must be another model than the one that makes the change. Without reviewer_agent, the loop's own agent asks it.",
		Example: "claude-opus-4-8",
	},
	{
		Name: "stop_lines", Kind: KindList, Default: "none",
		Meaning: "Conditions at which a run halts before its next iteration.",
		More: "iterations, errors and minutes, >= and a number above 0; confidence, < and a number up to 1. All are counted for one run: errors are iterations that did not " +
			"pass, minutes its wall-clock time, confidence what the agent's last report says of itself. At a crossing the run ends gave_up, and the item " +
			"is handed to a person; what passed before is kept. The boot protocol takes them from the boot repository instead, and refuses the key.",
		Example: `["errors >= 5", "confidence < 0.5"]`,
	},
	{
		Name: "commit_state", Kind: KindFlag, Values: []string{"true", "false"}, Default: "false",
		Meaning: "Whether STATE.md and run-log.md are committed.",
		More: "At the end of a run that did more than look they become a commit of the branch that is checked out, with nothing else in it; it is not pushed. " +
			"A quiet run commits nothing: its line is in the next commit. Neither does a run while a proposal waits that would land on " +
			"that branch as it is: the branch would move under it. Without the key both files are left to you to commit. The boot protocol always commits its memory.",
		Example: "true",
	},
	{
		Name: "human_gate", Kind: KindEnum, Values: []string{"propose", "decide", "keep", "accept"}, Default: "propose",
		Meaning: "What happens to a result when all gates pass.",
		More: "propose: the item is done, and approving the proposal lands its branch as land_via says. With the other values the run ends waiting_human, and the item is done " +
			"only when you approve: decide lands the branch as land_via says, keep leaves the branch as it is, accept moves nothing.",
		Example: "decide",
	},
	{
		Name: "sandbox", Kind: KindEnum, Values: []string{"full", "landlock", "seatbelt", "external", "none"}, Default: "full",
		Meaning: "What must confine the agent, the gates, sense and setup.",
		More: "full gives them a root, users, processes and a network of their own, in which nothing exists but the tree, the " +
			"system's programs, toolchains and caches. landlock forbids writing outside of the tree and connecting anywhere, on " +
			"the host's own root. seatbelt is macOS's. external says that pawl itself runs inside a container or a machine of its " +
			"own; none that nothing confines the agent, which is never allowed at L3. A host that cannot keep what is asked for " +
			"refuses the run: pawl doctor --sandbox shows what it can keep.",
		Example: "external",
	},
	{
		Name: "history", Kind: KindEnum, Values: []string{"base", "none"}, Default: "base",
		Meaning: "Which commits of the repository agent and gates can read.",
		More: "base gives them what the base commit reaches and nothing else: no other branches, stashes, tags, deleted branches or " +
			"snapshots. The first run packs it into pawl's home and says what that cost; a later base adds only what is new. none gives " +
			"the base commit alone, as a shallow clone, so that git log and git blame end there. It has no effect with sandbox: external and none, " +
			"where programs can read the repository itself.",
		Example: "none",
	},
	{
		Name: "setup", Kind: KindCommand, Absent: "detected from the lockfiles",
		Meaning: "The command that prepares dependencies.",
		More: "Run once for each state of command, lockfiles and toolchain, before agent and gates, in a sandbox that reaches the " +
			"package hosts that belong to it and those of network. What it wrote that git does not track is then in every copy; " +
			"nothing that an agent or a gate does changes it. Write none to prepare nothing.",
		Example: "npm ci",
	},
	{
		Name: "network", Kind: KindList, Absent: "none",
		Meaning: "Hosts that agent, gates, sense and setup may reach.",
		More: "HOST, HOST:PORT or *.HOST, by HTTP through a proxy of pawl's that the usual variables name; 443 and 80 where no port " +
			"is written. A program that asks for another host is told so, and the run shows it. The tiers external and none limit nothing.",
		Example: "[docs.example.com]",
	},
	{
		Name: "commands", Kind: KindList, Absent: "the list of commands that only read, and a few more",
		Meaning: "More commands that pawl runs for the agent without asking.",
		More: "Each is the first words of a command: go test allows go test ./... and nothing else of go. An agent names commands in its " +
			"report; those of pawl's own list (docs/report.md) and these are run in the sandbox, others are refused. What cannot be taken back, " +
			"like rm or git push, waits for a person whatever is written here, and a loop that only reports runs what only reads.",
		Example: "go test",
	},
	{
		Name: "model_tools", Kind: KindList, Values: modelToolNames(), Open: true, Absent: "none",
		Meaning: "What the model's vendor may do by itself for a request.",
		More: "The vendor's own tools run on its machines: network does not hold them, and they cost fees. Requests that ask for one that " +
			"is not named here are refused. urls, files and stored are content by its address, by the id of a file at the vendor, and " +
			"prompts, conversations and caches that are kept there. type:WORD names a tool by the vendor's own word for it. With " +
			"auth: lend pawl does not see the requests: there the agent's program is told not to use such tools, and nothing enforces it.",
		Example: "[web_search]",
	},
	{
		Name: "env", Kind: KindList, Absent: "none",
		Meaning: "Names of more variables that the agent and the gates may see.",
		More: "Names only; the values are those that pawl itself was started with, and are never in a file. PATH, HOME, USER, " +
			"LOGNAME, LANG, LC_ALL, TZ, TMPDIR and pawl's own are passed on in any case, and nothing else; in a sandbox HOME is " +
			"an empty folder at the same path, and PATH holds what is visible there.",
		Example: "[CI, GOFLAGS]",
	},
}
