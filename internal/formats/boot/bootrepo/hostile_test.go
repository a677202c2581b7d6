//go:build unix

package bootrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestNothingOfAHostileBootRepositoryRuns(t *testing.T) {
	dir := gittest.Repo(t, standard(map[string]string{
		".gitattributes": "* filter=evil diff=evil merge=evil text\n", "schemas/.gitattributes": "*.json filter=evil\n",
		".gitmodules": "[submodule \"s\"]\n\tpath = s\n\turl = ext::sh -c evil\n\tupdate = !evil\n", ".lfsconfig": "[lfs]\n\turl = ext::evil\n",
	}))
	first := head(t, dir)
	second := commit(t, dir, "contract/AGENT_RULES.md", "# New\n")
	gittest.Run(t, dir, "tag", "-a", "-m", "m", "v1")
	outside := t.TempDir()
	marker := gittest.Arm(t, dir, outside)
	for name, load := range map[string]func(r *rig) string{
		"a branch": func(r *rig) string { return r.load(linkTo(dir, "main")).Commit },
		"a tag":    func(r *rig) string { return r.load(linkTo(dir, "v1")).Commit },
		"a commit": func(r *rig) string { return r.load(linkTo(dir, second)).Commit },
		"a diff": func(r *rig) string {
			d, err := r.cache.Diff(t.Context(), linkTo(dir, "main"), r.root, first, second)
			if err != nil || !d.Rules {
				t.Errorf("Diff = %+v, %v", d, err)
			}
			return d.New
		},
		"another directory to begin in": func(r *rig) string {
			t.Chdir(dir)
			return r.load(linkTo(dir, "main")).Commit
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := snapshot(t, dir)
			if got := load(newRig(t)); got != second {
				t.Errorf("the commit is %s, want %s", got, second)
			}
			if text, err := os.ReadFile(marker); err == nil {
				t.Errorf("programs of the repository ran:\n%s", text)
			}
			if after := snapshot(t, dir); after != before {
				t.Errorf("the repository was written to:\n%s\n%s", before, after)
			}
		})
	}
}

// snapshot lists the files below a folder with their sizes and times.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			b.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What comes over the network is not checked out, so that its attributes, submodules
// and hooks are only bytes; the hooks of the user play no part.
func TestNothingOfAHostileRepositoryElsewhereRunsHere(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(map[string]string{
		".gitattributes": "* filter=evil\n", ".gitmodules": "[submodule \"s\"]\n\tpath = s\n\turl = ext::evil\n\tfetchRecurseSubmodules = true\n",
		"hooks/post-checkout": "#!/bin/sh\nevil\n",
	}))
	gittest.Run(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+head(t, dir)+",s")
	gittest.Run(t, dir, "commit", "-q", "-m", "submodule")
	address := r.serve(dir, plain) + "/.git"
	home := filepath.Join(t.TempDir(), "home")
	outside := t.TempDir()
	marker, evil := filepath.Join(outside, "marker"), filepath.Join(outside, "evil")
	gittest.Write(t, home, map[string]string{".gitconfig": "[core]\n\thooksPath = " + outside + "/hooks\n\tfsmonitor = " + evil + "\n[filter \"evil\"]\n\tsmudge = " + evil +
		"\n\trequired = true\n[protocol \"ext\"]\n\tallow = always\n[fetch]\n\trecurseSubmodules = true\n[submodule]\n\trecurse = true\n"})
	for _, program := range append([]string{evil}, hooksIn(filepath.Join(outside, "hooks"))...) {
		gittest.WriteFile(t, program, "#!/bin/sh\necho \"$0 $*\" >>"+marker+"\n")
		if err := os.Chmod(program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.cache.Environ = proc.WithVariables(r.cache.Environ, "HOME="+home)
	if got := r.load(linkTo(address, "main")).Commit; got != head(t, dir) {
		t.Errorf("the commit is %s", got)
	}
	if text, err := os.ReadFile(marker); err == nil {
		t.Errorf("programs ran:\n%s", text)
	}
}

func hooksIn(dir string) (paths []string) {
	for _, hook := range gittest.Hooks {
		paths = append(paths, filepath.Join(dir, hook))
	}
	return paths
}

// The address of a mirror that the user has set by insteadOf cannot lead to a program.
func TestARewrittenAddressCannotStartAProgram(t *testing.T) {
	r := newRig(t)
	home := t.TempDir()
	marker := filepath.Join(t.TempDir(), "marker")
	gittest.Write(t, home, map[string]string{".gitconfig": "[url \"ext::touch " + marker + " \"]\n\tinsteadOf = https://example.com/\n[protocol]\n\tallow = always\n"})
	r.cache.Environ = proc.WithVariables(r.cache.Environ, "HOME="+home)
	_, err := r.cache.Load(t.Context(), linkTo("https://example.com/a", "main"), r.root)
	wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, "not allowed")
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program was started")
	}
}

func TestLinksAndSubmodulesAreNotFilesOfAContract(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	gittest.WriteFile(t, secret, `{"secret": true}`)
	for name, c := range map[string]struct {
		name   string // what becomes a link
		reason loop.Reason
		exit   int
	}{
		"the version":       {"VERSION.json", loop.ReasonBootIncomplete, loop.ExitMissing},
		"the rules":         {"contract/AGENT_RULES.md", loop.ReasonBootIncomplete, loop.ExitMissing},
		"the folder of it":  {"contract", loop.ReasonBootIncomplete, loop.ExitMissing},
		"a schema":          {"schemas/state-schema.json", loop.ReasonBootIncomplete, loop.ExitMissing},
		"all schemas":       {"schemas", loop.ReasonBootIncomplete, loop.ExitMissing},
		"one more schema":   {"schemas/more.json", loop.ReasonBootMalformed, loop.ExitUnreadable},
		"the stop lines":    {StopLineName, loop.ReasonBootMalformed, loop.ExitUnreadable},
		"something besides": {"docs/README.md", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			dir := gittest.Repo(t, standard(nil))
			at := filepath.Join(dir, c.name)
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(secret, at); err != nil {
				t.Fatal(err)
			}
			gittest.Run(t, dir, "add", "-A")
			gittest.Run(t, dir, "commit", "-q", "-m", "link")
			_, err := r.cache.Load(t.Context(), linkTo(dir, "main"), r.root)
			if c.reason == "" {
				if err != nil {
					t.Errorf("Load = %v", err)
				}
				return
			}
			wantError(t, err, c.reason, c.exit, c.name)
			wantError(t, err, c.reason, c.exit, "is a symbolic link, which is not followed")
		})
	}
	t.Run("a submodule", func(t *testing.T) {
		r := newRig(t)
		dir := gittest.Repo(t, standard(nil))
		gittest.Run(t, dir, "rm", "-rq", "schemas")
		gittest.Run(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+head(t, dir)+",schemas")
		gittest.Run(t, dir, "commit", "-q", "-m", "submodule")
		_, err := r.cache.Load(t.Context(), linkTo(dir, "main"), r.root)
		wantError(t, err, loop.ReasonBootIncomplete, loop.ExitMissing, "schemas is a submodule, which is not read")
	})
}

// A tree can name a folder .. although git itself would not make it.
func TestATreeThatLeadsOutOfItselfIsNotFollowed(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	raw := func(args ...string) string { return gittest.Run(t, dir, args...) }
	schema := raw("rev-parse", "HEAD:schemas/state-schema.json")
	tree := filepath.Join(t.TempDir(), "tree")
	entry := func(mode, name, id string) string {
		var b strings.Builder
		b.WriteString(mode + " " + name + "\x00")
		for i := 0; i < len(id); i += 2 {
			b.WriteByte(unhex(id[i])<<4 | unhex(id[i+1]))
		}
		return b.String()
	}
	gittest.WriteFile(t, tree, entry("100644", "evil.json", schema))
	up := raw("hash-object", "-t", "tree", "-w", "--literally", tree)
	gittest.WriteFile(t, tree, entry("40000", "..", up)+entry("100644", "state-schema.json", schema)+entry("100644", "todo-schema.json", raw("rev-parse", "HEAD:schemas/todo-schema.json")))
	schemas := raw("hash-object", "-t", "tree", "-w", "--literally", tree)
	gittest.WriteFile(t, tree, entry("100644", StopLineName, raw("rev-parse", "HEAD:"+StopLineName))+entry("100644", "VERSION.json", raw("rev-parse", "HEAD:VERSION.json"))+
		entry("40000", "contract", raw("rev-parse", "HEAD:contract"))+entry("40000", "schemas", schemas))
	top := raw("hash-object", "-t", "tree", "-w", "--literally", tree)
	next := raw("commit-tree", "-m", "evil", "-p", "HEAD", top)
	if c := r.load(linkTo(dir, next)); c.Schemas.Set.Has("schemas/../evil.json") || c.Schemas.Set.Has("evil.json") {
		t.Error("the file outside is a schema")
	}
	d, err := r.cache.Diff(t.Context(), linkTo(dir, "main"), r.root, head(t, dir), next)
	if err != nil || d.Schemas || d.Text != "" {
		t.Errorf("Diff = %+v, %v", d, err)
	}
}

func unhex(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// Four trees of thirty entries each name almost a million folders.
func TestFoldersBeyondNumberAreNotAllLookedInto(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, map[string]string{"f": "x"})
	list := filepath.Join(t.TempDir(), "list")
	tree := gittest.Run(t, dir, "rev-parse", "HEAD^{tree}")
	for range 4 {
		var lines strings.Builder
		for i := range 30 {
			fmt.Fprintf(&lines, "040000 tree %s\t%02d\n", tree, i)
		}
		gittest.WriteFile(t, list, lines.String())
		tree = gittest.Run(t, dir, "-c", "alias.from=!git mktree <"+list, "from")
	}
	contract := gittest.Repo(t, standard(nil))
	gittest.Run(t, dir, "fetch", "-q", contract, "main")
	top := "040000 tree " + tree + "\tbomb\n040000 tree " + gittest.Run(t, contract, "rev-parse", "HEAD^{tree}") + "\tboot\n"
	gittest.WriteFile(t, list, top)
	gittest.Run(t, dir, "branch", "bomb", gittest.Run(t, dir, "commit-tree", "-m", "bomb", gittest.Run(t, dir, "-c", "alias.from=!git mktree <"+list, "from")))
	link := linkTo(dir, "bomb")
	_, err := r.cache.Load(t.Context(), link, r.root)
	wantError(t, err, loop.ReasonBootIncomplete, loop.ExitMissing, "it has too many files to look for the contract among them")
	link.BootPath = "boot"
	if c := r.load(link); c.Folder != "boot" {
		t.Errorf("the folder is %q", c.Folder)
	}
}

func TestAFileOfManyMegabytesIsNotReadIntoMemory(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	large := filepath.Join(dir, "contract", "AGENT_RULES.md")
	if err := os.Truncate(large, 40<<20); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, dir, "commit", "-qam", "large")
	_, err := r.cache.Load(t.Context(), linkTo(dir, "main"), r.root)
	wantError(t, err, loop.ReasonBootMalformed, loop.ExitUnreadable, "has 41943040 bytes, and at most 1048576 are read")
}
