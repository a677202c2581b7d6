package policy

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/shell"
)

// Rules of answers to calls, beside the codes of verdicts, which stand for
// edits that a scope decided about. Scripts match on them.
const (
	RuleRead        = "read"
	RuleTalk        = "talk"
	RuleRun         = "run"          // the sandbox bounds what a command can do
	RuleBeside      = "beside"       // a folder beside the tree that is written and never landed
	RuleNetwork     = "network"      // a host is in the definition's list, or in none
	RuleOutside     = "outside"      // neither in the tree nor in a folder beside it
	RuleReportOnly  = "report_only"  // a loop of tier L1 changes nothing
	RuleUnnamed     = "unnamed"      // an edit without a file, a command without words
	RuleUnknownTool = "unknown_tool" // a tool that no definition names
	RuleDenied      = "denied"       // the guardrails of the definition forbid it by name
	RuleNUL         = "nul"          // a NUL, at which other programs stop reading
	RuleRejected    = "rejected"     // a person said no to exactly these words
)

// Guard answers what an agent asks leave for. It is where an agent hears early
// what the sandbox and the check of its changes enforce anyway, and where it is
// told that a human has to say yes: safety does not come from it. The zero
// Guard allows reading, commands and talk.
type Guard struct {
	Scope      Scope
	Root       string   // of the tree, absolute, without links, as the agent sees it
	Beside     []string // folders outside of the scope that may be written, as Root: the one for temporary files, the one with the report
	ReportOnly bool     // no change is kept: no edit in the tree is allowed
	Hosts      []string // from which may be fetched: NAME, *.NAME for all names below it, either with :PORT
	Tools      []string // names of tools that a definition allows though nothing is known of them
	Denies     []loop.Denial

	Rejected     []Rejection
	Capabilities [][]string // first words of commands that the runtime runs without a question, beside AutoRuns
}

// Rejection is a person's no to a command.
type Rejection struct {
	Argv     []string
	By, Note string
}

// Words say who said no, and why.
func (r Rejection) Words() string {
	if r.Note == "" {
		return r.By + " said no to it"
	}
	return fmt.Sprintf("%s said no to it: %s", r.By, r.Note)
}

// unlessRejected is an answer to a command, and a refusal where a person would be asked who
// has said no to exactly these words.
func (g Guard) unlessRejected(argv []string, a Answer) Answer {
	at := slices.IndexFunc(g.Rejected, func(r Rejection) bool { return slices.Equal(r.Argv, argv) })
	if !a.Ask || at < 0 {
		return a
	}
	return Answer{Rule: RuleRejected, Words: fmt.Sprintf(
		"Denied: %s. It is not asked again; do without, or say in your report that it cannot be done so.", g.Rejected[at].Words())}
}

// Judge answers one call. What Answer.Words says is for the agent.
func (g Guard) Judge(c Call) Answer {
	if hasNUL(c) {
		return Answer{Rule: RuleNUL, Words: "Denied: it has a NUL character in it. Write it again without."}
	}
	switch c.Kind {
	case CallRead:
		return allow(RuleRead, "Reading is allowed.")
	case CallTalk:
		return allow(RuleTalk, "It changes nothing outside of the conversation.")
	case CallEdit:
		return g.judgeEdit(c.Paths)
	case CallRun:
		return g.judgeRun(c)
	case CallFetch:
		return g.judgeFetch(c.Host)
	case CallOther:
	}
	if slices.Contains(g.Tools, c.Tool) {
		return allow(RuleTalk, "The loop's definition names this tool.")
	}
	return Answer{Rule: RuleUnknownTool, Words: fmt.Sprintf("Denied: the loop's definition does not name the tool %q. Work with files and commands instead.", c.Tool)}
}

// Argv is the program that an approval of a call would run, with its arguments.
// It is empty for a call that is not a command.
func (Guard) Argv(c Call) []string {
	switch {
	case c.Kind != CallRun:
		return nil
	case len(c.Argv) > 0:
		return slices.Clone(c.Argv)
	case c.Command == "":
		return nil
	}
	return []string{"/bin/sh", "-c", c.Command}
}

func allow(rule, words string) Answer { return Answer{Allow: true, Rule: rule, Words: words} }

func hasNUL(c Call) bool {
	has := func(s string) bool { return strings.ContainsRune(s, 0) }
	return slices.ContainsFunc([]string{c.Tool, c.Command, c.Host, c.Detail}, has) || slices.ContainsFunc(c.Paths, has) || slices.ContainsFunc(c.Argv, has)
}

// judgeEdit allows an edit if all of its files may be edited.
func (g Guard) judgeEdit(paths []string) Answer {
	if len(paths) == 0 {
		return Answer{Rule: RuleUnnamed, Words: "Denied: the edit does not say which file it changes. Name the file."}
	}
	var last Answer
	for _, p := range paths {
		if last = g.editOne(p); !last.Allow {
			return last
		}
	}
	return last
}

func (g Guard) editOne(name string) Answer {
	rel, folder := g.locate(name)
	switch {
	case folder == "":
		return Answer{Rule: RuleOutside, Words: fmt.Sprintf(
			"Denied: %s is outside of the tree. Write below %s only, and what you have to say into your report.", name, g.Root)}
	case folder != g.Root:
		return allow(RuleBeside, "Files beside the tree may be written; they are not kept.")
	case g.ReportOnly:
		return Answer{Rule: RuleReportOnly, Words: fmt.Sprintf(
			"Denied: this loop only reports, and what is changed in the tree is thrown away. Leave %s as it is and say in your report what you would change.", rel)}
	}
	v := g.Scope.Judge(rel)
	if v.Allowed {
		return allow(string(v.Code), "Allowed by "+v.Rule+".")
	}
	return Answer{Rule: string(v.Code), Words: fmt.Sprintf(
		"Denied: %s: %s. Change only what the scope allows; if the work cannot be done so, end your turn and say so in your report.", rel, v.Rule)}
}

// locate is where a path leads: which of the root and the folders beside it it
// is in, the innermost if there are several, and its name there. Folder is
// empty for a path in none of them.
func (g Guard) locate(name string) (rel, folder string) {
	if name == "" || g.Root == "" || name == "~" || strings.HasPrefix(name, "~/") || strings.Contains(name, "://") {
		return "", ""
	}
	if !path.IsAbs(name) {
		name = path.Join(g.Root, name)
	}
	name = path.Clean(name)
	for _, f := range append([]string{g.Root}, g.Beside...) {
		if r, ok := inFolder(f, name); ok && len(f) > len(folder) {
			rel, folder = r, f
		}
	}
	return rel, folder
}

// inFolder returns the name of a clean path in a folder, "." for the folder.
func inFolder(folder, name string) (string, bool) {
	folder = path.Clean(folder)
	switch {
	case !path.IsAbs(folder):
		return "", false
	case name == folder:
		return ".", true
	case folder == "/":
		return name[1:], true
	}
	return strings.CutPrefix(name, folder+"/")
}

func (g Guard) judgeRun(c Call) Answer {
	if c.Command == "" && len(c.Argv) == 0 {
		return Answer{Rule: RuleUnnamed, Words: "Denied: the call does not say which command it runs. Name the command."}
	}
	l, found := leavingLine(c.Command)
	if len(c.Argv) > 0 {
		l, found = leavingArgv(c.Argv)
	}
	if what := g.deniedBy(c, l, found); what != "" {
		return Answer{Rule: RuleDenied, Words: fmt.Sprintf("Denied: %s, which the loop's guardrails forbid. Do without; if it cannot be done so, say so in your report.", what)}
	}
	if !found {
		return allow(RuleRun, "Commands run in the sandbox.")
	}
	return g.unlessRejected(g.Argv(c), Answer{Ask: true, Rule: l.rule, Words: fmt.Sprintf(
		"This needs a human: %s %s. It is recorded and was not run; do not look for another way. "+
			"End your turn now and say in your report what you wanted, and why.", l.name(), l.does)})
}

// deniedBy says what a command does that is denied, also where a human would be asked
// otherwise; empty: nothing.
func (g Guard) deniedBy(c Call, l leaving, leaves bool) string {
	text := strings.Join(append(c.Argv[:len(c.Argv):len(c.Argv)], c.Command), " ")
	for _, d := range g.Denies {
		switch {
		case d == loop.DenyDestructive:
			if word := irreversibleWord(c); word != "" {
				return "`" + word + "` cannot be taken back"
			}
		case !leaves:
		case d == loop.DenyPush && l.rule == RulePush, d == loop.DenyMerge && l.rule == RuleForge, d == loop.DenyDeploy && l.rule == RuleDeploy, d == loop.DenyNetwork,
			d == loop.DenyForcePush && l.rule == RulePush && forced.MatchString(text):
			return l.name() + " " + l.does
		}
	}
	return ""
}

// forced matches a push that replaces what is there.
var forced = lazyregexp.New(`(^|\s)(-f|--force\S*|--mirror|--delete|\+\S+)(\s|$)`)

// irreversibleWord returns the first word of a command whose effect cannot be taken back;
// empty: it has none. Of a line that is not understood each word counts.
func irreversibleWord(c Call) string {
	commands := [][]string{c.Argv}
	if len(c.Argv) == 0 {
		commands = shell.Commands(c.Command)
	}
	if len(commands) == 0 {
		commands = [][]string{splitLoose(c.Command)}
	}
	for _, words := range commands {
		if len(words) > 0 && shells[path.Base(words[0])] { // Its line is one of its words.
			words = splitLoose(strings.Join(words, " "))
		}
		for _, w := range words {
			if isIrreversible(w) {
				return w
			}
		}
	}
	return ""
}

// splitLoose splits a line at everything that may end a word.
func splitLoose(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()`$\"'", r) })
}

func (g Guard) judgeFetch(host string) Answer {
	switch {
	case host == "":
		return Answer{Rule: RuleNetwork, Words: "Denied: it does not say from which host it fetches. Work with what is in the tree."}
	case isLoopback(host) || slices.ContainsFunc(g.Hosts, func(entry string) bool { return coversHost(entry, host) }):
		return allow(RuleNetwork, "The host is allowed.")
	}
	return Answer{Rule: RuleNetwork, Words: fmt.Sprintf(
		"Denied: the loop may not fetch from %s. Do without; if it cannot be done so, say in your report that a person has to add "+
			"`network: [%s]` to the loop's definition.", host, host)}
}

// coversHost reports whether an entry of a definition's list of hosts covers one,
// which may have a port.
func coversHost(entry, host string) bool {
	entryName, entryPort := splitHost(entry)
	name, port := splitHost(host)
	if entryPort == "" && port != "" && port != "443" && port != "80" || entryPort != "" && entryPort != port {
		return false
	}
	if above, ok := strings.CutPrefix(entryName, "*."); ok {
		return above != "" && strings.HasSuffix(name, "."+above)
	}
	return name == entryName && name != ""
}

// isLoopback reports whether a host, with or without a port, is the machine itself.
func isLoopback(host string) bool {
	name, _ := splitHost(host)
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.IsLoopback()
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// splitHost folds a host and takes its port off.
func splitHost(host string) (name, port string) {
	host = strings.ToLower(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return host, ""
	}
	if inner, after, ok := strings.Cut(strings.TrimPrefix(host, "["), "]"); ok && host[0] == '[' {
		return inner, strings.TrimPrefix(after, ":")
	}
	name, port, _ = strings.Cut(host, ":")
	return strings.TrimSuffix(name, "."), port
}
