package toolchain

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/confine/probe"
)

func cacheLines(home string, caches []Cache) []string {
	var all []string
	for _, c := range caches {
		line := c.Kind + " " + c.Path + " " + c.Env + "=" + c.Value
		if !c.Downloads {
			line += " built"
		}
		all = append(all, filepath.ToSlash(strings.ReplaceAll(line, home, "/HOME")))
	}
	return all
}

func TestCachesAreThoseOfTheToolsThatAreUsed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the usual places of another system are other ones")
	}
	for name, c := range map[string]struct {
		programs []string
		stacks   []probe.Stack
		env      []string
		files    map[string]string // below the home
		want     []string
	}{
		"none": {programs: []string{"make", "git"}},
		"go by its own settings": {
			programs: []string{"go"},
			files:    map[string]string{".config/go/env": "GOPATH=/HOME/gopath\nGOFLAGS=-x\n"},
			want:     []string{"go-build /HOME/.cache/go-build GOCACHE=/HOME/.cache/go-build built", "go-mod /HOME/gopath/pkg/mod GOMODCACHE=/HOME/gopath/pkg/mod"},
		},
		"go by the environment": {
			programs: []string{"/usr/local/go/bin/go"}, env: []string{"GOCACHE=/HOME/b", "GOMODCACHE=/HOME/m", "GOPATH=/HOME/p"},
			want: []string{"go-build /HOME/b GOCACHE=/HOME/b built", "go-mod /HOME/m GOMODCACHE=/HOME/m"},
		},
		"npm without the file that holds tokens": {
			stacks: []probe.Stack{{Name: "npm"}}, files: map[string]string{".npmrc": "//r.example/:_authToken=x\ncache=/HOME/elsewhere\n"},
			want: []string{"npm /HOME/elsewhere/_cacache npm_config_cache=/HOME/elsewhere"},
		},
		"a home is not a cache": {
			programs: []string{"go", "pip", "uv"}, env: []string{"GOCACHE=/HOME", "GOMODCACHE=/", "PIP_CACHE_DIR=/HOME/.aws", "UV_CACHE_DIR=/HOME/.."},
		},
		"a directory with a credential in it is not a cache": {
			programs: []string{"uv"}, env: []string{"UV_CACHE_DIR=/HOME/u"}, files: map[string]string{"u/.netrc": "x"},
		},
		"several tools, each once": {
			programs: []string{"cargo", "rustc", "python3"}, stacks: []probe.Stack{{Name: "pip"}, {Name: "maven"}},
			files: map[string]string{".m2/settings.xml": "<settings><localRepository>/HOME/repo</localRepository></settings>"},
			want: []string{
				"cargo-registry /HOME/.cargo/registry CARGO_HOME=/HOME/.cargo", "cargo-git /HOME/.cargo/git CARGO_HOME=/HOME/.cargo",
				"maven /HOME/repo =", "maven /HOME/.m2/wrapper/dists MAVEN_USER_HOME=/HOME/.m2", "pip /HOME/.cache/pip PIP_CACHE_DIR=/HOME/.cache/pip",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(home, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "/HOME", home)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := []string{"HOME=" + home}
			for _, entry := range c.env {
				env = append(env, strings.ReplaceAll(entry, "/HOME", home))
			}
			if diff := cmp.Diff(c.want, cacheLines(home, Caches(env, c.programs, c.stacks))); diff != "" {
				t.Errorf("caches (-want +got)\n%s", diff)
			}
		})
	}
}

func TestNoCacheHoldsACredential(t *testing.T) {
	home := t.TempDir()
	credentials := []string{
		".npmrc", ".yarnrc.yml", ".cargo/credentials.toml", ".cargo/config.toml", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
		".docker/config.json", ".composer/auth.json", ".config/composer/auth.json", ".bundle/config", ".nuget/NuGet/NuGet.Config", ".hex/hex.config",
		".pypirc", ".netrc", ".config/pypoetry/auth.toml", ".config/pip/pip.conf", ".local/share/uv/credentials/x", ".config/go/env", ".git-credentials",
	}
	var every []string
	for program := range cachesOf {
		every = append(every, program)
	}
	caches := Caches([]string{"HOME=" + home}, every, nil)
	if len(caches) < 20 {
		t.Errorf("%d caches of all tools: %v", len(caches), caches)
	}
	for _, c := range caches {
		for _, file := range credentials {
			if isBelow(c.Path, filepath.Join(home, file)) {
				t.Errorf("%s shows %s", c.Path, file)
			}
		}
		if c.Env != "" && !isBelow(c.Value, c.Path) {
			t.Errorf("%s=%s does not move %s", c.Env, c.Value, c.Path)
		}
	}
}
