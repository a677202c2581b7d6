package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ubuntu are the facts of a host on which everything works, for an ordinary user.
var ubuntu = hostFacts{
	OS: "linux", Kernel: "6.8.0-45-generic", UID: 1000, Exe: "/home/somebody/bin/pawl", Home: "/home/somebody/.pawl",
	Clone: "1", Namespaces: "60000", Modules: "lockdown,capability,landlock,yama,apparmor", Landlock: 4,
}

func changedUbuntu(change func(*hostFacts)) hostFacts {
	m := ubuntu
	change(&m)
	return m
}

func TestAdviceNamesTheCauseAndItsFix(t *testing.T) {
	denied := fmt.Errorf("start sh: set up its process tree: %w", syscall.EPERM)
	noMount := &SetupError{Step: "detach mounts", Err: syscall.EACCES}
	noSpace := fmt.Errorf("start sh: set up its process tree: %w", syscall.ENOSPC)
	noRules := &SetupError{Step: "ask for Landlock", Err: syscall.ENOSYS}
	cases := map[string]struct {
		m        hostFacts
		tier     Tier
		err      error
		why, fix string
	}{
		"Ubuntu's rule over user namespaces": {
			changedUbuntu(func(m *hostFacts) { m.AppArmor = "1" }), Full, noMount, "kernel.apparmor_restrict_unprivileged_userns = 1",
			"profile pawl \"/home/somebody/bin/pawl\" flags=(unconfined) {\n  userns,",
		},
		"the same on a runner of GitHub": {
			changedUbuntu(func(m *hostFacts) { m.AppArmor, m.GitHub = "1", true }), Full, noMount, "this runner",
			"- run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
		},
		"an old Debian": {
			changedUbuntu(func(m *hostFacts) { m.Clone = "0" }), Full, denied, "kernel.unprivileged_userns_clone = 0", "sudo sysctl -w kernel.unprivileged_userns_clone=1",
		},
		"no user namespaces at all": {
			changedUbuntu(func(m *hostFacts) { m.Namespaces = "0" }), Full, noSpace, "user.max_user_namespaces = 0", "sudo sysctl -w user.max_user_namespaces=15000",
		},
		"the same for root": {
			changedUbuntu(func(m *hostFacts) { m.Namespaces, m.UID = "0", 0 }), Full, noSpace, "user.max_user_namespaces = 0", "15000",
		},
		"a container of Docker that filters": {
			changedUbuntu(func(m *hostFacts) { m.Container, m.UID, m.Filtered = "docker", 0, true }), Full, denied,
			"the container (docker) filters the system calls", "--security-opt seccomp=unconfined",
		},
		"one that covers /proc": {
			changedUbuntu(func(m *hostFacts) { m.Container, m.UID, m.Masked = "podman", 0, true }), Full, &SetupError{Step: "mount proc", Err: syscall.EPERM},
			"covers parts of /proc", "systempaths=unconfined",
		},
		"one that is confinement enough": {
			changedUbuntu(func(m *hostFacts) { m.Container = "docker" }), Full, denied, "lets nobody make namespaces", "write sandbox: external",
		},
		"one of Kubernetes": {
			changedUbuntu(func(m *hostFacts) { m.Container = "kubernetes" }), Full, denied, "(kubernetes)", "procMount: Unmasked",
		},
		"one on Ubuntu": {
			changedUbuntu(func(m *hostFacts) { m.Container, m.AppArmor = "docker", "1" }), Full, denied, "the container (docker)", "apparmor=unconfined",
		},
		"one that hides Landlock": {
			changedUbuntu(func(m *hostFacts) { m.Container, m.Landlock, m.Filtered = "docker", 0, true }), Full, noRules, "filters the system calls", "seccomp=unconfined",
		},
		"a kernel before Landlock": {
			changedUbuntu(func(m *hostFacts) { m.Kernel, m.Landlock = "5.10.0-30-amd64", 0 }), Full, noRules, "Linux 5.10.0-30-amd64 has no Landlock", "5.13",
		},
		"a kernel that was not told to start Landlock": {
			changedUbuntu(func(m *hostFacts) { m.Modules, m.Landlock = "lockdown,capability,yama", 0 }), Full, noRules, "not among the security modules",
			"lsm=landlock,lockdown,capability,yama",
		},
		"a kernel built without": {
			changedUbuntu(func(m *hostFacts) { m.Modules, m.Landlock = "", 0 }), Landlock, noRules, "built without Landlock", "CONFIG_SECURITY_LANDLOCK",
		},
		"Landlock without rules over TCP": {
			changedUbuntu(func(m *hostFacts) { m.Landlock = 3 }), Landlock, &SetupError{Step: "rule over TCP", Err: syscall.ENOSYS}, "no rules over TCP", "6.7",
		},
		"a kernel too old for mounts without privilege": {
			changedUbuntu(func(m *hostFacts) { m.Kernel = "5.4.0-1" }), Full, denied, "5.4.0-1 cannot make read-only mounts", "5.13",
		},
		"WSL 1": {
			changedUbuntu(func(m *hostFacts) { m.Kernel = "4.4.0-19041-Microsoft" }), Full, denied, "WSL 1", "wsl --set-version NAME 2",
		},
		"tier full on macOS": {
			hostFacts{OS: "darwin"}, Full, denied, "macOS has no namespaces", "sandbox: seatbelt",
		},
		"seatbelt on Linux": {ubuntu, Seatbelt, denied, "a part of macOS", "sandbox: full"},
		"Windows":           {hostFacts{OS: "windows"}, Full, denied, "Windows", "WSL 2"},
		"nothing that is known": {
			ubuntu, Full, errors.New("the moon is full"), "the moon is full", "pawl doctor --sandbox",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := c.m.adviseOn(c.tier, c.err, nil)
			if !strings.Contains(f.Why, c.why) || !strings.Contains(f.Advice().String(), c.fix) || f.Exit != loop.ExitMissing || !errors.Is(f, c.err) {
				t.Errorf("exit %d, why %q, fix %q; want %q and %q", f.Exit, f.Why, f.Advice(), c.why, c.fix)
			}
		})
	}
}

func TestAdviceOnASandboxThatLeaksNamesTheLeak(t *testing.T) {
	m := changedUbuntu(func(m *hostFacts) { m.AppArmor, m.Container = "1", "docker" })
	f := m.adviseOn(Full, nil, []Row{{Action: "send a datagram to the host", Want: Denied, Got: Works, Detail: "ok"}})
	if !strings.Contains(f.Why, "send a datagram to the host: works") || !strings.Contains(f.Advice().String(), "doctor --sandbox --json") {
		t.Errorf("why %q, fix %q", f.Why, f.Advice())
	}
}

func TestAHostWithoutLayersIsTold(t *testing.T) {
	m := changedUbuntu(func(m *hostFacts) { m.Home = "/nfs/home" })
	cases := map[string]struct {
		err      error
		why, fix string // both empty: the error is not explained
	}{
		"a file system that takes none":   {&SetupError{Step: "make overlay", Err: syscall.EINVAL}, "/nfs/home takes no layers", "PAWL_HOME"},
		"one without attributes":          {&SetupError{Step: "set userxattr of overlay", Err: syscall.EOPNOTSUPP}, "/nfs/home takes no layers", "PAWL_HOME"},
		"a kernel without overlays":       {&SetupError{Step: "open overlay", Err: syscall.ENODEV}, "no overlay file system", "sudo modprobe overlay"},
		"too little memory at the moment": {&SetupError{Step: "make overlay", Err: syscall.ENOMEM}, "", ""},
		"no room on the disk":             {&SetupError{Step: "make overlay", Err: syscall.ENOSPC}, "", ""},
		"a tree of that name":             {&SetupError{Step: "open /srv/overlay", Err: syscall.EACCES}, "", ""},
		"another mount":                   {&SetupError{Step: "mount proc", Err: syscall.EPERM}, "", ""},
	}
	for name, c := range cases {
		got := m.explainNoLayers(fmt.Errorf("start sh: %w", c.err))
		if got == nil && c.why == "" {
			continue
		}
		if got == nil || c.why == "" || !strings.Contains(got.Why, c.why) || !strings.Contains(got.Fix, c.fix) {
			t.Errorf("%s: %+v, want %q and %q", name, got, c.why, c.fix)
		}
	}
}
