package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryWrapperRunsWhatStandsBehindItsOptions(t *testing.T) {
	for name, w := range wrappers {
		first := strings.Repeat(" first", w.skipped)
		lines := []string{name + first, "/usr/bin/" + name + first, name + " -x" + first, name + " --long=1 --" + first}
		for option := range strings.FieldsSeq(w.valued) {
			lines = append(lines, name+" "+option+" value"+first)
			if !strings.HasPrefix(option, "--") {
				lines = append(lines, name+" "+option+"value"+first, name+" -x"+option[1:]+" value"+first)
			}
		}
		for _, line := range lines {
			got, ok := Behind(strings.Fields(line + " ./check.sh -n 1"))
			if diff := cmp.Diff([]string{"./check.sh", "-n", "1"}, got); !ok || diff != "" {
				t.Errorf("behind %s (-want +got):\n%s", line, diff)
			}
			if got, ok := Behind(strings.Fields(line)); !ok || got != nil {
				t.Errorf("behind %s = %q, %t, want a wrapper around nothing", line, got, ok)
			}
		}
	}
}

func TestWhatStandsBehindAWrapper(t *testing.T) {
	for name, c := range map[string]struct {
		words, want []string
		ok          bool
	}{
		"nothing":                        {},
		"no wrapper":                     {words: []string{"sh", "check.sh"}},
		"variables":                      {[]string{"env", "-i", "A=1", "B=2", "sh", "x"}, []string{"sh", "x"}, true},
		"a text of several words":        {[]string{"env", "-S", "A=1 sh", "x"}, []string{"sh", "x"}, true},
		"words that only it knows":       {[]string{"nice", "", "", "sh", ""}, []string{"sh", ""}, true},
		"a time that only it knows":      {[]string{"timeout", "", "sh"}, []string{"sh"}, true},
		"a time":                         {[]string{"timeout", "-k", "5", "1.5m", "sh"}, []string{"sh"}, true},
		"an option without its value":    {words: []string{"timeout", "-k"}, ok: true},
		"a wrapper, which is a caller's": {[]string{"setsid", "nice", "sh"}, []string{"nice", "sh"}, true},
	} {
		got, ok := Behind(c.words)
		if diff := cmp.Diff(c.want, got); ok != c.ok || diff != "" {
			t.Errorf("%s: ok = %t, words (-want +got):\n%s", name, ok, diff)
		}
	}
}

func TestAWrapperIsSeenThroughOnlyWhereNothingDeceives(t *testing.T) {
	for name, c := range map[string]struct {
		line     string
		at       int
		assigned []string
		clear    bool
	}{
		"no wrapper":                     {line: "ls x"},
		"a wrapper that nobody knows":    {line: "flock x ls"},
		"variables":                      {"env -i A=1 B=2 sh x", 4, []string{"A=1", "B=2"}, true},
		"a variable without a program":   {"env A=1", 2, []string{"A=1"}, true},
		"a text of several words":        {line: "env -S sh x"},
		"another folder":                 {line: "env -C / sh x"},
		"a name that is taken away":      {"env -uA sh", 2, nil, true},
		"a long name that is taken away": {"env --unset A sh", 3, nil, true},
		"its value in the word":          {"env --unset=A sh", 2, nil, true},
		"no option of nice's":            {"nice A=1 sh", 1, nil, true},
		"a number":                       {"nice -5 sh", 2, nil, true},
		"an option that is not known":    {line: "timeout --other 5 sh"},
		"a flag with a value":            {line: "timeout --verbose=1 5 sh"},
		"a time":                         {"timeout -k 1 5 sh -c", 4, nil, true},
		"a time alone":                   {"timeout 5", 2, nil, true},
		"the end of the options":         {"command -- sh", 2, nil, true},
		"an option behind the program":   {"command sh -x", 1, nil, true},
		"a value that is missing":        {line: "nice -n"},
		"several letters":                {"xargs -0rn 1 sh", 3, nil, true},
		"a file of words":                {line: "xargs -a x sh"},
	} {
		at, assigned, clear := Through(strings.Fields(c.line))
		if diff := cmp.Diff(c.assigned, assigned); at != c.at || clear != c.clear || diff != "" {
			t.Errorf("%s: Through(%s) = %d, %q, %t, want %d, %q, %t", name, c.line, at, assigned, clear, c.at, c.assigned, c.clear)
		}
	}
}
