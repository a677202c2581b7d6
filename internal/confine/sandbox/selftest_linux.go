package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage"
	"github.com/pawl-run/pawl/internal/confine/sandbox/stage/selftest"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Test tries in a box of the tier what a program must not be able to do and what it
// must be able to do, against listeners and a process that it starts on the host. It
// works in a temporary directory below dir. If the kernel cannot mount layers there,
// it tests with a tree that is a plain directory, and sets Result.NoLayers.
//
// A row that is not as promised is not an error. An error, often a *SetupError,
// means that the test could not be run.
func Test(ctx context.Context, tier Tier, dir string) (Result, error) {
	r, err := tryBox(ctx, tier, dir, tier.HasOwnRoot())
	if none := readHostFacts(dir).explainNoLayers(err); none != nil {
		r, err = tryBox(ctx, tier, dir, false)
		r.NoLayers = none
	}
	return r, err
}

func tryBox(ctx context.Context, tier Tier, dir string, layered bool) (Result, error) {
	r := Result{Tier: tier, Kernel: kernelRelease(), LandlockABI: stage.LandlockVersion(), Namespaces: tier == Full}
	test, err := newTestDir(dir, tier)
	if err != nil {
		return r, fmt.Errorf("test the sandbox: %w", err)
	}
	defer test.cleanUp()
	test.layered = layered
	targets, err := newTargets(ctx, socketPrefix+test.name)
	if err != nil {
		return r, fmt.Errorf("test the sandbox: %w", err)
	}
	defer targets.closeAll()
	var out, complaints bytes.Buffer
	res, err := test.newBox(tier).Run(ctx, test.newSpec(tier, targets, &out, &complaints))
	r.Took = res.Took
	if err != nil {
		return r, fmt.Errorf("test the sandbox: %w", err)
	}
	received, signalled := targets.closeAll()
	for _, row := range parseRows(tier, out.String(), &r.Absent) {
		if row.Action == selftest.SendUDP && !received {
			row = tier.newRow(row.Action, Denied, "did not arrive")
		}
		if row.Action == selftest.SignalProcess && signalled {
			row = tier.newRow(row.Action, Works, "it ended")
		}
		r.Rows = append(r.Rows, row)
	}
	if memory, ok, err := test.tryMemoryLimit(ctx, tier); err != nil {
		return r, fmt.Errorf("test the sandbox: %w", err)
	} else if ok {
		r.Rows = append(r.Rows, memory)
	}
	done := func(row Row) bool { return row.Action == selftest.Serve }
	if res.Ended != proc.Exited || !slices.ContainsFunc(r.Rows, done) {
		said := strings.TrimSpace(complaints.String())
		return r, fmt.Errorf("test the sandbox: the self-test ended early (%s, status %d): %.300s", res.Ended, res.Exit, said)
	}
	return r, nil
}

// parseRows parses the output of a self-test, and adds to absent the actions whose
// program is not installed.
func parseRows(tier Tier, text string, absent *[]string) []Row {
	var rows []Row
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		switch {
		case len(fields) != 3:
		case fields[1] == "absent":
			*absent = append(*absent, fields[0])
		default:
			rows = append(rows, tier.newRow(fields[0], Answer(fields[1]), fields[2]))
		}
	}
	return rows
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// patience is how long a test may take on a busy host.
const patience = 2 * time.Minute

// testDir is the directory of one self-test.
type testDir struct {
	dir, name string
	claim     *os.File
	layered   bool

	root, host, tree, base, upper, work, scratch, exe string
}

func newTestDir(dir string, tier Tier) (*testDir, error) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	removeLeftovers(dir)
	name, claim, err := claimName(dir)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, selftestPrefix+name)
	at := func(name string) string { return filepath.Join(root, name) }
	g := &testDir{
		dir: dir, name: name, claim: claim, root: root, host: at("host"), tree: at("tree"), base: at("base"), upper: at("upper"), work: at("work"),
		scratch: at("scratch"), exe: exe,
	}
	uid, gid := tier.Owner()
	err = errors.Join(os.Mkdir(root, 0o700), os.Chmod(root, 0o711))
	for _, path := range []string{g.host, g.tree, g.base, g.upper, g.scratch} {
		err = errors.Join(err, os.Mkdir(path, 0o755), os.Chown(path, uid, gid))
	}
	for _, path := range []string{g.canaryPath(), filepath.Join(g.base, "protected"), filepath.Join(g.tree, "protected")} {
		err = errors.Join(err, os.WriteFile(path, []byte("text\n"), 0o644), os.Chown(path, uid, gid)) //nolint:gosec // Only the sandbox is to keep programs from reading it.
	}
	if err != nil {
		g.cleanUp()
		return nil, err
	}
	return g, nil
}

func (g *testDir) canaryPath() string { return filepath.Join(g.host, "canary") }

// cleanUp removes the directory. What cannot be removed is left to the next self-test.
func (g *testDir) cleanUp() { _ = removeAndRelease(g.dir, g.name, g.claim) }

// newBox returns the box that is tested.
func (g *testDir) newBox(tier Tier) Box {
	b := Box{
		Tier: tier, Tree: g.tree, Home: filepath.Join(g.root, "home"), Protect: []string{filepath.Join(g.tree, "protected")},
		Binds: []Bind{{From: g.exe}}, Scratch: g.scratch, Dir: g.tree,
	}
	if g.layered {
		b.Dir, b.Layers = "", &Overlay{Lower: []string{g.base}, Upper: g.upper, Work: g.work}
	}
	return b
}

// script runs the self-test given by its arguments, and tries the host's tools. It
// prints "absent" for a tool that is not installed.
const script = `
try() {
	if said=$("$3" 2>&1); then printf '%s\tworks\tok\n' "$1"; else printf '%s\tdenied\t%s\n' "$1" "$(printf %s "$said" | tr '\n\t' '  ')"; fi
}
tool() {
	if command -v "$2" >/dev/null; then try "$@"; else printf '%s\tabsent\t\n' "$1"; fi
}
commit() {
	git init -q "$TREE/work" && cd "$TREE/work" && echo text >f && git add f &&
		git -c user.name=pawl -c user.email=pawl@localhost commit -q -m text && test -z "$(git status --porcelain)"
}
node_starts() { test "$(node -p 1+1)" = 2; }
compile() {
	cd "$HOME" && echo 'int main(void) { return 0; }' >t.c && cc -o "$TREE/t" t.c && "$TREE/t"
}
tool '` + commit + `' git commit &
tool '` + node + `' node node_starts &
tool '` + compile + `' cc compile &
"$0" "$@"
wait
`

// newSpec returns the command that runs the script in a box of the tier.
func (g *testDir) newSpec(tier Tier, t *targets, out, complaints *bytes.Buffer) proc.Spec {
	home, tmp := filepath.Join(g.scratch, "home"), filepath.Join(g.scratch, "tmp")
	if tier == Full {
		home, tmp = filepath.Join(g.root, "home"), "/tmp"
	}
	if tier != Full && tier != Landlock {
		_ = os.MkdirAll(home, 0o755)
		_ = os.MkdirAll(tmp, 0o755)
	}
	argv := append([]string{"/bin/sh", "-c", script, g.exe, selftest.Arg},
		selftest.Canary+"="+g.canaryPath(), selftest.Tree+"="+g.tree, selftest.Protected+"="+filepath.Join(g.tree, "protected"),
		selftest.Home+"="+home, selftest.Temporary+"="+tmp, selftest.Resolver+"="+firstNameServer(),
		selftest.Processes+"="+strconv.Itoa(selftestLimits.Processes), selftest.FileBytes+"="+strconv.FormatInt(selftestLimits.FileBytes, 10))
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + tmp, "TREE=" + g.tree, "GIT_CONFIG_NOSYSTEM=1"}
	return proc.Spec{
		Argv: append(argv, t.parameters()...), Dir: g.tree, Env: env, Stdout: out, Stderr: complaints, Timeout: patience, Limits: selftestLimits,
	}
}

// selftestLimits are enough for the tools that the self-test starts.
var selftestLimits = proc.Limits{Processes: 1024, FileBytes: 1 << 30}

// The limit of memory is tested by a second process that holds more than it may.
const (
	holdLimit = 64 << 20
	holdBytes = 4 * holdLimit
	holdTime  = 20 * time.Second // in which the limit must end the process, even on a busy host
)

// tryMemoryLimit starts a process that holds more memory than it may, and returns a
// row that says whether the limit ended it. It does nothing if the tier promises no
// such limit.
func (g *testDir) tryMemoryLimit(ctx context.Context, tier Tier) (row Row, tried bool, err error) {
	if tier.promised(selftest.ExceedMemory) == "" {
		return Row{}, false, nil
	}
	res, err := g.newBox(tier).Run(ctx, proc.Spec{
		Argv: []string{g.exe, selftest.Arg, selftest.Hold, strconv.Itoa(holdBytes)}, Dir: g.tree, Env: []string{"PATH=/usr/bin:/bin"},
		Timeout: holdTime, Limits: proc.Limits{Memory: holdLimit},
	})
	if err != nil {
		return Row{}, false, err
	}
	if res.Limit == proc.MemoryLimit {
		return tier.newRow(selftest.ExceedMemory, Denied, "it was ended"), true, nil
	}
	return tier.newRow(selftest.ExceedMemory, Works, fmt.Sprintf("it ended otherwise: %s, status %d", res.Ended, res.Exit)), true, nil
}

// firstNameServer returns the first IPv4 address of a name server in the host's
// resolv.conf, or one that nobody has.
func firstNameServer() string {
	text, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == "nameserver" && strings.Count(fields[1], ".") == 3 {
			return fields[1]
		}
	}
	return "192.0.2.1"
}
