package policy

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

func bothTOML(old, text string) (a, b map[string]any, err error) {
	if err = toml.Unmarshal([]byte(old), &a); err == nil {
		err = toml.Unmarshal([]byte(text), &b)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("parse TOML: %w", err)
	}
	return a, b, nil
}

var cargoTables = []string{"dependencies", "dev-dependencies", "build-dependencies"}

func cargoManifest(old, text string) (int, error) {
	a, b, err := bothTOML(old, text)
	if err != nil {
		return 0, err
	}
	return countChanges(nil, a, b, func(at []string, a, b string) error {
		rest := at
		switch {
		case len(rest) > 1 && rest[0] == "workspace":
			rest = rest[1:]
		case len(rest) > 2 && rest[0] == "target":
			rest = rest[2:]
		}
		if len(rest) < 2 || !slices.Contains(cargoTables, rest[0]) || !versionOf(rest[1:]) {
			return fmt.Errorf("%q changes", at)
		}
		return rangeUp(rest[1], a, b)
	})
}

// versionOf reports the place of a version below a table of dependencies:
// name = "1.2.3", or name = {version = "1.2.3"}.
func versionOf(at []string) bool { return len(at) == 1 || len(at) == 2 && at[1] == "version" }

var requirement = lazyregexp.New(`^([A-Za-z0-9._-]+(?:\[[^\]]*\])?\s*(?:==|>=|~=)\s*)([0-9]+\.[0-9]+\.[0-9]+)(\s*;.*)?$`)

func pythonManifest(old, text string) (int, error) {
	a, b, err := bothTOML(old, text)
	if err != nil {
		return 0, err
	}
	return countChanges(nil, a, b, func(at []string, a, b string) error {
		place := strings.Join(at, "\x00") + "\x00"
		has := func(parts ...string) bool { return strings.HasPrefix(place, strings.Join(parts, "\x00")+"\x00") }
		switch {
		case has("tool", "poetry", "dependencies") && versionOf(at[3:]) && at[3] != "python",
			has("tool", "poetry", "group") && len(at) > 5 && at[4] == "dependencies" && versionOf(at[5:]):
			return rangeUp(at[3], a, b)
		case has("project", "dependencies") && len(at) == 3, has("project", "optional-dependencies") && len(at) == 4, has("dependency-groups") && len(at) == 3:
			return requirementUp(a, b)
		}
		return fmt.Errorf("%q changes", at)
	})
}

func requirementUp(old, now string) error {
	a, b := requirement.FindStringSubmatch(old), requirement.FindStringSubmatch(now)
	if a == nil || b == nil || a[1] != b[1] || a[3] != b[3] {
		return fmt.Errorf("%q becomes %q, which is not certain to be a patch", old, now)
	}
	return patchUp(a[1], a[2], b[2])
}

type tomlPackage map[string]any

func (p tomlPackage) text(key string) string {
	s, _ := p[key].(string)
	return s
}

// tomlLock takes the packages out of two lockfiles and pairs those that differ.
// What else is in them must be the same, but for what rest allows.
func tomlLock(old, text string, rest leaf) ([][2]tomlPackage, error) {
	a, b, err := bothTOML(old, text)
	if err != nil {
		return nil, err
	}
	was, err := takePackages(a)
	if err != nil {
		return nil, err
	}
	now, err := takePackages(b)
	if err != nil {
		return nil, err
	}
	if _, err := countChanges(nil, a, b, rest); err != nil {
		return nil, err
	}
	key := func(p tomlPackage) string { return fmt.Sprint(p.text("name"), "\x00", p["source"]) }
	return pairUp(was, now, key, func(p tomlPackage) string { return p.text("version") })
}

func takePackages(doc map[string]any) ([]tomlPackage, error) {
	list, ok := doc["package"].([]any)
	if !ok {
		return nil, fmt.Errorf("it has no packages")
	}
	delete(doc, "package")
	all := make([]tomlPackage, 0, len(list))
	for _, one := range list {
		p := tomlPackage(asObject(one))
		if p.text("name") == "" {
			return nil, fmt.Errorf("a package has no name")
		}
		all = append(all, p)
	}
	return all, nil
}

// maxSimilar bounds how many packages are compared each with each.
const maxSimilar = 100

// pairUp leaves out what is the same in both lists, and pairs the rest by its
// key and by the version without its patch level. What has no partner, or more
// than one, is an error.
func pairUp[P any](old, now []P, key, version func(P) string) ([][2]P, error) {
	left := map[string][]P{}
	place := func(p P) string { return key(p) + "\x00" + withoutPatch(version(p)) }
	for _, p := range old {
		left[place(p)] = append(left[place(p)], p)
		if len(left[place(p)]) > maxSimilar {
			return nil, fmt.Errorf("more than %d versions of %.60q are too many to compare", maxSimilar, key(p))
		}
	}
	var fresh []P
	for _, p := range now {
		same := func(q P) bool { return reflect.DeepEqual(p, q) }
		if i := slices.IndexFunc(left[place(p)], same); i >= 0 {
			left[place(p)] = slices.Delete(left[place(p)], i, i+1)
		} else {
			fresh = append(fresh, p)
		}
	}
	var pairs [][2]P
	for _, p := range fresh {
		was := left[place(p)]
		if len(was) != 1 {
			return nil, fmt.Errorf("%.60q %s is not a patch of one that was there", key(p), version(p))
		}
		pairs = append(pairs, [2]P{was[0], p})
		left[place(p)] = nil
	}
	for _, rest := range left {
		if len(rest) > 0 {
			return nil, fmt.Errorf("%.60q %s goes", key(rest[0]), version(rest[0]))
		}
	}
	return pairs, nil
}

// refuseAny is the leaf that allows no change.
func refuseAny(at []string, _, _ string) error { return fmt.Errorf("%q changes", at) }

// lockPair compares two versions of a package but for the keys that the
// caller has looked at.
func lockPair(p [2]tomlPackage, looked ...string) error {
	name := p[0].text("name")
	if err := patchUp(name, p[0].text("version"), p[1].text("version")); err != nil {
		return err
	}
	looked = append(looked, "version")
	for _, side := range p {
		for _, key := range looked {
			delete(side, key)
		}
	}
	_, err := countChanges([]string{name}, map[string]any(p[0]), map[string]any(p[1]), refuseAny)
	return err
}

var sha256Hex = lazyregexp.New(`^(?:sha256:)?[0-9a-f]{64}$`)

func cargoLock(old, text string) (int, error) {
	pairs, err := tomlLock(old, text, refuseAny)
	if err != nil {
		return 0, err
	}
	for _, p := range pairs {
		name, a, b := p[0].text("name"), p[0].text("checksum"), p[1].text("checksum")
		if p[1].text("source") == "" || a == b || !sha256Hex.MatchString(a) || !sha256Hex.MatchString(b) {
			return 0, fmt.Errorf("%s goes up without a new checksum", name)
		}
		if !slices.Equal(cargoNeeds(p[0]), cargoNeeds(p[1])) {
			return 0, fmt.Errorf("%s needs other packages", name)
		}
		if err := lockPair(p, "checksum", "dependencies"); err != nil {
			return 0, err
		}
	}
	return len(pairs), nil
}

// cargoNeeds are the names of a package's dependencies. Their versions stand
// there only if there are several.
func cargoNeeds(p tomlPackage) []string {
	list, _ := p["dependencies"].([]any)
	var names []string
	for _, one := range list {
		text, _ := one.(string)
		name, _, _ := strings.Cut(text, " ")
		names = append(names, name)
	}
	return names
}

func poetryLock(old, text string) (int, error) {
	pairs, err := tomlLock(old, text, func(at []string, a, b string) error {
		if slices.Equal(at, []string{"metadata", "content-hash"}) {
			return nil
		}
		return refuseAny(at, a, b)
	})
	if err != nil {
		return 0, err
	}
	for _, p := range pairs {
		if err := checkArtifacts(p, "file", p[0]["files"], p[1]["files"]); err != nil {
			return 0, err
		}
		if err := lockPair(p, "files"); err != nil {
			return 0, err
		}
	}
	return len(pairs), nil
}

func uvLock(old, text string) (int, error) {
	pairs, err := tomlLock(old, text, refuseAny)
	if err != nil {
		return 0, err
	}
	bumped := 0
	for _, p := range pairs {
		if p[0].text("version") == p[1].text("version") {
			if err := uvProject(p); err != nil {
				return 0, err
			}
			continue
		}
		if asObject(p[1]["source"])["registry"] == nil {
			return 0, fmt.Errorf("%s comes from no registry", p[1].text("name"))
		}
		if err := checkArtifacts(p, "url", uvFiles(p[0]), uvFiles(p[1])); err != nil {
			return 0, err
		}
		if err := lockPair(p, "sdist", "wheels"); err != nil {
			return 0, err
		}
		bumped++
	}
	return bumped, nil
}

// uvProject compares the entry of the project itself: what it asks for may go
// up as its manifest does.
func uvProject(p [2]tomlPackage) error {
	source := asObject(p[1]["source"])
	if source["virtual"] == nil && source["editable"] == nil {
		return fmt.Errorf("%s changes and its version does not", p[1].text("name"))
	}
	_, err := countChanges(nil, map[string]any(p[0]), map[string]any(p[1]), func(at []string, a, b string) error {
		if at[0] == "metadata" && at[len(at)-1] == "specifier" {
			return rangeUp(p[1].text("name"), a, b)
		}
		return refuseAny(at, a, b)
	})
	return err
}

// uvFiles are all files of a package.
func uvFiles(p tomlPackage) any {
	files, _ := p["wheels"].([]any)
	if p["sdist"] != nil {
		files = append(slices.Clip(files), p["sdist"])
	}
	return files
}

// checkArtifacts checks the files of a new version: each is of that version, has a
// SHA-256 that is new, and comes from where the old ones came from.
func checkArtifacts(p [2]tomlPackage, at string, old, now any) error {
	name, version := p[0].text("name"), p[1].text("version")
	hosts, hashes := map[string]bool{}, map[any]bool{}
	before, _ := old.([]any)
	for _, file := range before {
		hosts[hostOf(asObject(file)[at])] = true
		hashes[asObject(file)["hash"]] = true
	}
	delete(hosts, unknownHost)
	after, _ := now.([]any)
	for _, file := range after {
		where, _ := asObject(file)[at].(string)
		hash, _ := asObject(file)["hash"].(string)
		if !strings.Contains(where, version) || !sha256Hex.MatchString(hash) || hashes[hash] || !hosts[hostOf(where)] {
			return fmt.Errorf("%s has a file that is not certain to be of %s: %q", name, version, where)
		}
	}
	if len(after) == 0 {
		return fmt.Errorf("%s has no files", name)
	}
	return nil
}

const unknownHost = "?"

func hostOf(address any) string {
	text, _ := address.(string)
	u, err := url.Parse(text)
	if err != nil {
		return unknownHost
	}
	return u.Scheme + "://" + u.Host
}
