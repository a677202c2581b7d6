package compose_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

const (
	// soakEnv is how long the nodes of the cluster work, instead of the usual time.
	soakEnv = "PAWL_TEST_SOAK"
	// seedEnv is the seed of the faults, or of a child's choices.
	seedEnv = "PAWL_TEST_SEED"
)

// clusterLease is short, so that many leases end within a test.
const clusterLease = 2 * time.Second

// cluster is several nodes on one PostgreSQL, each with a host name, a clock, a home, a
// clone of one repository and a network of its own, whose process runs loops until it is
// told to end.
type cluster struct {
	t      *testing.T
	server *pgtest.Server
	url    string // of the database, past every fault
	dir    string
	nodes  []*clusterNode
	random *rand.Rand
	counts map[string]int // faults by kind
}

type clusterNode struct {
	*fixture
	name string
	verb string // what its process does
	line *netLine
	log  *os.File
	cmd  *exec.Cmd
	done chan struct{}
}

const clusterLoops = 6

// clusterConfig is a loop whose agent says all the time that it lives, in a file outside
// of every sandbox, with more keys.
func clusterConfig(name, beats, more string) string {
	return more + fmt.Sprintf(`name: %[1]s
pattern: custom
tier: L2
goal: Say that you live.
scope: ["src/%[1]s/**"]
verify: "true"
guard: "true"
permission_mode: dontAsk
worktree: true
escalation: anything
budget_tokens: 200000
kill_switch: .loops/%[1]s/PAUSED exists
land_via: human
sense: echo work
agent: command
sandbox: %[3]s
agent_command: 'n=0; while [ $n -lt 12 ]; do n=$((n+1)); echo "%[1]s $PAWL_RUN $(date +%%s%%N)" >> %[2]s; sleep 0.05; done; mkdir -p src/%[1]s; echo "$PAWL_RUN" > src/%[1]s/half.txt; o=blocked; case $(date +%%N) in *[02468]) o=done;; esac; echo "{\"outcome\":\"$o\",\"reason\":\"as scripted\"}" > "$PAWL_REPORT"'
`, name, beats, bare)
}

// newCluster makes nodes whose processes do what verbs say, and loops with further keys.
func newCluster(t *testing.T, verbs []string, loops []string) *cluster {
	t.Helper()
	c := &cluster{t: t, server: pgtest.NewServer(t, "fsync=off"), dir: t.TempDir(), counts: map[string]int{}}
	c.url = c.server.URL()
	first := newFixture(t, c.url)
	for i, more := range loops {
		name := fmt.Sprintf("loop%d", i)
		path := filepath.Join(first.root, ".loops", name, "loop.config.yaml")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(clusterConfig(name, c.beats(), more)), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	first.git("add", "-A")
	first.git("commit", "-q", "-m", "loops")
	first.pawl("recover") // Registers it.
	id := strings.TrimSpace(readFile(t, filepath.Join(first.root, ".git", "pawl-workspace")))
	for i, verb := range verbs {
		n := &clusterNode{fixture: first, name: fmt.Sprintf("node%d", i), verb: verb, line: newNetLine(t, i, c.url)}
		if i > 0 {
			n.fixture = &fixture{t: t, root: filepath.Join(t.TempDir(), "clone"), home: newHome(t), database: c.url}
			if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", first.root, n.root).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			(&twoNodes{t, first, n.fixture, id}).join()
		}
		// One clock is right, one five minutes behind, one five ahead.
		n.setClock([]time.Duration{0, -5 * time.Minute, 5 * time.Minute}[i%3])
		n.host, n.database = n.name, n.line.url
		var err error
		if n.log, err = os.Create(filepath.Join(c.dir, n.name+".log")); err != nil {
			t.Fatal(err)
		}
		c.nodes = append(c.nodes, n)
	}
	return c
}

// beats is the file in which all agents say that they live.
func (c *cluster) beats() string { return filepath.Join(c.dir, "beats") }

// hasBeats reports whether an agent has worked yet.
func (c *cluster) hasBeats() bool {
	_, err := os.Stat(c.beats())
	return err == nil
}

// start starts the process of a node.
func (c *cluster) start(n *clusterNode) {
	cmd := n.command(n.verb, nodeEnv+"="+n.name, leaseEnv+"="+clusterLease.String(), seedEnv+"="+strconv.FormatUint(c.random.Uint64(), 10))
	if n.line.netns != "" {
		cmd.Args = append([]string{"ip", "netns", "exec", n.line.netns}, cmd.Args...)
		cmd.Path, _ = exec.LookPath("ip")
	}
	cmd.Stdout, cmd.Stderr = n.log, n.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	n.cmd, n.done = cmd, done
	go func() { defer close(done); _ = cmd.Wait() }()
}

// work is the child of a node: like a person or a timer, it enters one command after the
// other.
func work(ctx context.Context, open func() (*compose.Parts, error)) {
	seed, _ := strconv.ParseUint(os.Getenv(seedEnv), 10, 64)
	random := rand.New(rand.NewPCG(seed, 1))
	for {
		err := func() error {
			d, err := open()
			if err != nil {
				return err
			}
			defer func() { _ = d.Close() }()
			s, err := d.Verbs(ctx, ".")
			if err != nil {
				return err
			}
			found, err := s.Runs.Recover(ctx)
			for _, rec := range found {
				fmt.Fprintf(os.Stderr, "recovered %s#%d %s\n", rec.Loop, rec.Run.N, rec.How)
			}
			if err != nil {
				return fmt.Errorf("recover: %w", err)
			}
			plan, err := s.Runs.Prepare(ctx, runs.StartRequest{
				Loop: fmt.Sprintf("loop%d", random.IntN(clusterLoops)), Request: fmt.Sprintf("say it %d", random.Uint32()),
			})
			if err != nil {
				return err
			}
			run, err := s.Runs.Start(ctx, plan)
			fmt.Fprintf(os.Stderr, "run %s#%d %s %s\n", run.Loop, run.N, run.Outcome, run.Reason)
			return err
		}()
		if err != nil {
			fmt.Fprintf(os.Stderr, "error %v\n", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// fault does one thing to the cluster, and undoes it.
func (c *cluster) fault() {
	n := c.nodes[c.random.IntN(len(c.nodes))]
	pause := func(least, most time.Duration) {
		time.Sleep(least + time.Duration(c.random.Int64N(int64(most-least))))
	}
	kind := []string{"kill", "kill", "stop", "stop", "cut", "cut", "restart"}[c.random.IntN(7)]
	c.counts[kind]++
	switch kind {
	case "kill":
		_ = n.cmd.Process.Kill()
		<-n.done
		pause(0, 2*clusterLease)
		c.start(n)
	case "stop": // Only pawl: its agents go on.
		_ = n.cmd.Process.Signal(syscall.SIGSTOP)
		pause(clusterLease/2, 3*clusterLease)
		_ = n.cmd.Process.Signal(syscall.SIGCONT)
	case "cut":
		n.line.cut()
		pause(clusterLease/2, 3*clusterLease)
		n.line.mend()
	case "restart":
		c.server.Stop()
		pause(0, clusterLease)
		c.server.Start()
	}
}

// netLine is the network between a node and the database: a namespace of the node's own
// where the machine lets us make one, else a connection that can be cut.
type netLine struct {
	url   string
	netns string
	host  string // end of the wire that is outside of the namespace
	plain *pgtest.Line
}

func newNetLine(t *testing.T, i int, database string) *netLine {
	t.Helper()
	l := &netLine{netns: fmt.Sprintf("pawl%d-%d", os.Getpid()%10000, i), host: fmt.Sprintf("pw%d-%d", os.Getpid()%10000, i)}
	// Two of these tests at once have different processes, and so different addresses.
	wire := fmt.Sprintf("10.%d.%d.", 64+os.Getpid()%128, os.Getpid()/128%64*4+i)
	ours, theirs := wire+"1", wire+"2"
	inside := l.host + "n"
	ip := func(args ...string) error {
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
		}
		return err
	}
	err := ip("netns", "add", l.netns)
	if err == nil {
		t.Cleanup(func() { _ = ip("netns", "del", l.netns) })
		for _, line := range []string{
			"link add " + l.host + " type veth peer name " + inside, "link set " + inside + " netns " + l.netns, "addr add " + ours + "/30 dev " + l.host,
			"link set " + l.host + " up", "-n " + l.netns + " addr add " + theirs + "/30 dev " + inside, "-n " + l.netns + " link set " + inside + " up",
			"-n " + l.netns + " link set lo up",
		} {
			if err == nil {
				err = ip(strings.Fields(line)...)
			}
		}
	}
	if err != nil {
		t.Logf("no network namespace can be made here (%v): the line is cut instead", err)
		l.netns, l.plain = "", pgtest.NewLine(t, database)
		l.url = l.plain.URL
		return l
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ours+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, socket)
		}
	}()
	u.User = url.User(u.Query().Get("user"))
	u.Host, u.RawQuery = listener.Addr().String(), "connect_timeout=2&sslmode=disable"
	l.url = u.String()
	return l
}

// forward connects a client with the socket of the server until either ends.
func forward(conn net.Conn, socket string) {
	defer conn.Close()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(conn, server); _ = conn.Close() }()
	_, _ = io.Copy(server, conn)
}

func (l *netLine) cut() {
	if l.plain != nil {
		l.plain.Cut()
		return
	}
	_ = exec.Command("ip", "link", "set", l.host, "down").Run()
}

func (l *netLine) mend() {
	if l.plain != nil {
		l.plain.Mend()
		return
	}
	_ = exec.Command("ip", "link", "set", l.host, "up").Run()
}

// soak returns for how many seconds the nodes of a test work, and the seed of its faults.
func soak(t *testing.T, some, all int) (long time.Duration, seed uint64) {
	t.Helper()
	long = time.Duration(sample.Size(some, all)) * time.Second
	if text := os.Getenv(soakEnv); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%s with the faults of seed %d", long, seed)
	return long, seed
}

// Three nodes work on one PostgreSQL while processes are killed and stopped, the server is
// restarted and the network is cut, and two of their clocks are five minutes wrong. Every
// change of a run is recorded by the database itself; what is checked about that history
// shares nothing with the code that made it.
func TestNodesOfOneStoreKeepEveryPromiseWhateverHappensToThem(t *testing.T) {
	t.Parallel()
	long, seed := soak(t, 8, 120)
	c := newCluster(t, []string{"work", "work", "work"}, slices.Repeat([]string{"cadence: 1h\n"}, clusterLoops))
	c.random = rand.New(rand.NewPCG(seed, 2))
	c.recordHistory()
	for _, n := range c.nodes {
		c.start(n)
	}
	for end := time.Now().Add(long); time.Now().Before(end) || c.runs() < 3 || !c.hasBeats(); { // A busy machine takes its time.
		time.Sleep(time.Duration(c.random.Int64N(int64(time.Second))))
		c.fault()
	}
	for _, n := range c.nodes {
		_ = n.cmd.Process.Kill()
		<-n.done
	}
	time.Sleep(clusterLease + time.Second)
	for range 2 { // What one node has freed, another has to finish.
		for _, n := range c.nodes {
			n.database = c.url
			n.pawl("recover", leaseEnv+"="+clusterLease.String())
		}
	}
	defer func() {
		for _, n := range c.nodes {
			if t.Failed() {
				t.Logf("log of %s:\n%s", n.name, tail(readFile(t, n.log.Name()), 60))
			}
		}
	}()
	t.Logf("faults: %v", c.counts)
	c.check()
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
