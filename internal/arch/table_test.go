package arch

import (
	"path"
	"slices"
)

// row is one package, and all that it may do which others may not. A
// permission is its reason; the empty one is none.
type row struct {
	level int
	name  string // below internal/, with * for any leaf; cmd/… as it stands
	what  string

	may   []string // packages of the same level that it may import
	only  []string // if not nil, the packages of the module that it may import
	pure  bool     // no I/O, no clock
	leaf  bool     // imports os, syscall, x/sys and what only names, nothing else
	tests bool     // imported by tests only

	clock string
	exec  string
	sql   string
	init  string
}

const composes = "it joins the parts and hands them the clock"

// table is every package of pawl, those to come included. Imports point to a
// lower level only.
var table = []row{
	{level: 0, name: "loop", what: "nouns, rules, reason codes, state table, errors", may: []string{"lazyregexp"}, pure: true},
	{level: 0, name: "config", what: "settings"},
	{level: 0, name: "clock", what: "the machine's clock", clock: "it is the clock"},
	{level: 0, name: "fault", what: "named fault points"},
	{level: 0, name: "dirglob", what: "files found by a pattern below a directory"},
	{level: 0, name: "durable", what: "files and names that survive a power cut"},
	{level: 0, name: "waiting", what: "what a command waits for, told once it lasts", clock: "a wait is told when it has lasted for a while"},
	{level: 0, name: "flock", what: "claims that end with their process", may: []string{"waiting"}, clock: "a claim that is held is tried again after a while"},
	{level: 0, name: "report", what: "the agent's report and its parser", pure: true},
	{
		level: 0, name: "proc", what: "start, bound, kill a process tree", may: []string{"proc/stage", "proc/guard", "proc/spawner", "proc/cgroup", "waiting"},
		exec: "it is the one place that starts processes", clock: "lifetimes of processes are measured where they are waited for",
	},
	{
		level: 0, name: "proc/stage", what: "what a started process does before its program", leaf: true,
		exec: "it starts the program", init: "it runs in the re-executed binary, before the expensive inits",
	},
	{
		level: 0, name: "proc/guard", what: "the process that ends programs when pawl stands still", leaf: true, may: []string{"proc/stage"},
		only: []string{"proc/stage"}, init: "it runs in the re-executed binary, before the expensive inits",
	},
	{
		level: 0, name: "proc/spawner", what: "the small process that makes user namespaces for a large one", leaf: true, may: []string{"proc/stage"},
		exec: "it starts stages", only: []string{"proc/stage"}, init: "it runs in the re-executed binary, before the expensive inits",
	},
	{
		level: 0, name: "proc/cgroup", what: "control groups, where the host lends some",
		clock: "removing a group waits for its members to be gone",
	},
	{level: 0, name: "safeopen", what: "files opened that untrusted code may have made"},
	{level: 0, name: "shell", what: "what a line for the shell says before it runs", pure: true},
	{level: 0, name: "redact", what: "streaming redactor"},
	{level: 0, name: "unprintable", what: "characters that nobody sees, found and written out", pure: true},
	{level: 0, name: "lazyregexp", what: "regular expressions that are compiled at their first use", pure: true},
	{level: 0, name: "price", what: "prices as dated data", may: []string{"lazyregexp"}, pure: true},
	{level: 0, name: "pattern", what: "the catalogue of loop patterns", pure: true},
	{level: 0, name: "webhook", what: "deliveries signed, and verified, as Standard Webhooks asks"},
	{level: 0, name: "jsontree", what: "JSON read strictly into a tree that knows its places", pure: true},
	{level: 0, name: "shape", what: "what results have in common when they print as JSON", pure: true},

	{level: 0, name: "mcp/frame", what: "MCP over two streams, where no line of a client ends the session"},

	{level: 0, name: "test/drawn", what: "keeps files, and sections of documents, as the code draws them", tests: true},
	{level: 0, name: "test/sample", what: "how much of what a test can try it does try", tests: true},
	{level: 0, name: "test/orgtree", what: "eleven agents with task files, in the shapes of real trees", tests: true},
	{level: 0, name: "test/fakemodel", what: "a scripted model in the shapes of four APIs", tests: true},

	{level: 1, name: "plan", what: "snapshot + now → decision with reasons", may: []string{"policy"}, pure: true},
	{level: 1, name: "judging", what: "the files that decide what a gate says", pure: true},
	{level: 1, name: "invariant", what: "expressions about a change: compiled, evaluated within bounds", may: []string{"judging"}, pure: true},
	{level: 1, name: "envelope", what: "text from outside, marked as data in a prompt", pure: true},
	{level: 1, name: "policy", what: "allow/deny/ask with the rule", pure: true},
	{level: 1, name: "schedule", what: "next fire time", pure: true},
	{level: 1, name: "readiness", what: "check, doctor's static half, estimate", pure: true},
	{
		level: 1, name: "loopspec", what: "LoopSpec: its document, its phrases and what they mean, its life", may: []string{"policy", "readiness", "schedule"},
		pure: true,
	},
	{level: 1, name: "draft07", what: "JSON validated against schemas of the draft 07: every fault, at its place", pure: true},
	{
		level: 1, name: "bootlink", what: "what a workspace links to by the boot protocol: AGENT_LINK.md, versions, stop lines",
		may: []string{"readiness"}, pure: true,
	},
	{
		level: 1, name: "bootstate", what: "the memory of the boot protocol: state, tasks and changelog, recovered, planned and merged",
		may: []string{"draft07", "readiness"}, pure: true,
	},
	{level: 1, name: "taskfile", what: "the files of agents that work in cycles: read, edited line by line, merged", pure: true},
	{level: 1, name: "people", what: "who works in an organisation, who reports to whom, and when", may: []string{"schedule"}, pure: true},
	{level: 1, name: "store", what: "rows, both databases", sql: "it is the store"},
	{level: 1, name: "accepted", what: "what a person has accepted on this machine of what rows ask it to do"},
	{
		level: 1, name: "test/pgtest", what: "a private PostgreSQL for tests", tests: true,
		exec: "it starts the server, and proc must not know of databases", sql: "it makes and drops databases",
	},
	{level: 1, name: "test/storetest", what: "databases with the tables of a store, copied for each test", tests: true, may: []string{"store", "test/pgtest"}},
	{level: 1, name: "test/modelcalls", what: "calls of models and their answers, as vendors publish them", tests: true},
	{
		level: 1, name: "modelapi", what: "the vendors' APIs: what a request may cost, what an answer used, what an error means",
		may: []string{"test/modelcalls"},
	},
	{level: 1, name: "modeltool", what: "what a request asks its model's vendor to do by itself", may: []string{"test/modelcalls"}},
	{level: 1, name: "toolsocket", what: "the way to pawl's own tools from inside of a run: a socket with a token, and the relay to it"},
	{level: 1, name: "spend", what: "what a run spends on models, funded before each call and capped"},
	{level: 1, name: "httpguard", what: "what every surface over HTTP refuses: other sites, other names, paths that lead away, clients that do not read"},
	{level: 1, name: "output", what: "what commands print: fields, tables and JSON, without what a terminal would act on"},
	{level: 1, name: "transcript", what: "what happens in a run, as events without secrets"},
	{level: 1, name: "projection", what: "the files of a loop's memory, written from recorded changes"},
	{level: 1, name: "git", what: "hardened git on proc", may: []string{"git/program", "git/object", "git/index", "git/gitdir", "git/gitconfig", "git/hazard"}},
	{level: 1, name: "git/program", what: "the git program, started so that nothing else starts", only: []string{"loop", "proc", "waiting"}},
	{
		level: 1, name: "git/object", what: "blobs, trees and commits, read and written", may: []string{"git/program"},
		only: []string{"git/program", "loop", "safeopen"},
	},
	{level: 1, name: "git/index", what: "git's index files, read as data and written", may: []string{"git/object"}, only: []string{"git/object"}},
	{level: 1, name: "git/gitdir", what: "where a repository is, read without git", only: []string{"loop", "safeopen"}},
	{level: 1, name: "git/gitconfig", what: "git's configuration format, read as data", pure: true, only: []string{}},
	{
		level: 1, name: "git/hazard", what: "what a repository holds that could act", may: []string{"git/gitdir", "git/gitconfig"},
		only: []string{"git/gitdir", "git/gitconfig", "safeopen", "lazyregexp"},
	},
	{level: 1, name: "git/mirror", what: "what a base commit reaches, packed for sandboxes", may: []string{"git"}},
	{level: 1, name: "test/gittest", what: "repositories for tests, and git as a user runs it", tests: true},
	{level: 1, name: "sandbox", what: "confinement on proc", may: []string{"sandbox/stage", "sandbox/stage/selftest"}},
	{
		level: 1, name: "sandbox/stage", what: "what a confined process does before its program", leaf: true,
		only: []string{"proc/stage"}, init: "it runs in the re-executed binary, before the expensive inits",
	},
	{
		level: 1, name: "sandbox/stage/selftest", what: "what a program tries in a sandbox that is tested", leaf: true,
		init: "it runs in the re-executed binary, before the expensive inits",
	},

	{level: 2, name: "board", what: "boards, tasks, agents and what they say: limits, scores, readiness, order, hierarchy", pure: true},
	{level: 2, name: "definition", what: "formats ↔ `loop.Definition`, schemas"},
	{level: 2, name: "test/hostile", what: "definitions that are made to hurt whoever reads them", pure: true, tests: true},
	{level: 2, name: "event", what: "the store's feed of changes, followed"},
	{level: 2, name: "forge", what: "`gh`: labels, pull requests, comments"},
	{level: 2, name: "guidance", what: "the repository's instructions for agents, as a commit has them"},
	{level: 2, name: "agent", what: "driver contract"},
	{level: 2, name: "agent/*", what: "one driver each", may: []string{"agent", "test/agenttest"}},
	{level: 2, name: "test/agenttest", what: "the suite that every driver passes", may: []string{"agent"}, tests: true},
	{level: 2, name: "meter", what: "egress proxy"},
	{level: 2, name: "meter/model", what: "the way to a model: calls forwarded with the real key", may: []string{"meter"}},
	{level: 2, name: "bootrepo", what: "the contract of a boot repository: fetched, kept by commit, held against its link"},
	{level: 2, name: "notify", what: "messages to people: what they are told, the channels, deliveries", may: []string{"event"}},
	{level: 2, name: "probe", what: "what a machine and a repository offer: programs, agents, commands that test"},
	{level: 2, name: "probe/toolchain", what: "what must be visible so that a program runs, caches, set-up", may: []string{"probe"}},

	{level: 3, name: "budget", what: "what one run may spend: reserved, widened, settled"},
	{level: 3, name: "node", what: "this machine among those that share a store: its id, its processes, where workspaces lie"},
	{level: 3, name: "gate", what: "checks that the runtime runs to decide"},
	{level: 3, name: "workspace", what: "trees, setup layer, toolchains"},
	{level: 3, name: "workspace/toolset", what: "toolchains, caches and prepared dependencies", clock: "it marks when a set-up was last used"},
	{
		level: 3, name: "workspace/filled", what: "what trees only name, from the clone: submodules, files of git LFS",
		may: []string{"workspace", "workspace/toolset"},
	},
	{
		level: 3, name: "runenv", what: "where programs work: copies, what is beside them, limits, gates on a clean copy",
		may: []string{"gate", "workspace", "workspace/filled", "workspace/toolset"},
	},
	{level: 3, name: "gatecheck", what: "the gates of a definition, tried on its base without a run", may: []string{"gate", "runenv", "workspace/filled"}},
	{level: 3, name: "turn", what: "who acts, in which home, with which credential, and what it came to", may: []string{"credential"}},
	{level: 3, name: "credential", what: "keys that are injected, logins that are lent"},
	{level: 3, name: "bootdef", what: "the loop `boot` of a workspace, made from AGENT_LINK.md and its loop.config.yaml"},
	{level: 3, name: "orgdef", what: "the loops of an organisation's agents, made from agents/*/LOOP.md and org.yaml"},
	{level: 3, name: "effect", what: "outbox and kinds"},
	{level: 3, name: "memory", what: "what was learned: when it counts, and which of it fits a goal"},

	{level: 4, name: "engine", what: "one run through the cycle"},

	{level: 5, name: "protocol/*", what: "one way each of keeping memory and picking work"},
	{level: 5, name: "catalog", what: "the loops of a workspace, by name and listed", may: []string{"protocol/spine"}},
	{level: 5, name: "lookup", what: "loops, runs and open approvals of a workspace, found by what people call them", may: []string{"catalog", "protocol/spine"}},
	{level: 5, name: "trigger", what: "due loops fire, once"},
	{level: 5, name: "sim", what: "loops on a clock of its own: what fires, collides and costs, without acting", may: []string{"trigger"}},
	{level: 5, name: "test/boardload", what: "many agents of boards that claim at once", tests: true, may: []string{"protocol/heartbeat"}},
	{level: 5, name: "boardsim", what: "agents of boards in memory: real heartbeats, drawn attempts", may: []string{"orgsim", "protocol/heartbeat", "sim"}},
	{level: 5, name: "orgsim", what: "organisations of agents in memory: real cycles, drawn attempts", may: []string{"protocol/tasks", "sim"}},
	{level: 5, name: "listen", what: "events that fire loops are noticed: files, refs, webhooks, ends of runs, commands"},
	{level: 5, name: "queue", what: "queued runs are handed to those who execute them"},

	{level: 6, name: "runs", what: "verbs: run, stop, list, explain; recovery, and work that is on no branch"},
	{level: 6, name: "nodes", what: "verbs: the machines that share a store; name one, forget one"},
	{level: 6, name: "specs", what: "verbs: makes, changes, exports and removes LoopSpecs, and says how each stands"},
	{level: 6, name: "notices", what: "verbs: where notices are sent, whether that works, whether they were delivered"},
	{level: 6, name: "budgets", what: "verbs: what may be spent, and prices"},
	{level: 6, name: "memories", what: "verbs: what was learned; add, approve, forget, explain"},
	{level: 6, name: "loops", what: "verbs: make, check, list, pause, resume, kill, forget", may: []string{"budgets", "runs"}},
	{level: 6, name: "approvals", what: "verbs: what waits for a person; approve, reject, land", may: []string{"runs"}},
	{level: 6, name: "audit", what: "verbs: the audit chain verified and copied, run logs made from it"},
	{level: 6, name: "roster", what: "verbs: who acts, and the logins that are kept"},
	{level: 6, name: "boots", what: "verbs: makes and checks workspaces of the boot protocol, and says how each stands"},
	{level: 6, name: "orgs", what: "verbs: makes, checks, shows and imports organisations of agents"},
	{level: 6, name: "boards", what: "verbs: heartbeat boards, their tasks, agents, messages and resources; who takes what, and why", may: []string{"roster"}},
	{level: 6, name: "mcp/registration", what: "verbs: pawl entered into the configuration of programs that use MCP servers"},
	{level: 6, name: "setup", what: "verbs: what a machine and a repository offer, and what a loop needs", may: []string{"budgets", "loops", "roster", "runs"}},
	{
		level: 6, name: "test/verbtest", what: "all verbs on a real repository and store, for their tests", tests: true, may: []string{"approvals", "audit", "budgets", "loops", "memories", "roster", "runs", "setup"},
		clock: "it waits for processes", sql: "it edits a store behind its back",
	},
	{level: 6, name: "demo", what: "the repository and the scripted agent of `pawl demo`"},

	{level: 7, name: "api", what: "HTTP+JSON, SSE"},
	{level: 7, name: "mcp", what: "the verbs for agents", may: []string{"api"}},

	{level: 8, name: "client", what: "socket or in-process"},
	{level: 8, name: "web", what: "dashboard"},
	{level: 8, name: "tui", what: "terminal"},
	{level: 8, name: "daemon", what: "what is always on: New, Start, Stop"},

	{level: 9, name: "compose", what: "the composition root: joins the parts", clock: composes},

	{level: 10, name: "cli", what: "the command line", clock: composes},

	{level: 11, name: "cmd/pawl", what: "calls `cli.Main`", only: []string{"cli"}},

	{level: 12, name: "bench", what: "measures against the targets; nothing imports it", clock: "it measures"},
	{level: 12, name: "test/agente2e", what: "every real agent program through a whole run; nothing imports it"},
	{
		level: 12, name: "test/mutants", what: "plants small bugs and counts those that a test notices; nothing imports it",
		may: []string{"test/mutants/mutant"}, exec: "it builds and runs tests", clock: "it measures tests",
	},
	{level: 12, name: "test/sampled", what: "names the tests that try only a sample; nothing imports it", only: []string{}},
	{level: 12, name: "test/mutants/mutant", what: "the switch of a planted bug, imported by copies of sources only", only: []string{}},
	{level: 12, name: "arch", what: "these rules; nothing imports it"},
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
