//go:build unix

package hazard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/git/gitconfig"
	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func hazards(t *testing.T, d gitdir.Dirs) []Hazard {
	t.Helper()
	found, err := Scan(t.Context(), d)
	must(t, err)
	return found
}

// find returns the first hazard with this kind and key.
func find(found []Hazard, kind, key string) (Hazard, bool) {
	i := slices.IndexFunc(found, func(h Hazard) bool { return h.Kind == kind && h.Key == key })
	if i < 0 {
		return Hazard{}, false
	}
	return found[i], true
}

func open(t *testing.T, dir string) gitdir.Dirs {
	t.Helper()
	d, err := gitdir.Find(dir)
	must(t, err)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPlainRepositoryHasNoHazard(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "x", ".gitattributes": "* text=auto\n"})
	gittest.Run(t, dir, "remote", "add", "origin", "git@example.org:o/n.git")
	gittest.Run(t, dir, "branch", "b")
	gittest.Run(t, dir, "pack-refs", "--all")
	gittest.Write(t, dir, map[string]string{".git/hooks/pre-commit.sample": "x", ".git/info/attributes": "# filter=x\n*.c text\n"})
	if found := hazards(t, open(t, dir)); len(found) > 0 {
		t.Errorf("hazards = %+v, want none", found)
	}
	sha256 := gittest.Repo(t, nil, "--object-format=sha256")
	if found := hazards(t, open(t, sha256)); len(found) > 0 {
		t.Errorf("hazards = %+v, want none", found)
	}
}

func TestOnlyLinesOfInfoAttributesThatGiveADriverAreHazards(t *testing.T) {
	dir := gittest.Repo(t, nil)
	gittest.Write(t, dir, map[string]string{
		".git/info/attributes": "#\n#* filter=x\n\n  \nx\n* text -diff2 filterx=y\n$* filter=a\nb -diff\n c text merge=union filter=x\nd !filter\n",
	})
	var got []string
	for _, h := range hazards(t, open(t, dir)) {
		got = append(got, h.Value)
	}
	slices.Sort(got)
	if want := []string{"$* filter=a", "b -diff", "c text merge=union filter=x", "d !filter"}; !slices.Equal(got, want) {
		t.Errorf("hazards = %q, want %q", got, want)
	}
}

func TestEveryKeyOfTheTableIsFoundWhateverItsSection(t *testing.T) {
	for key := range executing {
		section, name, _ := strings.Cut(key, ".")
		for _, form := range []string{"[%s]\n%s = x\n", "[%s \"a.b\"]\n%s = x\n"} {
			settings, err := gitconfig.Parse(fmt.Appendf(nil, form, strings.ToUpper(section), strings.ToUpper(name)))
			must(t, err)
			if kind, _ := keyHazard(settings[0]); kind != Executes {
				t.Errorf("%s is %q", settings[0].Key, kind)
			}
		}
	}
}

func TestAnAddressThatNamesAProgramIsFoundWhereverItIsAnAddress(t *testing.T) {
	for address, executes := range map[string]bool{
		"ext::sh -c evil": true, "fd::7": true, "my-helper::https://example.org/x": true, "::x": true, "--upload-pack=evil": true,
		"https://example.org/o/n.git": false, "git@example.org:o/n.git": false, "ssh://git@[::1]/o/n": false, "/srv/a::b": false, "host:a::b": false,
	} {
		for _, key := range []string{"url", "pushurl", "PushURL"} {
			settings, err := gitconfig.Parse(fmt.Appendf(nil, "[remote \"a.b\"]\n%s = \"%s\"\n", key, address))
			must(t, err)
			if kind, _ := keyHazard(settings[0]); kind == Executes != executes {
				t.Errorf("%s = %s is %q, want that it executes: %v", key, address, kind, executes)
			}
		}
	}
}

func TestOnlyAnUpdateOfASubmoduleThatIsACommandExecutes(t *testing.T) {
	for value, executes := range map[string]bool{"!evil": true, "checkout": false, "none": false, "": false} {
		settings, err := gitconfig.Parse(fmt.Appendf(nil, "[submodule \"a.b\"]\nupdate = %s\n", value))
		must(t, err)
		if kind, _ := keyHazard(settings[0]); kind == Executes != executes {
			t.Errorf("update = %q is %q, want that it executes: %v", value, kind, executes)
		}
	}
}

func TestAHelperForOneAddressOnlyIsFound(t *testing.T) {
	settings, err := gitconfig.Parse([]byte("[credential \"https://example.org\"]\nhelper = !evil\n"))
	must(t, err)
	if kind, _ := keyHazard(settings[0]); kind != Executes {
		t.Errorf("%s is %q", settings[0].Key, kind)
	}
}

func TestAttack031IncludesIntoTheWorkTreeAreRefused(t *testing.T) {
	outside := t.TempDir()
	cases := map[string]struct {
		key, value string
		refuse     bool
	}{
		"relative":                     {"include.path", "../evil", true},
		"absolute":                     {"include.path", "DIR/evil", true},
		"not there yet":                {"include.path", "../later", true},
		"conditional":                  {"includeIf.gitdir:/nowhere/.path", "../evil", true},
		"on a branch":                  {"includeIf.onbranch:x.path", "../evil", true},
		"through a link outside":       {"include.path", outside + "/link", true},
		"through a link and back":      {"include.path", "DIR/back", true},
		"through dots":                 {"include.path", outside + "/../../../../../../../../DIR/evil", true},
		"nowhere that can be told":     {"include.path", "~somebody/x", true},
		"of git's own installation":    {"include.path", "%(prefix)/x", true},
		"inside the git directory":     {"include.path", "more", false},
		"outside of all":               {"include.path", outside + "/plain", false},
		"outside of all, not there":    {"include.path", outside + "/none", false},
		"two levels, then in the tree": {"include.path", outside + "/nested", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := gittest.Repo(t, map[string]string{"f": "x", "evil": "[core]\n\tfsmonitor = x\n"})
			for _, l := range [][2]string{{outside + "/link", filepath.Join(dir, "evil")}, {filepath.Join(dir, "back"), outside + "/plain"}} {
				_ = os.Remove(l[0])
				must(t, os.Symlink(l[1], l[0]))
			}
			gittest.Write(t, outside, map[string]string{"plain": "[alias]\n\tx = !y\n", "nested": "[include]\n\tpath = " + dir + "/evil\n"})
			r := open(t, dir)
			gittest.Run(t, dir, "config", c.key, strings.ReplaceAll(c.value, "DIR", dir))
			found := hazards(t, r)
			if _, ok := find(found, Include, strings.Replace(c.key, "includeIf", "includeif", 1)); !ok {
				t.Fatalf("hazards = %+v, want the include", found)
			}
			if got := slices.ContainsFunc(found, func(h Hazard) bool { return h.Refuse }); got != c.refuse {
				t.Errorf("hazards = %+v, want refused: %v", found, c.refuse)
			}
			if _, ok := find(found, Executes, "core.fsmonitor"); ok {
				t.Error("a file of the work tree was read")
			}
		})
	}
}

func TestAGitFileThatWasSwappedIsRefused(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "x"})
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Run(t, dir, "worktree", "add", "-q", linked)
	r := open(t, linked)
	if h, ok := find(hazards(t, r), GitFile, ".git"); !ok || h.Refuse {
		t.Errorf("hazard = %+v, %v, want the linked worktree recorded", h, ok)
	}
	gittest.Write(t, linked, map[string]string{".git": "gitdir: " + gittest.Repo(t, nil) + "/.git\n"})
	if h, ok := find(hazards(t, r), GitFile, ".git"); !ok || !h.Refuse {
		t.Errorf("hazard = %+v, %v, want it refused", h, ok)
	}
}
