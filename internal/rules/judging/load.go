package judging

import "github.com/pawl-run/pawl/internal/ground/lazyregexp"

// imports is how the text of a program says which files it loads.
type imports struct {
	form *lazyregexp.Regexp // its first group that matches is the name
	ends []string           // what may follow a name that has no ending
	dots bool               // a dot stands between folders
}

var (
	scriptImports = imports{
		form: lazyregexp.New(`(?:require\(|\bfrom|\bimport\(?)\s*["'](\.{1,2}/[^"'\s]+)["']`),
		ends: []string{"", ".js", ".mjs", ".cjs", ".ts", ".mts", ".json", "/index.js", "/index.ts", "/index.mjs"},
	}
	pythonImports = imports{form: lazyregexp.New(`(?m)^\s*(?:from|import)\s+([A-Za-z_][\w.]*)`), ends: []string{".py", "/__init__.py"}, dots: true}
	rubyImports   = imports{form: lazyregexp.New(`require_relative\s*\(?\s*["']([^"']+)["']`), ends: []string{".rb", ""}}
)

// runners are programs whose arguments are the tests that they run.
var runners = []string{"pytest", "py.test", "mocha", "_mocha", "ava", "tap", "tape", "bats", "prove", "rspec", "phpunit", "pest", "busted", "jasmine", "uvu", "zora"}

// configs are options that name a file by which a program judges.
var configs = []string{
	"--config", "--config-file", "--configfile", "--configuration", "--conf", "--rcfile", "--require", "--import", "--loader", "--setup-file", "--setupFilesAfterEnv",
	"--globalSetup", "--reporter", "--runner", "--testRunner", "--transform", "--resolver", "--confcutdir", "--ignore-path", "--rulesdir", "--plugin", "--bootstrap",
	"-exec", "-vettool", "--file", "--overlay", "-overlay",
}
