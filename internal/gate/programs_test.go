package gate

import (
	"strings"
	"testing"
)

func TestTheFilesThatALineRunsAreListed(t *testing.T) {
	for line, want := range map[string]string{
		"sh check.sh":          "check.sh",
		"./ci/check.sh --fast": "ci/check.sh",
		"ci/check.sh && python3 -u tools/x.py a.txt":   "ci/check.sh tools/x.py",
		"cd ci && ./check.sh":                          "**/check.sh",
		". ./env.sh; go test ./...":                    "env.sh",
		`bash -c "sh \"inner script.sh\""`:             "inner script.sh",
		`bash -c "sh 'inner script.sh'"`:               "inner script.sh",
		"env A=1 timeout 5m sh check.sh":               "check.sh",
		"if true; then (exec ./run.sh | tail -1); fi":  "run.sh",
		"go test ./... | tee out && grep -q x src/a":   "",
		"python -m pytest tests/":                      "",
		"node -e 1":                                    "",
		"/usr/bin/true":                                "",
		"../outside.sh":                                "",
		`sh "$SCRIPT"`:                                 "",
		"sh 'unfinished":                               "",
		"sh":                                           "",
		"/bin/sh check.sh":                             "check.sh",
		"sh -c":                                        "",
		"sh " + strings.Repeat("x", maxScript) + ".sh": "",
	} {
		if got := strings.Join(Programs(line), " "); got != want {
			t.Errorf("Programs(%.80q) = %q, want %q", line, got, want)
		}
	}
}

func FuzzProgramsAreNamesInTheTree(f *testing.F) {
	for _, line := range []string{"sh check.sh", "cd a && ./b", `bash -c "sh x"`, "env -i sh ./a//b/../c", "sh ../x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, p := range Programs(line) {
			if p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "../") || strings.ContainsAny(strings.TrimPrefix(p, "**/"), "*?[]{}") {
				t.Errorf("Programs(%q) lists %q", line, p)
			}
		}
	})
}
