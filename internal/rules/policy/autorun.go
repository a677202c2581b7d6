package policy

import (
	"slices"
	"strings"
)

// AutoRun is a command that the runtime runs for an agent without asking anybody.
type AutoRun struct {
	Argv  []string // its first words
	Reads bool     // it changes nothing: a loop that only reports may have it run
	Note  string   // what is looked at beside its name, for people

	prose bool   // its arguments are texts and names: none of them is a word of a command
	names names  // which arguments are names of files that it reads
	knows string // its options; see options
	only  bool   // an option that is not among them is refused
}

// names says which arguments of a command are names of files.
type names int

const (
	namesNone     names = iota
	namesAll            // all that are no options
	namesButFirst       // all but the first, unless an option has named that
	namesURL            // they are URLs
)

// AutoRuns are the commands that are run without a question where a definition says
// nothing about commands. Callers must not change it.
//
// The texts behind knows are options, each with what its value is: nothing for an option
// without one, ":" for any value, and behind that "r" for a file that is read, "w" for one
// that is written, "u" for a URL, "m" for the method of a request and "t" for a text that
// is none of a file's. An option with "?" needs a person, one with "!" is refused.
var AutoRuns = []AutoRun{
	{Argv: []string{"ls"}, Reads: true, prose: true, names: namesAll},
	{Argv: []string{"cat"}, Reads: true, prose: true, names: namesAll},
	{
		Argv: []string{"grep"}, Reads: true, prose: true, names: namesButFirst,
		knows: "-e:p --regexp:p -f:pr --file:pr -A: -B: -C: -m: -d: -D: --after-context: --before-context: --context: --max-count: --include: --exclude: --exclude-dir: --exclude-from:r",
	},
	{
		Argv: []string{"find"}, Reads: true, prose: true,
		Note: "`-delete` needs a person; what `-exec` and `-ok` run is judged, and what `-fprint` and `-fls` write",
	},
	{Argv: []string{"head"}, Reads: true, prose: true, names: namesAll, knows: "-n: -c: --lines: --bytes:"},
	{Argv: []string{"tail"}, Reads: true, prose: true, names: namesAll, knows: "-n: -c: -s: --lines: --bytes: --pid: --sleep-interval:"},
	{Argv: []string{"wc"}, Reads: true, prose: true, names: namesAll, knows: "--files0-from:r"},
	{Argv: []string{"echo"}, Reads: true, prose: true},
	{Argv: []string{"pwd"}, Reads: true, prose: true},
	{
		Argv: []string{"date"}, Reads: true, prose: true, only: true, Note: "not to set it",
		knows: "-d: --date: -u --utc --universal -R --rfc-email -I --iso-8601 --iso-8601: --rfc-3339:",
	},
	{Argv: []string{"whoami"}, Reads: true, prose: true},
	{Argv: []string{"env"}, Reads: true, prose: true, Note: "alone; what stands behind it is judged as a command"},
	{Argv: []string{"npm", "run"}, only: true, knows: npmOptions, Note: "the name of the script is judged, and its arguments; what the script does is not known"},
	{Argv: []string{"npm", "test"}, only: true, knows: npmOptions, Note: "likewise"},
	{Argv: []string{"npm", "build"}, only: true, knows: npmOptions, Note: "likewise"},
	{Argv: []string{"git", "status"}, Reads: true, prose: true, names: namesAll, knows: gitShows},
	{Argv: []string{"git", "log"}, Reads: true, prose: true, names: namesAll, knows: gitShows, Note: "`--output` is a write"},
	{Argv: []string{"git", "diff"}, Reads: true, prose: true, names: namesAll, knows: gitShows, Note: "`--output` is a write"},
	{
		Argv: []string{"git", "branch"}, Reads: true, prose: true, Note: "to delete, move, copy or force one needs a person",
		knows: "-d? -D? --delete? -m? -M? --move? -c? -C? --copy? -f? --force? -u:? --set-upstream-to:? --set-upstream? --unset-upstream? --edit-description!",
	},
	{
		Argv: []string{"curl"}, names: namesURL, only: true, Note: "from hosts of `network`; a request that sends something needs a person, `-o` is a write",
		knows: "-s --silent -S --show-error -f --fail --fail-with-body -L --location -I --head -i --include -v --verbose -k --insecure -g --globoff -4 -6 --ipv4 --ipv6 " +
			"--compressed -# --progress-bar -N --no-buffer --http1.1 --http2 --path-as-is -H:t --header:t -A: --user-agent: -e: --referer: -m: --max-time: --connect-timeout: " +
			"--retry: --retry-delay: --retry-max-time: --max-redirs: -r: --range: --url:u -o:w --output:w -D:w --dump-header:w -X:m --request:m -G -- " +
			"-d:? --data:? --data-raw:? --data-binary:? --data-urlencode:? --data-ascii:? -F:? --form:? --form-string:? -T:? --upload-file:? --json:? --get",
	},
	{
		Argv: []string{"wget"}, names: namesURL, only: true, Note: "from hosts of `network`, with `-O` or `--spider`; a request that sends something needs a person, `-O` is a write",
		knows: "-q --quiet -v --verbose -n: --no-verbose -S --server-response --spider --no-check-certificate -T: --timeout: -t: --tries: --header: -U: --user-agent: " +
			"-O:w --output-document:w --method:m --post-data:? --post-file:? --body-data:? --body-file:?",
	},
}

// AutoRunNames are the first words of the commands of the list, or of those that only read.
func AutoRunNames(onlyReads bool) []string {
	var list []string
	for _, c := range AutoRuns {
		if c.Reads || !onlyReads {
			list = append(list, strings.Join(c.Argv, " "))
		}
	}
	return list
}

const (
	npmOptions = "-s --silent --if-present --workspaces -w: --workspace:"
	gitShows   = "--output:w --ext-diff! --textconv! -O:r -S: -G: -n: --max-count: --author: --grep: --since: --until: --after: --before: --format: --pretty:"
)

// Irreversible are the words of commands whose effect cannot be taken back: a command
// with one of them needs a person. Callers must not change it.
var Irreversible = []string{
	"rm", "delete", "drop", "truncate", "force", "reset", "purge", "destroy", "sudo", "chmod", "chown", "rmdir", "unlink", "shred", "uninstall", "force-push", "--hard",
}

// isIrreversible reports whether a word is one of Irreversible, as a program with its
// folder, an option or a value of one.
func isIrreversible(word string) bool {
	word = strings.ToLower(word)
	name, value, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for part := range strings.FieldsFuncSeq(name+"/"+value, func(c rune) bool { return c == '/' || c == ':' }) {
		if slices.Contains(Irreversible, part) {
			return true
		}
	}
	return slices.Contains(Irreversible, word)
}

// option is one option that a command knows.
type option struct {
	value bool // it has a value
	kind  byte // of its value: r, w, u, m, t, or 0 for any
	first bool // it takes the place of the first argument
	asks  bool
	never bool
}

// findOption looks an option up among those that a command knows. What may be short for
// one that matters is that one, as programs accept the beginning of a long name.
func (c AutoRun) findOption(name string) (o option, known bool) {
	for text := range strings.FieldsSeq(c.knows) {
		bare := strings.TrimRight(text, "?!")
		full, kind, valued := strings.Cut(bare, ":")
		o := option{value: valued, first: strings.HasPrefix(kind, "p"), asks: strings.HasSuffix(text, "?"), never: strings.HasSuffix(text, "!")}
		if kind = strings.TrimPrefix(kind, "p"); kind != "" {
			o.kind = kind[0]
		}
		if full == name {
			return o, true
		}
		matters := o.asks || o.never || o.kind == 'w' || o.kind == 'r'
		if matters && len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(full, name) {
			return o, true
		}
	}
	return option{}, false
}
