package arch

import (
	"path"
	"slices"
	"strings"
)

// row is one package, and all that it may do which others may not. A
// permission is its reason; the empty one is none.
type row struct {
	name string // below internal/, with * for any leaf; cmd/… as it stands
	what string

	only []string // if not nil, the packages of the module that it may import
	pure bool     // no I/O, no clock; all of rules is
	leaf bool     // imports os, syscall, x/sys and what only names, nothing else

	clock string
	exec  string
	sql   string
	init  string
}

const composes = "it joins the parts and hands them the clock"

// table is every package of pawl.
var table = []row{
	{name: "ground/clock", what: "the machine's clock", clock: "it is the clock"},
	{name: "ground/dirglob", what: "files found by a pattern below a directory"},
	{name: "ground/durable", what: "files and names that survive a power cut"},
	{name: "ground/fault", what: "named fault points"},
	{name: "ground/flock", what: "claims that end with their process", clock: "a claim that is held is tried again after a while"},
	{name: "ground/jsontree", what: "JSON read strictly into a tree that knows its places", pure: true},
	{name: "ground/lazyregexp", what: "regular expressions that are compiled at their first use", pure: true},
	{name: "ground/proc", what: "start, bound, kill a process tree", exec: "it is the one place that starts processes", clock: "lifetimes of processes are measured where they are waited for"},
	{name: "ground/proc/cgroup", what: "control groups, where the host lends some", clock: "removing a group waits for its members to be gone"},
	{name: "ground/proc/guard", what: "the process that ends programs when pawl stands still", leaf: true, only: []string{"ground/proc/stage"}, init: "it runs in the re-executed binary, before the expensive inits"},
	{name: "ground/proc/spawner", what: "the small process that makes user namespaces for a large one", leaf: true, exec: "it starts stages", only: []string{"ground/proc/stage"}, init: "it runs in the re-executed binary, before the expensive inits"},
	{name: "ground/proc/stage", what: "what a started process does before its program", leaf: true, exec: "it starts the program", init: "it runs in the re-executed binary, before the expensive inits"},
	{name: "ground/redact", what: "streaming redactor"},
	{name: "ground/safeopen", what: "files opened that untrusted code may have made"},
	{name: "ground/unprintable", what: "characters that nobody sees, found and written out", pure: true},
	{name: "ground/waiting", what: "what a command waits for, told once it lasts", clock: "a wait is told when it has lasted for a while"},
	{name: "ground/webhook", what: "deliveries signed, and verified, as Standard Webhooks asks"},

	{name: "rules/draft07", what: "JSON validated against schemas of the draft 07: every fault, at its place"},
	{name: "rules/envelope", what: "text from outside, marked as data in a prompt"},
	{name: "rules/invariant", what: "expressions about a change: compiled, evaluated within bounds"},
	{name: "rules/judging", what: "the files that decide what a gate says"},
	{name: "rules/loop", what: "nouns, rules, reason codes, state table, errors"},
	{name: "rules/pattern", what: "the catalogue of loop patterns"},
	{name: "rules/people", what: "who works in an organisation, who reports to whom, and when"},
	{name: "rules/plan", what: "snapshot + now → decision with reasons"},
	{name: "rules/policy", what: "allow/deny/ask with the rule"},
	{name: "rules/price", what: "prices as dated data"},
	{name: "rules/readiness", what: "check, doctor's static half, estimate"},
	{name: "rules/report", what: "the agent's report and its parser"},
	{name: "rules/schedule", what: "next fire time"},
	{name: "rules/stopline", what: "limits of a run's iterations, errors, minutes and confidence, and which are crossed"},
	{name: "rules/shell", what: "what a line for the shell says before it runs"},

	{name: "git", what: "hardened git on proc"},
	{name: "git/forge", what: "`gh`: labels, pull requests, comments"},
	{name: "git/gitconfig", what: "git's configuration format, read as data", pure: true, only: []string{}},
	{name: "git/gitdir", what: "where a repository is, read without git", only: []string{"rules/loop", "ground/safeopen"}},
	{name: "git/hazard", what: "what a repository holds that could act", only: []string{"git/gitdir", "git/gitconfig", "ground/safeopen", "ground/lazyregexp"}},
	{name: "git/index", what: "git's index files, read as data and written", only: []string{"git/object"}},
	{name: "git/mirror", what: "what a base commit reaches, packed for sandboxes"},
	{name: "git/object", what: "blobs, trees and commits, read and written", only: []string{"git/program", "rules/loop", "ground/safeopen"}},
	{name: "git/program", what: "the git program, started so that nothing else starts", only: []string{"rules/loop", "ground/proc", "ground/waiting"}},

	{name: "confine/probe", what: "what a machine and a repository offer: programs, agents, commands that test"},
	{name: "confine/probe/toolchain", what: "what must be visible so that a program runs, caches, set-up"},
	{name: "confine/sandbox", what: "confinement on proc"},
	{name: "confine/sandbox/stage", what: "what a confined process does before its program", leaf: true, only: []string{"ground/proc/stage"}, init: "it runs in the re-executed binary, before the expensive inits"},
	{name: "confine/sandbox/stage/selftest", what: "what a program tries in a sandbox that is tested", leaf: true, init: "it runs in the re-executed binary, before the expensive inits"},
	{name: "confine/workspace", what: "trees, setup layer, toolchains"},
	{name: "confine/workspace/filled", what: "what trees only name, from the clone: submodules, files of git LFS"},
	{name: "confine/workspace/toolset", what: "toolchains, caches and prepared dependencies", clock: "it marks when a set-up was last used"},

	{name: "record/accepted", what: "what a person has accepted on this machine of what rows ask it to do"},
	{name: "record/event", what: "the store's feed of changes, followed"},
	{name: "record/memory", what: "what was learned: when it counts, and which of it fits a goal"},
	{name: "record/node", what: "this machine among those that share a store: its id, its processes, where workspaces lie"},
	{name: "record/runlog", what: "run-log.md: one line for each run, written and read", pure: true},
	{name: "record/projection", what: "the files of a loop's memory, written from recorded changes"},
	{name: "record/store", what: "rows, both databases", sql: "it is the store"},
	{name: "record/transcript", what: "what happens in a run, as events without secrets"},

	{name: "definitions/config", what: "settings"},
	{name: "definitions/definition", what: "formats ↔ `loop.Definition`, schemas"},
	{name: "definitions/guidance", what: "the repository's instructions for agents, as a commit has them"},

	{name: "agents/agent", what: "driver contract"},
	{name: "agents/agent/*", what: "one driver each"},
	{name: "agents/budget", what: "what one run may spend: reserved, widened, settled"},
	{name: "agents/credential", what: "keys that are injected, logins that are lent"},
	{name: "agents/meter", what: "egress proxy"},
	{name: "agents/meter/model", what: "the way to a model: calls forwarded with the real key"},
	{name: "agents/modelapi", what: "the vendors' APIs: what a request may cost, what an answer used, what an error means"},
	{name: "agents/modeltool", what: "what a request asks its model's vendor to do by itself"},
	{name: "agents/spend", what: "what a run spends on models, funded before each call and capped"},
	{name: "agents/toolsocket", what: "the way to pawl's own tools from inside of a run: a socket with a token, and the relay to it"},
	{name: "agents/turn", what: "who acts, in which home, with which credential, and what it came to"},

	{name: "cycle/catalog", what: "the loops of a workspace, by name and listed"},
	{name: "cycle/effect", what: "outbox and kinds"},
	{name: "cycle/engine", what: "one run through the cycle"},
	{name: "cycle/format", what: "what a format of loops is: its name, files and protocol"},
	{name: "cycle/gate", what: "checks that the runtime runs to decide"},
	{name: "cycle/gatecheck", what: "the gates of a definition, tried on its base without a run"},
	{name: "cycle/listen", what: "events that fire loops are noticed: files, refs, webhooks, ends of runs, commands"},
	{name: "cycle/queue", what: "queued runs are handed to those who execute them"},
	{name: "cycle/runenv", what: "where programs work: copies, what is beside them, limits, gates on a clean copy"},
	{name: "cycle/sim", what: "loops on a clock of its own: what fires, collides and costs, without acting"},
	{name: "cycle/trigger", what: "due loops fire, once"},

	{name: "verbs/approvals", what: "verbs: what waits for a person; approve, reject, land"},
	{name: "verbs/audit", what: "verbs: the audit chain verified and copied, run logs made from it"},
	{name: "verbs/budgets", what: "verbs: what may be spent, and prices"},
	{name: "verbs/demo", what: "the repository and the scripted agent of `pawl demo`"},
	{name: "verbs/lookup", what: "loops, runs and open approvals of a workspace, found by what people call them"},
	{name: "verbs/loops", what: "verbs: make, check, list, pause, resume, kill, forget"},
	{name: "verbs/memories", what: "verbs: what was learned; add, approve, forget, explain"},
	{name: "verbs/nodes", what: "verbs: the machines that share a store; name one, forget one"},
	{name: "verbs/notices", what: "verbs: where notices are sent, whether that works, whether they were delivered"},
	{name: "verbs/notify", what: "messages to people: what they are told, the channels, deliveries"},
	{name: "verbs/output", what: "what commands print: fields, tables and JSON, without what a terminal would act on"},
	{name: "verbs/roster", what: "verbs: who acts, and the logins that are kept"},
	{name: "verbs/runs", what: "verbs: run, stop, list, explain; recovery, and work that is on no branch"},
	{name: "verbs/setup", what: "verbs: what a machine and a repository offer, and what a loop needs"},
	{name: "verbs/shape", what: "what results have in common when they print as JSON", pure: true},
	{name: "verbs/verb", what: "what a verb is: its facts, who may ask for it, carried out once"},

	{name: "formats/boards/board", what: "boards, tasks, agents and what they say: limits, scores, readiness, order, hierarchy", pure: true},
	{name: "formats/boards/boards", what: "verbs: heartbeat boards, their tasks, agents, messages and resources; who takes what, and why"},
	{name: "formats/boards/boardsim", what: "agents of boards in memory: real heartbeats, drawn attempts"},
	{name: "formats/boards/heartbeat", what: "the protocol: one heartbeat of an agent of boards"},
	{name: "formats/boot", what: "the protocol: one session on a workspace that links to a boot repository"},
	{name: "formats/boot/bootdef", what: "the loop `boot` of a workspace, made from AGENT_LINK.md and its loop.config.yaml"},
	{name: "formats/boot/bootlink", what: "what a workspace links to by the boot protocol: AGENT_LINK.md, versions, the table of stop lines", pure: true},
	{name: "formats/boot/bootrepo", what: "the contract of a boot repository: fetched, kept by commit, held against its link"},
	{name: "formats/boot/boots", what: "verbs: makes and checks workspaces of the boot protocol, and says how each stands"},
	{name: "formats/boot/bootstate", what: "the memory of the boot protocol: state, tasks and changelog, recovered, planned and merged", pure: true},
	{name: "formats/spec", what: "the protocol: one iteration of a LoopSpec"},
	{name: "formats/spec/loopspec", what: "LoopSpec: its document, its phrases and what they mean, its life", pure: true},
	{name: "formats/spec/specs", what: "verbs: makes, changes, exports and removes LoopSpecs, and says how each stands"},
	{name: "formats/spine", what: "the protocol: state and definition of a loop below .loops"},
	{name: "formats/tasks", what: "the protocol: one cycle of an agent with task files"},
	{name: "formats/tasks/orgdef", what: "the loops of an organisation's agents, made from agents/*/LOOP.md and org.yaml"},
	{name: "formats/tasks/orgs", what: "verbs: makes, checks, shows and imports organisations of agents"},
	{name: "formats/tasks/orgsim", what: "organisations of agents in memory: real cycles, drawn attempts"},
	{name: "formats/tasks/taskfile", what: "the files of agents that work in cycles: read, edited line by line, merged", pure: true},

	{name: "surface/api", what: "HTTP+JSON, SSE"},
	{name: "surface/cli", what: "the command line", clock: composes},
	{name: "surface/client", what: "socket or in-process"},
	{name: "surface/compose", what: "the composition root: joins the parts", clock: composes},
	{name: "surface/daemon", what: "what is always on: New, Start, Stop"},
	{name: "surface/httpguard", what: "what every surface over HTTP refuses: other sites, other names, paths that lead away, clients that do not read"},
	{name: "surface/mcp", what: "the verbs for agents"},
	{name: "surface/mcp/frame", what: "MCP over two streams, where no line of a client ends the session"},
	{name: "surface/mcp/registration", what: "verbs: pawl entered into the configuration of programs that use MCP servers"},

	{name: "cmd/pawl", what: "calls `cli.Main`", only: []string{"surface/cli"}},

	{name: "arch", what: "these rules; nothing imports it"},

	{name: "bench", what: "measures against the targets; nothing imports it", clock: "it measures"},

	{name: "test/agente2e", what: "every real agent program through a whole run; nothing imports it"},
	{name: "test/agenttest", what: "the suite that every driver passes"},
	{name: "test/boardload", what: "many agents of boards that claim at once"},
	{name: "test/checklist", what: "a format that pawl does not have, which a test adds"},
	{name: "test/drawn", what: "keeps files, and sections of documents, as the code draws them"},
	{name: "test/fakemodel", what: "a scripted model in the shapes of four APIs"},
	{name: "test/gittest", what: "repositories for tests, and git as a user runs it"},
	{name: "test/hostile", what: "definitions that are made to hurt whoever reads them", pure: true},
	{name: "test/modelcalls", what: "calls of models and their answers, as vendors publish them"},
	{name: "test/mutants", what: "plants small bugs and counts those that a test notices; nothing imports it", exec: "it builds and runs tests", clock: "it measures tests"},
	{name: "test/mutants/mutant", what: "the switch of a planted bug, imported by copies of sources only", only: []string{}},
	{name: "test/orgtree", what: "eleven agents with task files, in the shapes of real trees"},
	{name: "test/pgtest", what: "a private PostgreSQL for tests", exec: "it starts the server, and proc must not know of databases", sql: "it makes and drops databases"},
	{name: "test/ratchet", what: "numbers of the house that may fall and not rise"},
	{name: "test/sample", what: "how much of what a test can try it does try"},
	{name: "test/sampled", what: "names the tests that try only a sample; nothing imports it", only: []string{}},
	{name: "test/storetest", what: "databases with the tables of a store, copied for each test"},
	{name: "test/sixth", what: "a sixth format is added, with a folder and a line"},
	{name: "test/verbtest", what: "all verbs on a real repository and store, for their tests", clock: "it waits for processes", sql: "it edits a store behind its back"},
}

// find returns the row of a package.
func find(rows []row, name string) (row, bool) {
	for _, pattern := range []string{name, path.Dir(name) + "/*"} {
		if i := slices.IndexFunc(rows, func(r row) bool { return r.name == pattern }); i >= 0 {
			return rows[i], true
		}
	}
	return row{}, false
}

// isPure reports whether the package does no I/O and is told the time.
func (r row) isPure() bool { return r.pure || strings.HasPrefix(r.name, "rules/") }

// forTests reports whether only tests import the package.
func (r row) forTests() bool { return strings.HasPrefix(r.name, "test/") }
