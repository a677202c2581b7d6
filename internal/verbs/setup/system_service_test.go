package setup_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

// odd is a service in whose values everything is that a file of a service manager could misread.
var odd = setup.SystemService{
	System: "linux", Of: "ann", Home: "/home/ann 100% $x", UID: 1000, User: true, Program: "/opt/a b & $c/pawl",
	Environ: []string{`PATH=/usr/bin:/opt/<x>/100%/$y\z`, "PAWL_HOME=/srv/pawl"},
}

func TestTheUnitOfAUserIsThis(t *testing.T) {
	checkText(t, odd, "/home/ann 100% $x/.config/systemd/user/pawl.service", `[Unit]
Description=pawl fires loops when they are due
Documentation=https://github.com/pawl-run/pawl
StartLimitIntervalSec=0

[Service]
Type=notify
WorkingDirectory=/home/ann 100%% $x
Environment="PATH=/usr/bin:/opt/<x>/100%%/$y\\z"
Environment="PAWL_HOME=/srv/pawl"
ExecStart="/opt/a b & $c/pawl" up --env-file "/home/ann 100%% $$x/.config/pawl.env"
ExecReload=/bin/kill -USR1 $MAINPID
KillMode=mixed
TimeoutStartSec=infinity
TimeoutStopSec=60
WatchdogSec=120
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2 4 10 14 16
SuccessExitStatus=130
OOMPolicy=continue
Delegate=yes
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`)
}

func TestTheUnitOfAMachineWorksAsTheAccountAndAfterTheNetwork(t *testing.T) {
	checkText(t, setup.SystemService{System: "linux", Of: "ann", Home: "/home/ann", Program: "/usr/bin/pawl"}, "/etc/systemd/system/pawl.service", `[Unit]
Description=pawl fires loops when they are due
Documentation=https://github.com/pawl-run/pawl
StartLimitIntervalSec=0
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
User=ann
WorkingDirectory=/home/ann
ExecStart="/usr/bin/pawl" up --env-file "/home/ann/.config/pawl.env"
ExecReload=/bin/kill -USR1 $MAINPID
KillMode=mixed
TimeoutStartSec=infinity
TimeoutStopSec=60
WatchdogSec=120
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2 4 10 14 16
SuccessExitStatus=130
OOMPolicy=continue
Delegate=yes
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
`)
}

func TestThePropertyListOfLaunchdIsThis(t *testing.T) {
	s := odd
	s.System = "darwin"
	checkText(t, s, "/home/ann 100% $x/Library/LaunchAgents/run.pawl.up.plist", `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>run.pawl.up</string>
  <key>ProgramArguments</key><array><string>/opt/a b &amp; $c/pawl</string><string>up</string><string>--env-file</string><string>/home/ann 100% $x/.config/pawl.env</string></array>
  <key>WorkingDirectory</key><string>/home/ann 100% $x</string>
  <key>EnvironmentVariables</key>
  <dict>
    <key>PATH</key><string>/usr/bin:/opt/&lt;x&gt;/100%/$y\z</string>
    <key>PAWL_HOME</key><string>/srv/pawl</string>
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ExitTimeOut</key><integer>60</integer>
  <key>StandardOutPath</key><string>/home/ann 100% $x/Library/Logs/pawl.log</string>
  <key>StandardErrorPath</key><string>/home/ann 100% $x/Library/Logs/pawl.log</string>
</dict>
</plist>
`)
}

func checkText(t *testing.T, s setup.SystemService, file, text string) {
	t.Helper()
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	if v.File != file {
		t.Errorf("it is in %s, want %s", v.File, file)
	}
	if diff := cmp.Diff(text, v.Text); diff != "" {
		t.Errorf("its text (-want +got):\n%s", diff)
	}
}

func TestAServiceThatWouldUseAnotherStoreIsWarnedOf(t *testing.T) {
	const database = "postgres://ann:pw@db/pawl"
	for name, c := range map[string]struct {
		service  setup.SystemService
		file     string // pawl.env; empty: there is none
		database string // of the shell
		warns    string
		actions  []string // ADD is the one that adds it to the file, and is carried out
	}{
		"no database is named":       {odd, "", "", "", nil},
		"the file names it":          {odd, "PAWL_DATABASE=postgres://old\nPAWL_DATABASE='" + database + "'", database, "", nil},
		"no file":                    {odd, "", database, "PAWL_DATABASE is set here, and not in FILE", []string{"ADD", "systemctl --user restart pawl.service"}},
		"a file without it":          {odd, "KEY=1", database, "PAWL_DATABASE is set here, and not in FILE", []string{"ADD", "systemctl --user restart pawl.service"}},
		"the file names another one": {odd, "PAWL_DATABASE=postgres://old", database, "FILE names one in PAWL_DATABASE that is not the one set here", []string{"systemctl --user restart pawl.service"}},
		"a service of the machine":   {setup.SystemService{System: "linux"}, "KEY=1", database, "PAWL_DATABASE is set here", []string{"ADD", "systemctl restart pawl.service"}},
		"a service of launchd":       {setup.SystemService{System: "darwin", User: true, UID: 501}, "KEY=1", database, "PAWL_DATABASE is set here", []string{"ADD", "launchctl kickstart -k gui/501/run.pawl.up"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.service.Home = t.TempDir()
			file := filepath.Join(c.service.Home, ".config", "pawl.env")
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if c.file != "" {
				if err := os.WriteFile(file, []byte(c.file+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var v setup.ServiceView
			if err := c.service.WarnOfStore(&v, c.database); err != nil {
				t.Fatal(err)
			}
			if warns := strings.ReplaceAll(c.warns, "FILE", file); !strings.Contains(v.Warning, warns) || (warns == "") != (v.Warning == "") || strings.Contains(v.Warning+v.Fix, "pw@") {
				t.Errorf("it warns %q, want %q", v.Warning, warns)
			}
			var actions []string
			for _, a := range v.Actions {
				if a.Program != "sh" {
					actions = append(actions, a.String())
					continue
				}
				actions = append(actions, "ADD")
				cmd := exec.CommandContext(t.Context(), "sh", a.Args...)
				cmd.Env = []string{"PAWL_DATABASE=" + c.database}
				if said, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", a, err, said)
				}
				var again setup.ServiceView
				if err := c.service.WarnOfStore(&again, c.database); err != nil || again.Warning != "" {
					t.Errorf("after the fix it warns %q, %v", again.Warning, err)
				}
				if _, shared, err := setup.ReadEnvFile(file); shared || err != nil {
					t.Errorf("the file is shared: %v, %v", shared, err)
				}
			}
			if diff := cmp.Diff(c.actions, actions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASystemWithoutAServiceOfPawlIsRefusedWithAWay(t *testing.T) {
	for name, c := range map[string]struct {
		system string
		action string
	}{
		"macOS has none of the machine": {"darwin", "pawl service install --user"},
		"another system has none":       {"plan9", "pawl up"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := setup.SystemService{System: c.system}.View()
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || f.Exit != loop.ExitMissing || len(f.Actions) != 1 || f.Actions[0].String() != c.action {
				t.Errorf("error = %#v, want the action %s", err, c.action)
			}
		})
	}
}
