package policy

import (
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// The programs that fetch, those that run what they read, and what may stand
// before one. Whoever wants to hide a download can; this finds the usual ways.
const (
	fetches = `\b(?:curl|wget|wget2|aria2c|axel|lynx|fetch|xh|httpie|iwr|irm|invoke-webrequest|invoke-restmethod|start-bitstransfer|downloadstring|urlopen|requests\.get)\b`
	runs    = `(?:[^\s|;&()]*/)?(?:(?:ba|z|k|mk|da|a|fi|c|tc)?sh|busybox|python[0-9.]*|perl|ruby|node|deno|bun|php|lua|pwsh|powershell|cmd|iex|invoke-expression|eval|source)\b`
	before  = `(?:(?:sudo|doas|env|exec|command|nohup|time|nice|xargs|then|do|-[ugU]\s+\S+|-\S*|\w+=\S*)\s+)*`
)

var downloads = lazyregexp.New(`(?i)` + strings.Join([]string{
	fetches + `.*\|&?\s*` + before + runs,                         // curl u | sudo sh
	`(?:\b` + runs + `|(?:^|[\s;&|])\.)\s.*<\(\s*` + fetches,      // bash <(curl u)
	`\b` + runs + `.*(?:\$\(|` + "`" + `)\s*` + fetches,           // sh -c "$(curl u)"
	`\b(?:iex|invoke-expression)\b.*` + fetches,                   // iex (iwr u)
	`\b(?:exec|eval|system|popen)\s*\(.*` + fetches,               // exec(urlopen(u).read())
	fetches + `.*(?:&&|;)\s*` + before + `(?:` + runs + `\s|\./)`, // curl -o f u && sh f
}, "|"))

// spaced and joined undo what a shell undoes before it looks for words.
var (
	spaced = lazyregexp.New(`\$\{?IFS\}?`)
	joined = strings.NewReplacer(`'`, "", `"`, "", `\`, "", "^", "")
)

// pipedDownload returns the first line of text, with its continuations, that
// runs what it downloads and that old does not have.
func pipedDownload(old, text string) string {
	had := map[string]bool{}
	for _, line := range commandLines(old) {
		had[line] = true
	}
	for _, line := range commandLines(text) {
		if !had[line] && downloads.MatchString(joined.Replace(spaced.ReplaceAllString(line, " "))) {
			return line
		}
	}
	return ""
}

// commandLines joins what a shell reads as one line: after a backslash, and
// around a pipe.
func commandLines(text string) []string {
	var lines []string
	open := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		bare := strings.TrimSuffix(line, `\`)
		if last := len(lines) - 1; last >= 0 && (open || strings.HasPrefix(line, "|")) {
			lines[last] += " " + bare
		} else {
			lines = append(lines, bare)
		}
		open = bare != line || strings.HasSuffix(line, "|") || strings.HasSuffix(line, "|&")
	}
	return lines
}
