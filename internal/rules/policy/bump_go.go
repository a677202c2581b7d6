package policy

import (
	"fmt"
	"strings"
)

// goMod compares line by line: a version of a required module is all that may
// differ.
func goMod(old, text string) (int, error) {
	a, b := strings.Split(old, "\n"), strings.Split(text, "\n")
	if len(a) != len(b) {
		return 0, fmt.Errorf("lines come or go")
	}
	bumped, block := 0, ""
	for i := range a {
		fields, now := strings.Fields(a[i]), strings.Fields(b[i])
		switch {
		case block == "" && len(fields) == 2 && fields[1] == "(":
			block = fields[0]
		case len(fields) == 1 && fields[0] == ")":
			block = ""
		}
		if a[i] == b[i] {
			continue
		}
		if block == "" && len(fields) > 0 && len(now) > 0 && fields[0] == "require" && now[0] == "require" {
			fields, now = fields[1:], now[1:]
		} else if block != "require" {
			return 0, fmt.Errorf("line %d changes more than a required version", i+1)
		}
		if err := requireUp(fields, now); err != nil {
			return 0, fmt.Errorf("line %d: %w", i+1, err)
		}
		bumped++
	}
	return bumped, nil
}

func requireUp(old, now []string) error {
	if len(old) < 2 || len(old) != len(now) || old[0] != now[0] || strings.Join(old[2:], " ") != strings.Join(now[2:], " ") {
		return fmt.Errorf("it changes more than a required version")
	}
	return patchUp(old[0], old[1], now[1])
}

// goSum compares checksums: none changes, and what is added is a patch of what
// was there.
func goSum(old, text string) (int, error) {
	a, err := parseGoSum(old)
	if err != nil {
		return 0, err
	}
	b, err := parseGoSum(text)
	if err != nil {
		return 0, err
	}
	bumped := map[string]bool{}
	for key, sum := range b {
		was, known := a[key]
		switch {
		case known && was != sum:
			return 0, fmt.Errorf("%s has another checksum", key.module+" "+key.version)
		case !known && !followsOne(a, key, sum):
			return 0, fmt.Errorf("%s is not a patch of what was there", key.module+" "+key.version)
		case !known:
			bumped[key.module] = true
			if len(bumped) > maxSimilar {
				return 0, fmt.Errorf("more than %d modules go up", maxSimilar)
			}
		}
	}
	for key := range a {
		if _, kept := b[key]; !kept && !bumped[key.module] {
			return 0, fmt.Errorf("%s goes", key.module+" "+key.version)
		}
	}
	return len(bumped), nil
}

// sumKey is a line of a go.sum but for its checksum. The version of a go.mod
// file's checksum ends in /go.mod.
type sumKey struct{ module, version string }

func parseGoSum(text string) (map[sumKey]string, error) {
	all := map[sumKey]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "h1:") {
			return nil, fmt.Errorf("line %.40q is not understood", line)
		}
		key := sumKey{fields[0], fields[1]}
		if was, twice := all[key]; twice && was != fields[2] {
			return nil, fmt.Errorf("%s %s has two checksums", key.module, key.version)
		}
		all[key] = fields[2]
	}
	return all, nil
}

// followsOne looks for the version that key is a patch of. Two versions may
// have the same go.mod, and never the same content.
func followsOne(had map[sumKey]string, key sumKey, sum string) bool {
	version, only := strings.CutSuffix(key.version, "/go.mod")
	for was, old := range had {
		from, also := strings.CutSuffix(was.version, "/go.mod")
		if was.module == key.module && also == only && (only || old != sum) && patchUp("", from, version) == nil {
			return true
		}
	}
	return false
}
