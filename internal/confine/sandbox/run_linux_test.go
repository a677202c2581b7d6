package sandbox

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// newLayers makes a layered tree with one file of the base in it.
func newLayers(tb testing.TB) *Overlay {
	tb.Helper()
	dir := tb.TempDir()
	o := &Overlay{Lower: []string{filepath.Join(dir, "base")}, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	for _, d := range []string{o.Lower[0], o.Upper} {
		if err := os.Mkdir(d, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	writeFile(tb, filepath.Join(o.Lower[0], "base.txt"), "from the base\n")
	for _, path := range []string{o.Lower[0], o.Upper, filepath.Join(o.Lower[0], "base.txt")} {
		giveToProgram(tb, path)
	}
	tb.Cleanup(func() { _ = RemoveTree(o.Work) })
	return o
}

func writeFile(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func giveToProgram(tb testing.TB, path string) {
	tb.Helper()
	if uid, gid := Full.Owner(); uid != os.Geteuid() {
		if err := os.Chown(path, uid, gid); err != nil {
			tb.Fatal(err)
		}
	}
}

// newCell returns a box of tier full with a layered tree.
func newCell(tb testing.TB) Box {
	tb.Helper()
	return Box{Tier: Full, Tree: "/srv/project", Home: "/home/somebody", Layers: newLayers(tb)}
}

// runScript runs a script in the box and returns what it printed.
func runScript(tb testing.TB, b Box, script string, env ...string) (string, proc.Result) {
	tb.Helper()
	var out bytes.Buffer
	dir := b.Tree
	if !b.Tier.HasOwnRoot() {
		dir = b.Dir
	}
	res, err := b.Run(tb.Context(), proc.Spec{
		Argv: []string{"/bin/sh", "-c", script}, Dir: dir, Env: append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, env...),
		Stdout: &out, Stderr: &out,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(out.String()), res
}

// A cache as npm, go and cargo leave it where the umask of root is 077.
func TestACacheThatOnlyItsOwnerMayReadIsShown(t *testing.T) {
	for name, lower := range map[string]int{"alone": 1, "below another layer": 2} {
		b := newCell(t)
		dir := t.TempDir()
		v := View{At: "/home/somebody/.cache/npm", Overlay: Overlay{Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}}
		for i := range lower {
			at := filepath.Join(dir, "lower", string(rune('a'+i)))
			if err := errors.Join(os.MkdirAll(filepath.Join(at, "sub"), 0o700), os.Chmod(at, 0o700)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(at, "sub", at[len(at)-1:]), []byte("cached\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			v.Lower = append(v.Lower, at)
		}
		link := filepath.Join(dir, "link") // A cache may be elsewhere.
		if err := os.Symlink(v.Lower[0], link); err != nil {
			t.Fatal(err)
		}
		v.Lower[0] = link
		if err := os.Mkdir(v.Upper, 0o755); err != nil {
			t.Fatal(err)
		}
		giveToProgram(t, v.Upper)
		b.Views = []View{v}
		t.Cleanup(func() { _ = RemoveTree(v.Work) })
		out, _ := runScript(t, b, `cd /home/somebody/.cache/npm/sub && cat * && echo more >>a && cat a && rm a && echo gone`)
		want := strings.Repeat("cached\n", lower) + "cached\nmore\ngone"
		if out != want {
			t.Errorf("%s: printed %q, want %q", name, out, want)
		}
		if text, err := os.ReadFile(filepath.Join(v.Lower[0], "sub", "a")); err != nil || string(text) != "cached\n" {
			t.Errorf("%s: the host's own is now %q, %v", name, text, err)
		}
		v.Upper = "" // A read-only view.
		b.Views = []View{v}
		if out, _ := runScript(t, b, `cat /home/somebody/.cache/npm/sub/a; echo x 2>/dev/null >/home/somebody/.cache/npm/sub/a || echo denied`); out != "cached\ndenied" {
			t.Errorf("%s: read only it printed %q", name, out)
		}
	}
}

func TestAProgramOpensItsStandardStreamsByTheirNames(t *testing.T) {
	var out, errs bytes.Buffer
	b := newCell(t)
	res, err := b.Run(t.Context(), proc.Spec{
		Argv: []string{"/bin/sh", "-c", `echo out >/dev/stdout; echo errors >/dev/stderr; cat /dev/stdin >/proc/self/fd/1`}, Dir: b.Tree,
		Env: []string{"PATH=/usr/bin:/bin"}, Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errs,
	})
	if err != nil || res.Exit != 0 || out.String() != "out\nin\n" || errs.String() != "errors\n" {
		t.Errorf("printed %q and %q, %+v, %v", &out, &errs, res, err)
	}
}

func TestWhatAProgramWritesGoesToTheUpperLayer(t *testing.T) {
	b := newCell(t)
	out, _ := runScript(t, b, `pwd; cat base.txt; echo more >> base.txt; echo new > new.txt; mkdir d; rm -f gone`)
	if want := b.Tree + "\nfrom the base"; out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
	var names []string
	entries, err := os.ReadDir(b.Layers.Upper)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"base.txt", "d", "new.txt"}, names); diff != "" {
		t.Errorf("the upper layer (-want +got):\n%s", diff)
	}
	if base, _ := os.ReadFile(filepath.Join(b.Layers.Lower[0], "base.txt")); string(base) != "from the base\n" {
		t.Errorf("the base holds %q", base)
	}
	if out, _ := runScript(t, b, `cat base.txt new.txt`); out != "from the base\nmore\nnew" {
		t.Errorf("the next program of the box saw %q", out)
	}
}

func TestAProgramHasNoPrivilegeOfAnyKind(t *testing.T) {
	out, _ := runScript(t, newCell(t), `grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups)' /proc/self/status; id -u`)
	for line := range strings.SplitSeq(out, "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.HasPrefix(name, "Cap") && strings.Trim(value, "0") != "",
			name == "NoNewPrivs" && value != "1", name == "Seccomp" && value != "2",
			line == "0", name == "Groups" && os.Geteuid() == 0 && value != "" && value != "65534":
			t.Errorf("inside: %s", line)
		}
	}
}

func TestOnlyWhatABoxNamesExists(t *testing.T) {
	b := newCell(t)
	secret, shown, writable := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{secret, shown, writable} {
		writeFile(t, filepath.Join(dir, "f"), "text")
		giveToProgram(t, dir)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.Binds = []Bind{{From: shown}, {From: writable, To: "/run/pawl/out", Write: true}}
	out, _ := runScript(t, b, `ls "$SECRET" 2>&1 | sed 's/.*: //'; cat "$SHOWN/f"; echo; echo x > "$SHOWN/g" && echo written; echo x > /run/pawl/out/g && echo written; ls $HOME; echo ~`,
		"SECRET="+secret, "SHOWN="+shown)
	for _, want := range []string{"No such file or directory\ntext\n", "written\n/home/somebody"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed:\n%s\nwant %q in it", out, want)
		}
	}
	if strings.Count(out, "written") != 1 {
		t.Errorf("what is bound to be read could be written:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(writable, "g")); err != nil {
		t.Error(err)
	}
}

// Most people's repositories are below their home, and an agent has a home of its own
// there.
func TestAHomeThatIsBoundCoversNeitherTheTreeNorProgramsBelowIt(t *testing.T) {
	for name, tree := range map[string]string{"below the home": "/home/somebody/work/project", "elsewhere": "/srv/project"} {
		t.Run(name, func(t *testing.T) {
			b := newCell(t)
			b.Tree = tree
			writeFile(t, filepath.Join(b.Layers.Lower[0], "readme"), "of the tree")
			giveToProgram(t, filepath.Join(b.Layers.Lower[0], "readme"))
			home, programs := t.TempDir(), t.TempDir()
			writeFile(t, filepath.Join(home, "settings"), "of the agent")
			writeFile(t, filepath.Join(programs, "tool"), "a tool")
			for _, dir := range []string{home, programs} {
				giveToProgram(t, dir)
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			b.Binds = []Bind{{From: programs, To: b.Home + "/.local/bin"}, {From: home, To: b.Home, Write: true}}
			out, _ := runScript(t, b, `pwd; cat readme; echo; cat ~/settings; echo; cat ~/.local/bin/tool; echo; echo x >new && echo x >~/new && echo written`)
			if want := tree + "\nof the tree\nof the agent\na tool\nwritten"; strings.TrimSpace(out) != want {
				t.Errorf("printed:\n%s\nwant:\n%s", out, want)
			}
			if _, err := os.Stat(filepath.Join(home, "new")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestProtectedAndMaskedPathsHoldInTheTree(t *testing.T) {
	b := newCell(t)
	for _, dir := range []string{"rules", "hidden"} {
		path := filepath.Join(b.Layers.Lower[0], dir)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(path, "f"), "text")
		giveToProgram(t, path)
		giveToProgram(t, filepath.Join(path, "f"))
	}
	b.Protect = []string{b.Tree + "/rules", b.Tree + "/rules.yaml"}
	b.Masks = []string{b.Tree + "/hidden"}
	out, _ := runScript(t, b, `exec 2>&1; cat rules/f; echo; echo x > rules/f; mv rules other; rm -r rules; ls hidden; echo x > free && echo free`)
	if !strings.HasPrefix(out, "text\n") || !strings.HasSuffix(out, "free") ||
		strings.Count(out, "Read-only file system") < 2 || !strings.Contains(out, "busy") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestAPortLeadsOutOfACellThatHasNoNetwork(t *testing.T) {
	b := newCell(t)
	b.Ports = []Port{{
		Number: 3128,
		Serve: func(_ context.Context, l net.Listener) {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte("HTTP/1.0 200 OK\r\n\r\nfrom outside\n"))
				conn.Close()
			}
		},
		Env: func(addr string) []string { return []string{"WAY_OUT=http://" + addr + "/"} },
	}}
	out, _ := runScript(t, b, `exec 3<>/dev/null; python=$(command -v python3 || true); bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; cat <&3'; echo $WAY_OUT; cat /proc/net/dev | tail -n +3 | cut -d: -f1`)
	for _, want := range []string{"from outside", "http://127.0.0.1:3128/", "lo"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed:\n%s\nwant %q in it", out, want)
		}
	}
	if strings.Contains(out, "eth") {
		t.Errorf("an interface of the host is there:\n%s", out)
	}
}

func TestABoxThatCannotBeSetUpStartsNothing(t *testing.T) {
	for name, change := range map[string]func(*Box){
		"a bind of what does not exist": func(b *Box) { b.Binds = []Bind{{From: "/no/such/place"}} },
		"a layer that does not exist":   func(b *Box) { b.Layers.Lower = append(b.Layers.Lower, "/no/such/place") },
		"a tree at the root":            func(b *Box) { b.Tree = "/" },
		"a home that is not clean":      func(b *Box) { b.Home = "/home/../etc" },
		"a tier of another system":      func(b *Box) { b.Tier = Seatbelt },
	} {
		t.Run(name, func(t *testing.T) {
			b := newCell(t)
			change(&b)
			marker := filepath.Join(b.Layers.Upper, "ran")
			res, err := b.Run(t.Context(), proc.Spec{Argv: []string{"/bin/sh", "-c", "touch ran"}, Dir: b.Tree})
			if err == nil || res.Ended != proc.NotStarted {
				t.Errorf("Run = %+v, %v", res, err)
			}
			if _, err := os.Lstat(marker); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the program ran")
			}
		})
	}
}

func TestAProgramThatIsNotThereIsNamed(t *testing.T) {
	b := newCell(t)
	_, err := b.Run(t.Context(), proc.Spec{Argv: []string{"no-such-program"}, Dir: b.Tree, Env: []string{"PATH=/usr/bin"}})
	if refused, ok := errors.AsType[*SetupError](err); !ok || !strings.Contains(refused.Step, "no-such-program") {
		t.Errorf("Run = %v", err)
	}
}

func TestALandlockedProgramWritesItsTreeAlone(t *testing.T) {
	if !hasLandlockTCP(t) {
		return
	}
	dir, other := t.TempDir(), t.TempDir()
	b := Box{Tier: Landlock, Dir: dir, Scratch: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, _ := runScript(t, b, `exec 2>&1; echo x > in && echo in; echo x > $OTHER/out && echo out; echo x > $TMPDIR/t && echo tmp; bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT" && echo connected`,
		"OTHER="+other, "PORT="+strings.TrimPrefix(l.Addr().String(), "127.0.0.1:"))
	if !strings.Contains(out, "in\n") || !strings.Contains(out, "tmp") || strings.Contains(out, "\nout") || strings.Contains(out, "connected") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestALandlockedProgramChangesNoModeOrTimeElsewhere(t *testing.T) {
	if !hasLandlockTCP(t) {
		return
	}
	if m := (proc.Tree{}).Method(); m != proc.PIDNamespace {
		t.Logf("held together by %s: nothing but a namespace keeps modes", m)
		return
	}
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	for _, path := range []string{other, filepath.Join(dir, "mine")} {
		writeFile(t, path, "text\n")
	}
	before, err := os.Stat(other)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, err = Box{Tier: Landlock, Dir: dir, Scratch: t.TempDir()}.Run(t.Context(), proc.Spec{
		Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "OTHER=" + other}, Stdout: &out, Stderr: &out,
		// The files of the control group are open for writing.
		Limits: proc.Limits{Processes: 100, Memory: 1 << 30},
		Argv: []string{"/bin/sh", "-c", `chmod 4777 $OTHER && echo mode; touch -d @1 $OTHER && echo time; chmod 1777 $(dirname $OTHER) && echo folder
		chmod 755 mine && touch -d @1 mine && echo x >>mine && mv mine $TMPDIR/mine && mv $TMPDIR/mine moved && echo own`},
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(other)
	if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) || strings.HasPrefix(out.String(), "mode") {
		t.Errorf("%v, mode %v → %v, time %v → %v, printed:\n%s", err, before.Mode(), after.Mode(), before.ModTime(), after.ModTime(), &out)
	}
	if !strings.HasSuffix(out.String(), "\nown\n") {
		t.Errorf("it does not work in its own tree:\n%s", &out)
	}
}

// open755 lets the user of programs enter a test's directory and those above it.
func open755(tb testing.TB, dir string) {
	tb.Helper()
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestALandlockedProgramLimitsItselfAlone(t *testing.T) {
	if !hasLandlockTCP(t) {
		return
	}
	out, _ := runScript(t, Box{Tier: Landlock, Dir: t.TempDir(), Scratch: t.TempDir()},
		`exec 2>&1; ulimit -n 100; ulimit -n; ulimit -c 0 && echo off; prlimit --nofile=90 true && echo own; prlimit --pid $$ --cpu=1 || echo denied`)
	if !strings.HasPrefix(out, "100\noff\nown\n") || !strings.HasSuffix(out, "\ndenied") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestWhatIsClosedToOthersIsReadWhereItIsBound(t *testing.T) {
	from := filepath.Join(t.TempDir(), "closed")
	if err := os.MkdirAll(filepath.Join(from, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(from, "below", "file")
	writeFile(t, path, "bound")
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	b := newCell(t)
	b.Binds = []Bind{{From: from, To: "/run/pawl/objects"}, {From: from}, {From: path, To: "/run/pawl/file"}}
	out, _ := runScript(t, b, `exec 2>&1; cd /run/pawl; cat objects/below/file file $FROM/below/file
		chmod 777 objects || echo closed; (echo x > objects/below/new) || echo closed; rm -f file || echo closed`, "FROM="+from)
	read := "boundboundbound"
	if uid, gid := Full.Owner(); uid != os.Geteuid() && (hostFacts{Kernel: kernelRelease()}).isOlderThan(6, 3) {
		// Not every file system can map owners: a tmpfs cannot.
		owners, err := mappedOwners(uid, gid)
		if err != nil {
			t.Fatal(err)
		}
		if f := cloneMapped(from, owners); f != nil {
			f.Close()
		} else {
			read = "cat: objects/below/file: Permission denied"
		}
	}
	if !strings.HasPrefix(out, read) || strings.Count(out, "\nclosed") != 3 {
		t.Errorf("printed:\n%s", out)
	}
	if info, err := os.Stat(from); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}
