package sandbox

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tier seatbelt is written from the documentation of others and was not tried
// on a Mac by those who wrote it. There is neither a process namespace nor a
// limit on processes in it, and no network of its own: servers of a test cannot
// be reached.

// seatbeltBase permits what every program of macOS needs, and nothing that
// leads out. What comes later in a profile counts.
const seatbeltBase = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow user-preference-read)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.logger"))
(allow ipc-posix-sem ipc-posix-shm-read-data)
(allow pseudo-tty)
(allow file-read-metadata)
(allow file-read* (literal "/") (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow file-read* file-write* file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
`

// seatbeltSystem are the directories that every program needs.
var seatbeltSystem = []string{
	"/usr", "/bin", "/sbin", "/opt", "/System", "/Library/Developer", "/Library/Frameworks", "/Library/Java",
	"/Library/Apple", "/Applications/Xcode.app", "/private/etc", "/private/var/db/timezone", "/private/var/db/dyld",
	"/private/var/select", "/dev/fd",
}

// seatbeltProfile writes a profile for sandbox-exec, and the parameters by which it
// names paths, NAME=VALUE each: no path is ever part of its text. Resolve turns
// a path into the one that the kernel knows.
func (b Box) seatbeltProfile(home, tmp string, ports []int, resolve func(string) string) (profile string, parameters []string) {
	p := profiler{resolve: resolve}
	p.text.WriteString(seatbeltBase)
	for _, dir := range seatbeltSystem {
		p.addRule("allow", "file-read*", "subpath", dir)
	}
	for _, dir := range []string{b.Dir, home, tmp} {
		p.addRule("allow", "file-read* file-write*", "subpath", dir)
	}
	p.addRule("deny", "file-read* file-write*", "subpath", filepath.Join(b.Dir, ".git"))
	for _, bind := range b.Binds {
		what := "file-read*"
		if bind.Write {
			what += " file-write*"
		}
		p.addRule("allow", what, "subpath", bind.From)
	}
	for _, path := range b.Protect {
		p.addRule("deny", "file-write*", "subpath", path)
	}
	for _, path := range b.Masks {
		p.addRule("deny", "file-read* file-write*", "subpath", path)
	}
	for _, path := range slices.Concat(b.Protect, b.Masks) {
		// A name below is moved with the directory.
		for dir := filepath.Dir(path); dir != b.Dir && isWithin(dir, b.Dir); dir = filepath.Dir(dir) {
			p.addRule("deny", "file-write-unlink", "literal", dir)
		}
	}
	for _, port := range ports {
		p.text.WriteString(`(allow network-outbound (remote ip "localhost:` + strconv.Itoa(port) + "\"))\n")
	}
	return p.text.String(), p.parameters
}

// profiler writes rules over paths.
type profiler struct {
	text       strings.Builder
	parameters []string
	resolve    func(string) string
}

func (p *profiler) addRule(verb, operations, filter, path string) {
	name := "PATH_" + strconv.Itoa(len(p.parameters))
	p.parameters = append(p.parameters, name+"="+p.resolve(path))
	p.text.WriteString("(" + verb + " " + operations + " (" + filter + ` (param "` + name + "\")))\n")
}

// isWithin reports whether path is dir or lies below it.
func isWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
