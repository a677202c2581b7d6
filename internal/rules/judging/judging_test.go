package judging

import (
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// programs are what a line itself names, in a tree without files.
func programs(line string) []string { return Follow(nil, "verify", line).Programs }

func TestTheFilesThatALineRunsAreListed(t *testing.T) {
	for line, want := range map[string]string{
		"sh check.sh":          "check.sh",
		"./ci/check.sh --fast": "ci/check.sh",
		"ci/check.sh && python3 -u tools/x.py a.txt":   "ci/check.sh tools/x.py",
		"cd ci && ./check.sh":                          "check.sh ci/check.sh",
		". ./env.sh; go test ./...":                    "env.sh",
		`bash -c "sh \"inner script.sh\""`:             "inner script.sh",
		`bash -c "sh 'inner script.sh'"`:               "inner script.sh",
		"env A=1 timeout 5m sh check.sh":               "check.sh",
		"if true; then (exec ./run.sh | tail -1); fi":  "run.sh",
		"go test ./... | tee out && grep -q x src/a":   "",
		"python -m pytest tests/":                      "pytest.* pytest/**",
		"node -e 1":                                    "",
		"/usr/bin/true":                                "",
		"../outside.sh":                                "",
		`sh "$SCRIPT"`:                                 "",
		"sh 'unfinished":                               "",
		"sh":                                           "",
		"/bin/sh check.sh":                             "check.sh",
		"sh -c":                                        "",
		"bash -e -o pipefail check.sh":                 "check.sh",
		"bash -euo pipefail +x check.sh":               "check.sh",
		"cd \"$X\" && ./check.sh":                      "**/check.sh check.sh",
		"sh -e check.sh":                               "check.sh",
		`sh -ec "cd ci; sh a.sh"`:                      "a.sh ci/a.sh",
		`eval "sh check.sh"`:                           "check.sh",
		"tools/time -p ./check.sh":                     "check.sh tools/time",
		"tools/sh check.sh":                            "check.sh tools/sh",
		"command cd ci; ./a.sh":                        "a.sh ci/a.sh",
		"env -C ci ./a.sh":                             "a.sh ci/a.sh",
		"setsid env --chdir=ci sh a.sh":                "a.sh ci/a.sh",
		"env -S 'A=1 sh' a.sh":                         "a.sh",
		"time":                                         "",
		"sh " + strings.Repeat("x", (256<<10)) + ".sh": "",
	} {
		if got := strings.Join(programs(line), " "); got != want {
			t.Errorf("programs(%.80q) = %q, want %q", line, got, want)
		}
	}
}

// A wrapper that was not known hid the file behind it from the list of what is
// protected.
func TestAFileBehindAnyWrapperIsListed(t *testing.T) {
	for _, wrapper := range []string{
		"builtin", "chronic", "chrt -r 5", "command", "doas -u nobody", "env -i A=1", "env -u A", "exec -a name", "flock lock",
		"ionice -c 3", "nice -n 5", "nice -5", "nohup", "setarch -R", "setsid", "setsid -w", "stdbuf -oL -e 0", "sudo -u nobody -E", "taskset 1",
		"time -p", "timeout -k 5 60", "timeout --signal=KILL 5m", "unbuffer", "unshare -n", "xargs -n 1 -P 4", "xvfb-run -a -s '-screen 0'",
		"setsid nice -n 5 env A=1", "/usr/bin/setsid", "sudo --",
	} {
		for _, line := range []string{wrapper + " ./check.sh", wrapper + " sh check.sh x"} {
			if got := strings.Join(programs(line), " "); got != "check.sh" {
				t.Errorf("programs(%q) = %q, want check.sh", line, got)
			}
		}
	}
}

func FuzzProgramsAreGlobsInTheTree(f *testing.F) {
	for _, line := range []string{
		"sh check.sh", "cd a && ./b", `bash -c "sh x"`, "env -i sh ./a//b/../c", "setsid env -S './a b' -C x", "sh ../x", "make -C a b", "npm run x:*",
		"find a -name '*.[ch]' -exec sh {} +", "for x in a b; do $x/y; done", "go run ./x/{a,b}", "python -m a.b",
	} {
		f.Add(line)
	}
	tree := files{
		"Makefile": "a: b\n\tsh $@ $(wildcard *)\n%: x\n\t$*\n", "package.json": `{"scripts":{"x:y":"sh $1","test":"npm run x:*"}}`, "a": "$0 $1 $@", "x": "sh a x; ./x",
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, p := range Follow(tree, "verify", line).Programs {
			outside := p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "../") || strings.ContainsAny(p, "[]{}\\\x00\x01\x02\x03")
			if outside || !doublestar.ValidatePattern(p) || len(p) > 1024 || strings.Trim(p, "*?/.") == "" {
				t.Errorf("Follow(%q) lists %q", line, p)
			}
		}
	})
}
