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
