package stage

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// exitRefused is the exit status of a stage that started no program. The reason goes
// over the link.
const exitRefused = 125

func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		stage.Serve(confineThread)
	}
}

// confineThread confines the thread from which the program is forked. Init runs on
// the main thread and keeps it; capabilities, ids, Landlock and seccomp are per
// thread, and a fork passes them on.
func confineThread(program stage.Order) stage.Order {
	var o Order
	encoded, ok := stage.ReadAll(OrderFD)
	if ok {
		o, ok = decodeOrder(encoded)
	}
	if !ok {
		refuseAndExit("read the order", unix.EBADMSG)
	}
	if o.Cell {
		buildRoot(o)
	} else {
		closeHost(o.Rules.Write)
	}
	if program.Dir != "" {
		must("enter the working directory "+program.Dir, unix.Chdir(program.Dir))
		program.Dir = ""
	}
	ruleset := makeRuleset(o.Rules)
	dropPrivileges(o)
	enforceRuleset(ruleset)
	// With a limit of exactly 1 the kernel also starts no program that the host may
	// have set to receive core files, which would run outside of every sandbox.
	must("limit core files", unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}))
	// The filter comes last, because it denies system calls that are needed above.
	installFilter(o)
	program.Path = findProgram(program)
	// The program may run as the same user, and runs before this process learns
	// that its exec succeeded. It must not be able to open the memory and the
	// descriptors of this process.
	must("close its own memory", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	unix.Close(LinkFD)
	return program
}

// dropPrivileges gives up the groups, the user and all capabilities of the process
// that started the stage. The inheritable set goes too, because an exec as uid 0
// would restore capabilities from it, and the bounding set, so that no file can
// grant any.
func dropPrivileges(o Order) {
	must("drop capabilities", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
	for c := uintptr(0); c <= 63; c++ {
		if unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != nil {
			break // There are no more capabilities, or this process may not drop any.
		}
	}
	giveStreams(o)
	if o.Group >= 0 {
		must("leave the groups", unix.Setgroups(nil))
		must("become the group", unix.Setresgid(o.Group, o.Group, o.Group))
	}
	if o.User >= 0 {
		must("become the user", unix.Setresuid(o.User, o.User, o.User))
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	must("drop capabilities", unix.Capset(&header, &none[0]))
	must("refuse new privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// giveStreams makes the program's user the owner of standard input, output and error
// as far as they are pipes: opening /dev/stderr opens the pipe again, which only its
// owner may. Streams that are not pipes keep their owner.
func giveStreams(o Order) {
	const pipes = 0x50495045 // PIPEFS_MAGIC; a named pipe is on another file system
	for fd := range 3 {
		var fs unix.Statfs_t
		if o.User < 0 || unix.Fstatfs(fd, &fs) != nil || fs.Type != pipes {
			continue
		}
		must("give the program its standard streams", unix.Fchown(fd, o.User, o.Group))
	}
}

// findProgram looks up the program in the absolute directories of its PATH. A name
// with a slash is returned as it is.
func findProgram(o stage.Order) string {
	name := o.Path
	if containsByte(name, '/') {
		return name
	}
	for _, dir := range splitAt(lookupVariable(o.Env, "PATH"), ':') {
		if dir == "" || dir[0] != '/' {
			continue
		}
		var st unix.Stat_t
		path := dir + "/" + name
		if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	refuseAndExit("find "+name+" in PATH", unix.ENOENT)
	return ""
}

func lookupVariable(env []string, name string) string {
	for _, kv := range env {
		if len(kv) > len(name) && kv[:len(name)] == name && kv[len(name)] == '=' {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// splitAt and containsByte are here because importing strings would delay the init
// of this package.
func splitAt(s string, at byte) []string {
	var list []string
	start := 0
	for i := range len(s) {
		if s[i] == at {
			list, start = append(list, s[start:i]), i+1
		}
	}
	return append(list, s[start:])
}

func containsByte(s string, c byte) bool {
	for i := range len(s) {
		if s[i] == c {
			return true
		}
	}
	return false
}

func must(step string, err error) {
	if err != nil {
		refuseAndExit(step, err)
	}
}

// refuseAndExit reports over the link why the program does not run, and exits. It
// exits by the system call, because no exit handler of a library may run in a stage.
func refuseAndExit(step string, err error) {
	errno, ok := err.(syscall.Errno) //nolint:errorlint // The system call packages return it bare, and the imports are few on purpose.
	if !ok {
		errno = unix.EINVAL
	}
	_, _ = unix.Write(LinkFD, Message{Step: step, Errno: errno}.encode())
	syscall.Exit(exitRefused)
}
