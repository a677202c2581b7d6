package probe

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// composeFiles start services beside a project.
var composeFiles = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// images matches the services in them that tests often connect to.
var images = lazyregexp.New(`(?m)^\s*image:\s*["']?(?:[\w.-]+/)*(postgres|postgis|mysql|mariadb|redis|valkey|mongo|rabbitmq|kafka|elasticsearch|opensearch|minio)\b`)

// envSamples are files that show that a project reads a .env which is not in git.
var envSamples = []string{".env.example", ".env.sample", ".env.template", ".env.dist"}

// UnmetNeeds lists what the programs in dir may need and do not find in a copy of the
// repository, with the fix: services, and the variables of a .env file. It reads a
// few small files in dir and at the root.
func UnmetNeeds(root fs.FS, dir string) []string {
	var all []string
	for _, at := range withoutRepeats([]string{dir, "."}) {
		for _, name := range composeFiles {
			text, err := readFile(root, path.Join(at, name))
			if err != nil {
				continue
			}
			var services []string
			for _, m := range images.FindAllSubmatch(text, -1) {
				services = append(services, string(m[1]))
			}
			if slices.Sort(services); len(services) > 0 {
				all = append(all, fmt.Sprintf("%s starts %s, which gates do not reach in their sandbox; let the gate start its own, or choose tests that need none",
					path.Join(at, name), strings.Join(withoutRepeats(services), " and ")))
			}
			break
		}
	}
	for _, name := range envSamples {
		if _, err := fs.Stat(root, path.Join(dir, name)); err == nil {
			all = append(all, fmt.Sprintf("%s asks for a .env, which is not in git and so in no copy; name its variables with --env NAME", path.Join(dir, name)))
			break
		}
	}
	return all
}
