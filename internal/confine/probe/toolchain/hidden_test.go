package toolchain

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAScriptOutsideOfTheProjectIsHidden(t *testing.T) {
	home := t.TempDir()
	project, tool := filepath.Join(home, "work"), filepath.Join(home, "tool")
	for _, file := range []string{"agent.sh", "work/agent.sh", "tool/agent.js"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, file), []byte("x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"~/agent.sh --fast":                       "~/agent.sh",
		"A=1 timeout 5 sh ~/agent.sh":             "~/agent.sh",
		"cd src && sh " + home + "/agent.sh":      home + "/agent.sh",
		"python3.12 " + home + "/agent.sh":        home + "/agent.sh",
		home + "/agent.sh":                        "", // Shown by itself.
		"sh " + home + "/none.sh":                 "",
		"sh " + project + "/agent.sh":             "",
		"sh agent.sh":                             "",
		"sh -c 'echo " + home + "/agent.sh'":      "",
		"node " + tool + "/agent.js":              "",
		"test -e " + home + "/agent.sh && ./a.sh": "",
		"sh /etc/passwd":                          "",
	} {
		if got := HiddenFile(line, home, project, []Toolchain{{Bind: []string{tool}}}); got != want {
			t.Errorf("Hidden(%s) = %q, want %q", line, got, want)
		}
	}
}
