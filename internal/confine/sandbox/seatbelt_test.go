package sandbox

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// samePath resolves paths on a host without symbolic links.
func samePath(path string) string { return path }

// judgeProfile returns what a profile says about an operation: the last rule that
// matches counts, as on macOS.
func judgeProfile(profile string, parameters []string, operation, path string) string {
	values := map[string]string{}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		values[name] = value
	}
	answer := "deny"
	for line := range strings.Lines(profile) {
		verb, rest, _ := strings.Cut(strings.TrimPrefix(line, "("), " ")
		head, filter, ok := strings.Cut(rest, ` (param "`)
		if !ok {
			continue
		}
		operations, kind, _ := strings.Cut(head, " (")
		name, _, _ := strings.Cut(filter, `"`)
		matches := path == values[name] || kind == "subpath" && isWithin(path, values[name])
		for o := range strings.FieldsSeq(operations) {
			if matches && strings.HasPrefix(operation, strings.TrimSuffix(o, "*")) {
				answer = verb
			}
		}
	}
	return answer
}

func TestASeatbeltProfileSaysWhatTheBoxSays(t *testing.T) {
	b := Box{
		Tier: Seatbelt, Dir: "/srv/tree", Protect: []string{"/srv/tree/ci/rules.yaml"}, Masks: []string{"/srv/tree/hidden"},
		Binds: []Bind{{From: "/cache"}, {From: "/out", Write: true}},
	}
	profile, parameters := b.seatbeltProfile("/scratch/home", "/scratch/tmp", []int{4000, 4001}, samePath)
	const read, write, unlink = "file-read-data", "file-write-data", "file-write-unlink"
	cases := map[string]struct{ operation, path, want string }{
		"the tree is written":                         {write, "/srv/tree/a", "allow"},
		"what is beside the tree is not":              {write, "/srv/tree2/a", "deny"},
		"the host's git directory cannot be read":     {read, "/srv/tree/.git/config", "deny"},
		"nor written":                                 {write, "/srv/tree/.git/hooks/x", "deny"},
		"a protected file is read":                    {read, "/srv/tree/ci/rules.yaml", "allow"},
		"but not written":                             {write, "/srv/tree/ci/rules.yaml", "deny"},
		"nor moved with its directory":                {unlink, "/srv/tree/ci", "deny"},
		"a file beside it is written":                 {write, "/srv/tree/ci/other", "allow"},
		"what is masked is not read":                  {read, "/srv/tree/hidden/a", "deny"},
		"a bind is read":                              {read, "/cache/a", "allow"},
		"but not written, unless it is for that":      {write, "/cache/a", "deny"},
		"and then it is":                              {write, "/out/a", "allow"},
		"the system is read":                          {read, "/usr/lib/a", "allow"},
		"and not written":                             {write, "/usr/lib/a", "deny"},
		"a home of the host is nothing to read":       {read, "/Users/somebody/.ssh/id", "deny"},
		"nor to write":                                {write, "/Users/somebody/.zshrc", "deny"},
		"there is a home":                             {write, "/scratch/home/x", "allow"},
		"and room for temporary files":                {write, "/scratch/tmp/x", "allow"},
		"but not what both of them are in":            {write, "/scratch/x", "deny"},
		"a socket of the host is nothing to write to": {write, "/private/var/run/docker.sock", "deny"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := judgeProfile(profile, parameters, c.operation, c.path); got != c.want {
				t.Errorf("%s of %s: %s, want %s in\n%s%q", c.operation, c.path, got, c.want, profile, parameters)
			}
		})
	}
	if !strings.Contains(profile, "(deny default)") || strings.Count(profile, "network") != 2 || !strings.Contains(profile, `(remote ip "localhost:4001")`) {
		t.Errorf("the network in:\n%s", profile)
	}
}

func TestNoPathIsPartOfTheTextOfASeatbeltProfile(t *testing.T) {
	plain, _ := Box{Dir: "/t", Protect: []string{"/t/p"}, Binds: []Bind{{From: "/b"}}}.seatbeltProfile("/h", "/t", nil, samePath)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`/[a-z"\\() ;#=\n]{1,12}`)
		dir, bind, home := name.Draw(t, "dir"), name.Draw(t, "bind"), name.Draw(t, "home")
		profile, parameters := Box{Dir: dir, Protect: []string{dir + "/p"}, Binds: []Bind{{From: bind}}}.seatbeltProfile(home, home, nil, samePath)
		if profile != plain {
			t.Fatalf("the profile changes with a path:\n%s", profile)
		}
		for _, path := range []string{dir, bind, home, dir + "/p"} {
			found := false
			for _, p := range parameters {
				_, value, _ := strings.Cut(p, "=")
				found = found || value == path
			}
			if !found {
				t.Errorf("%q is in none of %q", path, parameters)
			}
		}
	})
}
