package bootlink

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestEachRowOfTheTableOfVersions(t *testing.T) {
	for name, c := range map[string]struct {
		expected, found string
		compatible      []string
		want            Compatibility
	}{
		"equal":                        {"1.0.0", "1.0.0", []string{"1.0.x"}, Compatibility{OK: true, Reason: loop.ReasonVersionEqual}},
		"another patch":                {"1.0.0", "1.0.7", []string{"1.0.x"}, Compatibility{OK: true, Reason: loop.ReasonVersionPatch}},
		"a higher patch":               {"1.0.9", "1.0.7", []string{"1.0.x"}, Compatibility{OK: true, Reason: loop.ReasonVersionPatch}},
		"a lower minor is expected":    {"1.0.0", "1.2.0", []string{"1.x"}, Compatibility{OK: true, Warning: true, Reason: loop.ReasonVersionBehind}},
		"a higher minor is expected":   {"1.3.0", "1.2.0", []string{"1.x"}, Compatibility{Reason: loop.ReasonVersionAhead}},
		"a higher major is found":      {"1.0.0", "2.0.0", []string{"1.0.x", "2.0.x"}, Compatibility{Reason: loop.ReasonVersionMajor}},
		"a lower major is found":       {"2.0.0", "1.9.0", []string{"x"}, Compatibility{Reason: loop.ReasonVersionMajor}},
		"not among the compatible":     {"1.0.0", "1.2.0", []string{"1.1.x", "1.2.x"}, Compatibility{Reason: loop.ReasonVersionUnlisted}},
		"no compatible ones are named": {"1.0.0", "1.0.0", nil, Compatibility{Reason: loop.ReasonVersionUnlisted}},
	} {
		t.Run(name, func(t *testing.T) {
			expected, _ := ParseVersion(c.expected)
			found, _ := ParseVersion(c.found)
			got := Compare(expected, BootVersion{found, c.compatible})
			if !strings.Contains(got.Detail, c.expected) || !strings.Contains(got.Detail, c.found) {
				t.Errorf("the detail %q does not name both versions", got.Detail)
			}
			if c.compatible == nil && !strings.Contains(got.Detail, "lists no version") {
				t.Errorf("the detail is %q", got.Detail)
			}
			got.Detail = ""
			if got != c.want || got.Reason.Sentence() == "" {
				t.Errorf("Compare = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAVersionFileIsReadStrictly(t *testing.T) {
	got, findings := ParseBootVersion([]byte(`{"bootVersion": "1.0.0", "lastUpdated": "x", "compatibleWorkspaces": ["1.0.x", "1.*", "v1.2.3"]}`))
	want := BootVersion{Version{1, 0, 0}, []string{"1.0.x", "1.*", "v1.2.3"}}
	if diff := cmp.Diff(want, got); diff != "" || len(findings) > 0 {
		t.Error(findings, diff)
	}
	for src, want := range map[string][]string{
		`{`:  {"1:1: not JSON: unexpected end of JSON input"},
		`[]`: {"1:1: is a list, not an object"},
		`{}`: {"1:1: bootVersion is missing", "1:1: compatibleWorkspaces is missing"},
		`{"bootVersion": 1, "bootVersion": 2, "compatibleWorkspaces": []}`: {`1:20: the name "bootVersion" is in the object twice`},
		"{\"bootVersion\": \"1.0\",\n \"compatibleWorkspaces\": [\"^1.0.0\", 1, \"1.02.x\"]}": {
			"1:17: bootVersion: '1.0' is not a version; write three numbers, like 1.0.0",
			"2:27: compatibleWorkspaces: '^1.0.0' is not a version; write numbers or x, like 1.0.x",
			"2:37: compatibleWorkspaces: '1' is not a version; write numbers or x, like 1.0.x",
			"2:40: compatibleWorkspaces: '1.02.x' is not a version; write numbers or x, like 1.0.x",
		},
		`{"bootVersion": "1.0.0", "compatibleWorkspaces": "1.0.x"}`: {"1:50: compatibleWorkspaces is text, not a list"},
	} {
		_, findings := ParseBootVersion([]byte(src))
		var got []string
		for _, f := range findings {
			got = append(got, f.String())
			if f.Reason != loop.ReasonBootMalformed {
				t.Errorf("%s: reason %s", src, f.Reason)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", src, diff)
		}
	}
}

func TestAContractFolderIsTheOneWithRulesAndSchemasBesideTheVersion(t *testing.T) {
	for name, c := range map[string]struct {
		files  []string
		folder string
		found  bool
	}{
		"the top":                  {[]string{"VERSION.json", "contract/AGENT_RULES.md", "schemas/a.json", "x/VERSION.json", "x/contract/a", "x/schemas/a"}, "", true},
		"below the top":            {[]string{"README.md", "main/agent-boot/VERSION.json", "main/agent-boot/contract/deep/a.md", "main/agent-boot/schemas/a.json", "VERSION.json"}, "main/agent-boot", true},
		"two":                      {[]string{"a/VERSION.json", "a/contract/x", "a/schemas/x", "b/VERSION.json", "b/contract/x", "b/schemas/x"}, "", false},
		"none":                     {[]string{"VERSION.json", "contract/x"}, "", false},
		"a file that is so called": {[]string{"VERSION.json", "contract", "schemas/x"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if folder, found := ContractFolder(c.files); folder != c.folder || found != c.found {
				t.Errorf("ContractFolder = %q %v, want %q %v", folder, found, c.folder, c.found)
			}
		})
	}
	got := MissingFiles("b", []string{"b/VERSION.json", "b/schemas/state-schema.json", "contract/AGENT_RULES.md"})
	if diff := cmp.Diff([]string{"b/contract/AGENT_RULES.md", "b/schemas/todo-schema.json"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseBootVersion(f *testing.F) {
	f.Add([]byte(`{"bootVersion": "1.0.0", "compatibleWorkspaces": ["1.0.x", "x", "1"]}`))
	f.Add([]byte(`{"bootVersion": "99999999999999999999.0.0", "compatibleWorkspaces": ["-1", "", "1.x.x.x"]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		b, findings := ParseBootVersion(src)
		for _, one := range findings {
			if one.Line < 1 || one.Column < 1 || one.Message == "" {
				t.Fatalf("finding %+v", one)
			}
		}
		if len(findings) > 0 {
			return
		}
		if again, ok := ParseVersion(b.Version.String()); !ok || again != b.Version {
			t.Fatalf("version %v", b.Version)
		}
		if got := Compare(b.Version, b); got.Reason != loop.ReasonVersionEqual && got.Reason != loop.ReasonVersionUnlisted {
			t.Fatalf("a version is not equal to itself: %+v", got)
		}
	})
}
