package workspace

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
)

// mountRequest makes the test binary a process with a mount namespace of its
// own, in which an overlay is mounted as a sandbox does it.
const mountRequest = "PAWL_TEST_MOUNT"

type mountSpec struct {
	Overlay sandbox.Overlay
	At      string
	Bind    map[string]string // what → where
	User    int               // as whom commands run
}

func TestMain(m *testing.M) {
	if text := os.Getenv(mountRequest); text != "" {
		os.Unsetenv(mountRequest)
		if err := serveMount(text); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveMount mounts, and then runs each line of its input, which is a shell
// command in base64, and answers with its output in the same way.
func serveMount(text string) error {
	var spec mountSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	for what, where := range spec.Bind {
		if err := unix.Mount(what, where, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", what, err)
		}
	}
	o := spec.Overlay
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace
	for i, dir := range o.Lower {
		o.Lower[i] = escape(dir)
	}
	options := fmt.Sprintf("userxattr,volatile,lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(o.Lower, ":"), escape(o.Upper), escape(o.Work))
	if err := unix.Mount("overlay", spec.At, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount %s: %w", options, err)
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		script, err := base64.StdEncoding.DecodeString(lines.Text())
		if err != nil {
			return err
		}
		cmd := exec.Command("/bin/sh", "-ec", string(script))
		cmd.Dir = spec.At
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}
		if spec.User != 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(spec.User), Gid: uint32(spec.User), NoSetGroups: true}}
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = append(out, "\nended: "+err.Error()...)
		}
		fmt.Println(base64.StdEncoding.EncodeToString(out))
	}
	return lines.Err()
}

// mounted is a tree as a sandbox shows it.
type mounted struct {
	dir   string // the mounted directory, as the test can reach it
	in    io.WriteCloser
	out   *bufio.Reader
	close func()
}

func mount(tb testing.TB, f failer, tree *Tree, bind map[string]string) *mounted {
	tb.Helper()
	return mountAs(tb, f, tree, bind, 0)
}

func mountAs(tb testing.TB, f failer, tree *Tree, bind map[string]string, user int) *mounted {
	tb.Helper()
	at := tb.TempDir()
	must(f, os.Chmod(filepath.Dir(at), 0o755)) // Others work here too.
	o := tree.Overlay()
	must(f, sandbox.RemoveTree(o.Work))
	must(f, os.Mkdir(o.Work, 0o755))
	if user != 0 {
		must(f, os.Chown(o.Work, user, user))
	}
	text, err := json.Marshal(mountSpec{Overlay: *o, At: at, Bind: bind, User: user})
	must(f, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mountRequest+"="+string(text))
	cmd.Stderr = os.Stderr
	ids := func(id int) []syscall.SysProcIDMap {
		maps := []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
		if user != 0 {
			maps = append(maps, syscall.SysProcIDMap{ContainerID: user, HostID: user, Size: 1})
		}
		return maps
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: ids(os.Geteuid()), GidMappings: ids(os.Getegid()),
		Pdeathsig: syscall.SIGKILL,
	}
	in, err := cmd.StdinPipe()
	must(f, err)
	out, err := cmd.StdoutPipe()
	must(f, err)
	must(f, cmd.Start())
	m := &mounted{dir: filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "root", at), in: in, out: bufio.NewReader(out)}
	open := true
	m.close = func() {
		if open {
			open = false
			in.Close()
			_ = cmd.Wait()
			_ = sandbox.RemoveTree(o.Work) // The kernel locks up what it leaves there.
		}
	}
	tb.Cleanup(m.close)
	if line, err := m.out.ReadString('\n'); line != "ready\n" {
		f.Fatalf("mount: %q, %v", line, err)
	}
	return m
}

// run runs a shell script at the top of the mounted tree.
func (m *mounted) run(f failer, script string) string {
	f.Helper()
	_, err := fmt.Fprintln(m.in, base64.StdEncoding.EncodeToString([]byte(script)))
	must(f, err)
	line, err := m.out.ReadString('\n')
	must(f, err)
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
	must(f, err)
	if strings.Contains(string(text), "\nended: ") {
		f.Fatalf("%s\n%s", script, text)
	}
	return strings.TrimRight(string(text), "\n")
}

func quietShell(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C"}
	return cmd
}
