package sandbox

import (
	"os"
	"runtime"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage"
)

// readHostFacts returns the facts about this host on which advice depends.
func readHostFacts(dir string) hostFacts {
	path, _ := binaryID()
	return hostFacts{
		OS: runtime.GOOS, Kernel: kernelRelease(), UID: os.Geteuid(), Exe: path, Home: dir,
		Container:  detectContainer(),
		GitHub:     os.Getenv("GITHUB_ACTIONS") == "true",
		AppArmor:   readSetting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		Clone:      readSetting("/proc/sys/kernel/unprivileged_userns_clone"),
		Namespaces: readSetting("/proc/sys/user/max_user_namespaces"),
		Modules:    readSetting("/sys/kernel/security/lsm"),
		Landlock:   stage.LandlockVersion(),
		Filtered:   strings.Contains(readSetting("/proc/self/status"), "\nSeccomp:\t2"),
		Masked:     hasMaskedProc(readSetting("/proc/self/mountinfo")),
	}
}

// readSetting returns the text of a small file, "" if it cannot be read.
func readSetting(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

// detectContainer names the kind of container that pawl runs in, "" if it sees none.
func detectContainer() string {
	for _, sign := range []struct{ path, name string }{
		{"/var/run/secrets/kubernetes.io", "kubernetes"}, {"/.dockerenv", "docker"}, {"/run/.containerenv", "podman"},
	} {
		if _, err := os.Stat(sign.path); err == nil {
			return sign.name
		}
	}
	if name := readSetting("/run/systemd/container"); name != "" {
		return name
	}
	return os.Getenv("container")
}

// hasMaskedProc reports whether something is mounted over parts of /proc. Then the
// kernel lets nobody without privilege mount a new /proc.
func hasMaskedProc(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], "/proc/") && fields[4] != "/proc/sys/fs/binfmt_misc" {
			return true
		}
	}
	return false
}
