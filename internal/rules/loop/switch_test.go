package loop

import (
	"strings"
	"testing"
)

func TestTheSwitchIsEveryPathThatIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		".loops/keep-green/PAUSED exists, OR the loop-pause label is set": ".loops/keep-green/PAUSED",
		"when /tmp/STOP appears":                "/tmp/STOP",
		"`touch .loops/PAUSED`, or ops/./stop.": ".loops/PAUSED ops/stop",
		"(see \"ops/switch/off\")":              "ops/switch/off",
		"~/stop":                                "~/stop",
		"./PAUSED":                              "PAUSED",
		".loops/x/":                             ".loops/x",
		"see https://x.test/a or run/off":       "run/off",
		"the loop-pause label":                  "",
		"a / b, or stop/":                       "",
		"PAUSED":                                "",
		"":                                      "",
	} {
		d := Definition{KillSwitch: text}
		if got := strings.Join(d.SwitchPaths(), " "); got != want || d.NamesLabel() != strings.Contains(text, "label") {
			t.Errorf("%q: paths %q, label %v; want %q", text, got, d.NamesLabel(), want)
		}
	}
}
