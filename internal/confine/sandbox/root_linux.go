package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage"
)

// Sizes of the file systems in memory of a cell, in bytes.
const (
	tmpSize  = 1 << 30
	homeSize = 512 << 20
	shmSize  = 64 << 20
)

// systemDirs are the directories of the host that every program needs. One that is a
// symbolic link becomes the same link in the cell.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/libx32", "/lib64", "/opt", "/etc"}

// deviceNames are the devices in the /dev of a cell.
var deviceNames = []string{"null", "zero", "full", "random", "urandom", "tty"}

// hiddenPaths are the files by which a new /proc tells something about the host.
var hiddenPaths = []string{
	"/proc/keys", "/proc/key-users", "/proc/kallsyms", "/proc/timer_list", "/proc/kcore", "/proc/kmsg",
	"/proc/sysrq-trigger", "/proc/sched_debug", "/proc/scsi", "/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq",
}

// secretPaths are hidden although only root can read them on most hosts: on some,
// others can too.
var secretPaths = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/security/opasswd",
	"/etc/ssl/private", "/etc/ssh", "/etc/krb5.keytab", "/etc/kubernetes", "/etc/letsencrypt", "/etc/wireguard",
	"/etc/NetworkManager/system-connections", "/etc/netrc", "/etc/docker",
}

// rootMounts returns the mounts of a cell, in the order in which they are made.
func (b Box) rootMounts() []stage.Mount {
	var mounts []stage.Mount
	for _, dir := range systemDirs {
		if target, err := os.Readlink(dir); err == nil {
			mounts = append(mounts, stage.Mount{Kind: stage.Link, From: target, To: dir})
		} else if isFolder(dir) {
			mounts = append(mounts, readOnlyMount(dir))
		}
	}
	mounts = append(mounts, b.kernelMounts()...)
	mounts = append(mounts, stage.Mount{Kind: stage.Memory, To: b.Home, Size: homeSize, Mode: 0o700})
	// A bound directory above the tree, such as the user's home, must not cover it.
	binds := b.bindMounts()
	above := func(m stage.Mount) bool { return m.To != b.Tree && isWithin(b.Tree, m.To) }
	for _, m := range binds {
		if above(m) {
			mounts = append(mounts, m)
		}
	}
	if b.Layers != nil {
		mounts = append(mounts, overlayMount(b.Tree, *b.Layers))
	} else {
		mounts = append(mounts, stage.Mount{Kind: stage.Bind, From: b.Dir, To: b.Tree})
	}
	mounts = append(mounts, slices.DeleteFunc(binds, above)...)
	for _, v := range b.Views {
		for _, dir := range v.Lower {
			mounts = append(mounts, stage.Mount{Kind: stage.Lower, From: dir})
		}
		mounts = append(mounts, overlayMount(v.At, v.Overlay))
	}
	mounts = append(mounts, b.pinMounts()...)
	for _, path := range b.Protect {
		mounts = append(mounts, stage.Mount{Kind: stage.Again, To: path, ReadOnly: true})
	}
	for _, path := range slices.Concat(hiddenPaths, secretPaths, b.Masks) {
		mounts = append(mounts, stage.Mount{Kind: stage.Hide, To: path})
	}
	return mounts
}

func readOnlyMount(path string) stage.Mount {
	return stage.Mount{Kind: stage.Bind, From: path, To: path, ReadOnly: true}
}

// kernelMounts returns the mounts of /proc, /dev, /sys and temporary directories.
func (b Box) kernelMounts() []stage.Mount {
	mounts := []stage.Mount{
		{Kind: stage.Proc, To: "/proc"},
		{Kind: stage.Again, To: "/proc/sys", ReadOnly: true},
		{Kind: stage.Memory, To: "/dev", Size: 64 << 10, Mode: 0o755},
		{Kind: stage.Memory, To: "/dev/shm", Size: shmSize, Mode: 0o1777},
		{Kind: stage.Terminal, To: "/dev/pts"},
		{Kind: stage.Link, From: "pts/ptmx", To: "/dev/ptmx"},
		{Kind: stage.Link, From: "/proc/self/fd", To: "/dev/fd"},
		{Kind: stage.Link, From: "/proc/self/fd/0", To: "/dev/stdin"},
		{Kind: stage.Link, From: "/proc/self/fd/1", To: "/dev/stdout"},
		{Kind: stage.Link, From: "/proc/self/fd/2", To: "/dev/stderr"},
		{Kind: stage.Memory, To: "/tmp", Size: tmpSize, Mode: 0o1777},
	}
	for _, link := range [][2]string{{"/var/tmp", "/tmp"}, {"/var/run", "/run"}} {
		name, target := link[0], link[1]
		// A path of the box below the link would end up elsewhere.
		if !slices.ContainsFunc(b.shownPaths(), func(path string) bool { return isWithin(path, name) }) {
			mounts = append(mounts, stage.Mount{Kind: stage.Link, From: target, To: name})
		}
	}
	for _, name := range deviceNames {
		path := "/dev/" + name
		mounts = append(mounts, stage.Mount{Kind: stage.Bind, From: path, To: path, Devices: true})
	}
	// Many programs ask how many processors there are.
	if cpus := "/sys/devices/system/cpu"; isFolder(cpus) {
		mounts = append(mounts, readOnlyMount(cpus))
	}
	return mounts
}

// pinMounts returns a mount for each directory between the tree and a protected or
// masked path, so that it cannot be renamed: a mount point cannot be, but the
// directories above it can. In a layered tree the kernel renames no directory of a
// lower layer anyway.
func (b Box) pinMounts() []stage.Mount {
	if b.Layers != nil {
		return nil
	}
	var dirs []string
	for _, path := range slices.Concat(b.Protect, b.Masks) {
		for dir := filepath.Dir(path); isWithin(dir, b.Tree) && dir != b.Tree; dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	var mounts []stage.Mount
	for _, dir := range slices.Compact(dirs) {
		mounts = append(mounts, stage.Mount{Kind: stage.Again, To: dir})
	}
	return mounts
}

func overlayMount(at string, o Overlay) stage.Mount {
	return stage.Mount{Kind: stage.Overlay, To: at, Layers: o.Lower, Upper: o.Upper, Work: o.Work}
}

// bindMounts returns the mounts of b.Binds that systemDirs do not already show, outer
// directories before inner ones.
func (b Box) bindMounts() []stage.Mount {
	var mounts []stage.Mount
	for _, bind := range b.Binds {
		if bind.To == "" {
			bind.To = bind.From
		}
		m := stage.Mount{Kind: stage.Bind, From: bind.From, To: bind.To, ReadOnly: !bind.Write}
		if target := b.keptLink(bind); target != "" {
			m = stage.Mount{Kind: stage.Link, From: target, To: bind.To}
		}
		if bind.From != bind.To || bind.Write || !isSystem(bind.To) {
			mounts = append(mounts, m)
		}
	}
	slices.SortStableFunc(mounts, func(a, b stage.Mount) int { return strings.Compare(a.To, b.To) })
	return slices.CompactFunc(mounts, func(a, b stage.Mount) bool { return a.To == b.To && a.From == b.From && a.ReadOnly == b.ReadOnly })
}

// keptLink returns the target of a bind that is a symbolic link and can be made as one
// because the cell shows its target too. Otherwise it returns "". Programs look for
// files beside their own, and the link tells them where that is.
func (b Box) keptLink(bind Bind) string {
	if bind.From != bind.To || bind.Write {
		return ""
	}
	target, err := os.Readlink(bind.From)
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(bind.From)
	if err != nil {
		return ""
	}
	seen := isSystem(real) || slices.ContainsFunc(b.Binds, func(other Bind) bool {
		return other.From != bind.From && (other.To == "" || other.To == other.From) && isWithin(real, other.From)
	})
	if !seen {
		return ""
	}
	return target
}

// isSystem reports whether every cell shows the path, links resolved.
func isSystem(path string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return isWithin(path, dir) })
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// cellRules returns what Landlock permits in a cell. The root has nothing in it that
// must not be read; the rules restrict a second time what may be written.
func (b Box) cellRules() stage.Rules {
	r := stage.Rules{
		List:  []string{"/"},
		Read:  append(slices.Clone(systemDirs), "/proc", "/sys"),
		Write: []string{"/dev", "/tmp", b.Home, b.Tree},
	}
	for _, bind := range b.Binds {
		at := bind.At(Full)
		if bind.Write {
			r.Write = append(r.Write, at)
		} else {
			r.Read = append(r.Read, at)
		}
	}
	for _, v := range b.Views {
		if v.Upper != "" {
			r.Write = append(r.Write, v.At)
		} else {
			r.Read = append(r.Read, v.At)
		}
	}
	return r
}

// checkPaths refuses paths that are not clean and absolute, and the root itself.
func (b Box) checkPaths() error {
	for _, path := range slices.Concat(b.shownPaths(), b.Protect, b.Masks) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			return &pathError{path}
		}
	}
	return nil
}

// shownPaths returns the paths in a cell at which the box mounts something.
func (b Box) shownPaths() []string {
	paths := []string{b.Tree, b.Home}
	for _, bind := range b.Binds {
		paths = append(paths, bind.At(Full))
	}
	for _, v := range b.Views {
		paths = append(paths, v.At)
	}
	return paths
}

type pathError struct{ path string }

func (e *pathError) Error() string {
	return "a box cannot show something at " + e.path + ", which is not a clean absolute path below the root"
}
