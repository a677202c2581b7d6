package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// hostFacts are the facts about this host on which advice depends. Settings are the
// texts of their files, empty if the file does not exist.
type hostFacts struct {
	OS     string // as runtime.GOOS
	Kernel string // release, "6.8.0-45-generic"
	UID    int
	Exe    string // the running binary
	Home   string // the directory in which trees are made

	Container  string // docker, podman, kubernetes, lxc …; empty: none
	GitHub     bool   // a runner of GitHub Actions
	AppArmor   string // kernel.apparmor_restrict_unprivileged_userns
	Clone      string // kernel.unprivileged_userns_clone
	Namespaces string // user.max_user_namespaces
	Modules    string // the kernel's list of security modules
	Landlock   int    // version; 0: none that can be used
	Filtered   bool   // pawl itself runs behind a filter of system calls
	Masked     bool   // parts of /proc are covered
}

// adviseOn explains to a person why a self-test failed and what to do about it. It
// finds the cause in the facts; err only decides which facts matter.
func (m hostFacts) adviseOn(tier Tier, err error, failed []Row) *loop.Fault {
	f := &loop.Fault{Exit: loop.ExitMissing, What: fmt.Sprintf("the sandbox %q is not available on this host", tier), Err: err}
	tried := loop.PawlCommand("doctor").WithFlag("sandbox")
	for _, cause := range []func(Tier, error, []Row) (why, fix string){
		m.adviseOtherSystem, m.adviseLeak, m.adviseNoLandlock, m.adviseOldKernel, m.adviseNoNamespaces, m.adviseContainer,
	} {
		if f.Why, f.Fix = cause(tier, err, failed); f.Why != "" {
			if f.Fix == reportLeak {
				f.Actions = []loop.Command{tried.WithFlag("json")}
			}
			return f
		}
	}
	f.Why = "its self-test could not be made"
	if err != nil {
		f.Why = err.Error()
	}
	return f.WithAdvice(loop.Advise("see what is denied: {1}; where pawl already runs in a container or a virtual machine that confines it enough, write sandbox: external", tried))
}

func (m hostFacts) adviseOtherSystem(tier Tier, _ error, _ []Row) (why, fix string) {
	switch {
	case m.OS == "darwin" && tier == Seatbelt:
		return "seatbelt has no self-test yet, so it cannot be shown to hold",
			"run pawl in a Linux virtual machine, or write sandbox: external and confine pawl itself"
	case m.OS == "darwin":
		return "macOS has no namespaces and no Landlock", "write sandbox: seatbelt, which holds at L1 and L2"
	case m.OS == "windows":
		return "Windows has no sandbox that pawl knows", "run pawl in WSL 2: wsl --install, then install pawl there"
	case m.OS != "linux":
		return m.OS + " has no sandbox that pawl knows", "run pawl on Linux"
	case tier == Seatbelt:
		return "seatbelt is a part of macOS", "write sandbox: full"
	case strings.HasSuffix(m.Kernel, "-Microsoft"):
		return "WSL 1 has no Linux kernel, and so neither namespaces nor Landlock",
			"in PowerShell: wsl --list, then wsl --set-version NAME 2"
	}
	return "", ""
}

const reportLeak = "report it with the output of: {1}; until then let a container or a virtual machine confine pawl and write sandbox: external"

// adviseLeak is for a sandbox that was set up but does not confine, or in which tools
// do not work.
func (m hostFacts) adviseLeak(_ Tier, err error, failed []Row) (why, fix string) {
	if err != nil || len(failed) == 0 {
		return "", ""
	}
	var rows []string
	for _, r := range failed {
		rows = append(rows, fmt.Sprintf("%s: %s (%s)", r.Action, r.Got, r.Detail))
	}
	return "its self-test shows: " + strings.Join(rows, "; "), reportLeak
}

func (m hostFacts) adviseNoLandlock(tier Tier, _ error, _ []Row) (why, fix string) {
	switch {
	case tier == Landlock && m.Landlock > 0 && m.Landlock < 4:
		return fmt.Sprintf("Landlock of this kernel (version %d, Linux %s) has no rules over TCP", m.Landlock, m.Kernel),
			"use Linux 6.7 or later, or write sandbox: full"
	case m.Landlock > 0:
		return "", ""
	case m.isOlderThan(5, 13):
		return "Linux " + m.Kernel + " has no Landlock", "use Linux 5.13 or later"
	case m.Modules != "" && !strings.Contains(","+m.Modules+",", ",landlock,"):
		return "Landlock is not among the security modules that this kernel started (" + m.Modules + ")",
			"add lsm=landlock," + m.Modules + " to the kernel's command line (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub) and reboot"
	case m.Container != "":
		return "", "" // adviseContainer explains it.
	}
	return "this kernel was built without Landlock", "use a kernel with CONFIG_SECURITY_LANDLOCK=y, as distributions have it since 2022"
}

func (m hostFacts) adviseOldKernel(tier Tier, _ error, _ []Row) (why, fix string) {
	if tier == Full && m.isOlderThan(5, 13) {
		return "Linux " + m.Kernel + " cannot make read-only mounts and overlays for a user without privilege", "use Linux 5.13 or later"
	}
	return "", ""
}

func (m hostFacts) adviseNoNamespaces(tier Tier, err error, _ []Row) (why, fix string) {
	switch {
	case tier != Full || !isRefusal(err):
		return "", ""
	case m.Namespaces == "0":
		return "user namespaces are switched off here (user.max_user_namespaces = 0)",
			permanentSysctl("user.max_user_namespaces=15000")
	case m.UID != 0 && m.Clone == "0":
		return "users without privilege may not make user namespaces here (kernel.unprivileged_userns_clone = 0)",
			permanentSysctl("kernel.unprivileged_userns_clone=1")
	case m.UID != 0 && m.AppArmor == "1" && m.GitHub:
		return "this runner keeps user namespaces from programs without an AppArmor profile (kernel.apparmor_restrict_unprivileged_userns = 1)",
			"add a step before pawl:\n      - run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case m.UID != 0 && m.AppArmor == "1" && m.Container == "":
		return "AppArmor keeps user namespaces from programs without a profile (kernel.apparmor_restrict_unprivileged_userns = 1)",
			"write /etc/apparmor.d/pawl:\n\n" + m.appArmorProfile() + "\nand load it: sudo apparmor_parser -r /etc/apparmor.d/pawl\n" +
				"(or, for every program: " + permanentSysctl("kernel.apparmor_restrict_unprivileged_userns=0") + ")"
	}
	return "", ""
}

// appArmorProfile returns an AppArmor profile that permits the running binary, and
// what it starts, to make user namespaces, and changes nothing else.
func (m hostFacts) appArmorProfile() string {
	path := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(m.Exe)
	return "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile pawl \"" + path + "\" flags=(unconfined) {\n  userns,\n  include if exists <local/pawl>\n}\n"
}

func (m hostFacts) adviseContainer(_ Tier, err error, _ []Row) (why, fix string) {
	if m.Container == "" || !isRefusal(err) {
		return "", ""
	}
	var causes []string
	if m.Filtered {
		causes = append(causes, "filters the system calls that a sandbox needs")
	}
	if m.Masked {
		causes = append(causes, "covers parts of /proc, so that no fresh one can be mounted")
	}
	if len(causes) == 0 {
		causes = append(causes, "lets nobody make namespaces or mounts")
	}
	fix = "start it with: --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
	if m.Container == "kubernetes" {
		fix = "give the container securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}, procMount: Unmasked} in a pod with hostUsers: false"
	}
	return "the container (" + m.Container + ") " + strings.Join(causes, " and "),
		fix + "; or, if the container is confinement enough, write sandbox: external"
}

// isOlderThan reports whether the kernel is older than a version. It is false if the
// release cannot be parsed.
func (m hostFacts) isOlderThan(major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(m.Kernel, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a < major || a == major && b < minor
}

// isRefusal reports whether err means that the kernel denied or does not offer
// something, and not that something was missing.
func isRefusal(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.ENOSYS, syscall.EINVAL} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// permanentSysctl returns a command that sets a kernel parameter now and for later
// starts of the host.
func permanentSysctl(setting string) string {
	return "sudo sysctl -w " + setting + " && echo " + setting + " | sudo tee /etc/sysctl.d/60-pawl.conf"
}
