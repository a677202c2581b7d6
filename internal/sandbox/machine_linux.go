package sandbox

import (
	"os"
	"runtime"
	"strings"

	"github.com/pawl-run/pawl/internal/sandbox/stage"
)

// look describes this machine as far as advice depends on it.
func look(dir string) machine {
	path, _ := binary()
	return machine{
		OS: runtime.GOOS, Kernel: kernel(), UID: os.Geteuid(), Exe: path, Home: dir,
		Container:  container(),
		GitHub:     os.Getenv("GITHUB_ACTIONS") == "true",
		AppArmor:   setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		Clone:      setting("/proc/sys/kernel/unprivileged_userns_clone"),
		Namespaces: setting("/proc/sys/user/max_user_namespaces"),
		Modules:    setting("/sys/kernel/security/lsm"),
		Landlock:   stage.Version(),
		Filtered:   strings.Contains(setting("/proc/self/status"), "\nSeccomp:\t2"),
		Masked:     masked(setting("/proc/self/mountinfo")),
	}
}

// setting reads a small file; empty where there is none.
func setting(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

// container is what pawl runs in, as far as that can be seen.
func container() string {
	for _, sign := range []struct{ path, name string }{
		{"/var/run/secrets/kubernetes.io", "kubernetes"}, {"/.dockerenv", "docker"}, {"/run/.containerenv", "podman"},
	} {
		if _, err := os.Stat(sign.path); err == nil {
			return sign.name
		}
	}
	if name := setting("/run/systemd/container"); name != "" {
		return name
	}
	return os.Getenv("container")
}

// masked reports whether something is mounted over parts of /proc, in which
// case the kernel lets nobody without privilege mount a fresh one.
func masked(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], "/proc/") && fields[4] != "/proc/sys/fs/binfmt_misc" {
			return true
		}
	}
	return false
}
