package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAttack013UnboundedScopesAreRefused(t *testing.T) {
	for _, item := range []string{
		"*", "**", ".", "./", "/", "", "**/*", "/**", "./**", "**/**", "*/**", "*/*", "././*", "**/", "***", "**/?*",
		"{**,src/**}", "{*,*/*}", "{a,}", "/etc/**", "../**", "src/../../x", "..", "{src,..}/**", "a/{b,../../..}/c",
		`..\x`, `C:\x`, "C:/x", "src/\x01", "src/[", "src/{a", strings.Repeat("a", 1025),
	} {
		def, findings, short := convert(t, with(configA, "scope", fmt.Sprintf(" [ok/**, %q]", item)))
		if !cmp.Equal(short, []string{"error scope"}) || findings[0].Column == 1 {
			t.Errorf("scope item %.40q gives %+v, want an error at the item", item, findings)
		}
		if !cmp.Equal(def.Scope, []string{"ok/**"}) {
			t.Errorf("scope is %q, want the good item only", def.Scope)
		}
	}
	for _, item := range []string{
		"src", "src/**", "**/*.go", "*.md", "src/{a,b}/**", "docs/?.md", "a..b/**", "[ab]/**", ".github/**", "{src,docs}/**",
		"päckchen/**", `a\{b`,
	} {
		if _, findings, _ := convert(t, with(configA, "scope", fmt.Sprintf(" [%q]", item))); len(findings) > 0 {
			t.Errorf("scope item %q gives %+v, want nothing", item, findings)
		}
	}
	if _, _, short := convert(t, with(configA, "scope", " [ "+strings.Repeat("a/**, ", 101)+"]")); !cmp.Equal(short, []string{"error scope"}) {
		t.Errorf("101 patterns give %v, want one error", short)
	}
}

// A brace in a character class is a character: policy takes it for one, and what
// stands behind it is an alternative of its own.
func TestABraceInAClassHidesNoAlternative(t *testing.T) {
	for _, item := range []string{"{a,[}],**}", "{a,[}],../x}", "{a,[}],/etc/x}"} {
		_, findings, short := convert(t, with(configA, "scope", fmt.Sprintf(" [ok/**, %q]", item)))
		if !cmp.Equal(short, []string{"error scope"}) {
			t.Errorf("scope item %q gives %+v, want an error", item, findings)
		}
	}
}

func TestAttack014BraceBombsAreRefusedUnexpanded(t *testing.T) {
	for name, item := range map[string]string{
		"10,000 groups":        "src/" + strings.Repeat("{a,b}", 10_000),
		"groups within a KB":   strings.Repeat("{a,b}", 200),
		"groups of many":       strings.Repeat("{a,b,c,d,e,f,g,h}", 50),
		"nested groups":        strings.Repeat("{a,", 300) + strings.Repeat("}", 100),
		"nested closed groups": strings.Repeat("{a,", 200) + "b" + strings.Repeat("}", 200),
		"open groups":          strings.Repeat("{", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			if len(item) < 1024 {
				steps := testing.AllocsPerRun(1, func() {
					if problem := patternProblem(item); problem == "" {
						t.Error("accepted")
					}
				})
				if steps > 10_000 {
					t.Errorf("%v pieces of memory were made, so it was expanded", steps)
				}
			}
			doc, err := Parse("x.yaml", []byte(with(configA, "scope", " \""+item+"\"")))
			if err == nil {
				if _, findings := doc.Definition("keep-green"); len(findings) == 0 {
					t.Error("accepted")
				}
			}
		})
	}
}
