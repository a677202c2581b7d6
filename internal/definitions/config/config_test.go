package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/definitions/config"
)

// at is an absolute path on any platform.
func at(t interface{ Fatal(...any) }, parts ...string) string {
	abs, err := filepath.Abs(string(filepath.Separator) + filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func TestAFlagGoesBeforeTheEnvironmentBeforeTheDefault(t *testing.T) {
	flag, env, state, home := at(t, "flag"), at(t, "env"), at(t, "state"), at(t, "home", "ann")
	for name, c := range map[string]struct {
		flags   config.Settings
		environ []string
		want    config.Settings
	}{
		"the flags": {
			config.Settings{Home: flag, Database: "postgres://flag/db"},
			[]string{"PAWL_HOME=" + env, "PAWL_DATABASE=postgres://env/db", "XDG_STATE_HOME=" + state},
			config.Settings{Home: flag, Database: "postgres://flag/db"},
		},
		"the environment": {
			config.Settings{},
			[]string{"PAWL_HOME=" + env, "PAWL_DATABASE=postgres://env/db", "XDG_STATE_HOME=" + state},
			config.Settings{Home: env, Database: "postgres://env/db"},
		},
		"a database beside the home of the flag": {
			config.Settings{Home: flag},
			[]string{"PAWL_HOME=" + env},
			config.Settings{Home: flag, Database: filepath.Join(flag, "pawl.db")},
		},
		"a database beside the home of the environment": {
			config.Settings{},
			[]string{"PAWL_HOME=" + env},
			config.Settings{Home: env, Database: filepath.Join(env, "pawl.db")},
		},
		"the state folder of the environment": {
			config.Settings{},
			[]string{"XDG_STATE_HOME=" + state, "HOME=" + home},
			config.Settings{Home: filepath.Join(state, "pawl"), Database: filepath.Join(state, "pawl", "pawl.db")},
		},
		"a mirror of boot repositories": {
			config.Settings{Home: flag},
			[]string{"PAWL_BOOT_MIRROR=/srv/git"},
			config.Settings{Home: flag, Database: filepath.Join(flag, "pawl.db"), BootMirror: "/srv/git"},
		},
		"who reviews": {
			config.Settings{Home: flag},
			[]string{"PAWL_REVIEWER_AGENT=critic", "PAWL_REVIEWER_MODEL=model-2"},
			config.Settings{Home: flag, Database: filepath.Join(flag, "pawl.db"), ReviewerAgent: "critic", ReviewerModel: "model-2"},
		},
		"who reviews by the flags alone": {
			config.Settings{Home: flag, ReviewerModel: "model-3"},
			[]string{"PAWL_REVIEWER_AGENT=critic", "PAWL_REVIEWER_MODEL=model-2"},
			config.Settings{Home: flag, Database: filepath.Join(flag, "pawl.db"), ReviewerModel: "model-3"},
		},
		"a variable that is set to nothing is not set": {
			config.Settings{},
			[]string{"PAWL_HOME=", "PAWL_DATABASE=", "XDG_STATE_HOME=" + state},
			config.Settings{Home: filepath.Join(state, "pawl"), Database: filepath.Join(state, "pawl", "pawl.db")},
		},
		"a variable whose name only begins alike": {
			config.Settings{},
			[]string{"PAWL_HOMES=" + env, "XPAWL_HOME=" + env, "PAWL_HOME", "XDG_STATE_HOME=" + state},
			config.Settings{Home: filepath.Join(state, "pawl"), Database: filepath.Join(state, "pawl", "pawl.db")},
		},
		"a value with an equals sign": {
			config.Settings{},
			[]string{"PAWL_HOME=" + env, "PAWL_DATABASE=postgres://h/db?sslmode=off"},
			config.Settings{Home: env, Database: "postgres://h/db?sslmode=off"},
		},
		"sockets of the default home in the runtime folder": {
			config.Settings{},
			[]string{"XDG_RUNTIME_DIR=" + env, "XDG_STATE_HOME=" + state},
			config.Settings{Home: filepath.Join(state, "pawl"), Database: filepath.Join(state, "pawl", "pawl.db"), Sockets: filepath.Join(env, "pawl")},
		},
		"sockets of another home in that home": {
			config.Settings{Home: flag},
			[]string{"XDG_RUNTIME_DIR=" + env},
			config.Settings{Home: flag, Database: filepath.Join(flag, "pawl.db")},
		},
		"a home with dots is made plain": {
			config.Settings{Home: flag + "/../x/."},
			nil,
			config.Settings{Home: at(t, "x"), Database: at(t, "x", "pawl.db")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load(c.flags, c.environ)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Sockets = orElse(c.want.Sockets, c.want.Home)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARelativeHomeIsThatOfTheProcess(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(config.Settings{Home: "state"}, nil)
	if want := filepath.Join(here, "state"); err != nil || got.Home != want || got.Database != filepath.Join(want, "pawl.db") {
		t.Errorf("settings = %+v, %v; want home %s", got, err, want)
	}
}

func TestARelativeStateFolderIsIgnored(t *testing.T) {
	// The XDG specification: all paths must be absolute, others are ignored.
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(config.Settings{}, []string{"XDG_STATE_HOME=state"})
	if err != nil || strings.HasPrefix(got.Home, here) {
		t.Errorf("settings = %+v, %v; want a home elsewhere than below %s", got, err, here)
	}
}

func TestEverySettingHasAnAbsoluteValueAfterwardsAndNothingIsCreated(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{0,4}(/[a-z]{1,4}){0,2}`)
		flags := config.Settings{}
		if rapid.Bool().Draw(t, "flag") {
			flags.Home = filepath.Join(base, word.Draw(t, "home"))
		}
		var environ []string
		for _, name := range []string{"PAWL_HOME", "XDG_STATE_HOME", "HOME"} {
			if rapid.Bool().Draw(t, name) {
				environ = append(environ, name+"="+filepath.Join(base, word.Draw(t, "value")))
			}
		}
		got, err := config.Load(flags, environ)
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsAbs(got.Home) || !filepath.IsAbs(got.Database) {
			t.Fatalf("settings = %+v, want absolute paths", got)
		}
		if again, err := config.Load(got, nil); err != nil || again != got {
			t.Fatalf("loaded again = %+v, %v; want %+v", again, err, got)
		}
		if entries, err := os.ReadDir(base); err != nil || len(entries) > 0 {
			t.Fatalf("created %v, %v", entries, err)
		}
	})
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
