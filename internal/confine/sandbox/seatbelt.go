package sandbox

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tier seatbelt was written from documentation and was not tried on a Mac. It has no
// PID namespace, no limit of processes and no network of its own: servers of a test
// cannot be reached.

// seatbeltBase permits what every program of macOS needs, and no way out of the box.
// Of several rules that match, the last one counts.
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

// seatbeltProfile returns a profile for sandbox-exec and its parameters, NAME=VALUE
// each, by which it names paths: no path is part of its text. Resolve returns a path
// with symbolic links resolved.
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
		// Moving a directory would move the path in it.
		for dir := filepath.Dir(path); dir != b.Dir && isWithin(dir, b.Dir); dir = filepath.Dir(dir) {
			p.addRule("deny", "file-write-unlink", "literal", dir)
		}
	}
	for _, port := range ports {
		p.text.WriteString(`(allow network-outbound (remote ip "localhost:` + strconv.Itoa(port) + "\"))\n")
	}
	return p.text.String(), p.parameters
}

// profiler writes a profile and collects its parameters.
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

// isWithin reports whether path is dir or below it.
func isWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
