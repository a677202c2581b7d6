package policy

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// bumpReader compares two versions of one lockfile or manifest. It counts what
// went up by its patch level, and an error is anything else that differs.
type bumpReader func(old, text string) (int, error)

var lockReaders = map[string]bumpReader{
	"package-lock.json": npmLock, "npm-shrinkwrap.json": npmLock, "yarn.lock": yarnLock,
	"go.sum": goSum, "Cargo.lock": cargoLock, "poetry.lock": poetryLock, "uv.lock": uvLock,
}

var manifestReaders = map[string]bumpReader{
	"package.json": npmManifest, "go.mod": goMod, "Cargo.toml": cargoManifest, "pyproject.toml": pythonManifest,
}

// lockfilePatch is LockfilePatch.
func lockfilePatch(changes []Change) Verdict {
	not := func(name string, why error) Verdict {
		return Verdict{Path: name, Code: ClassLockfilePatch, Rule: why.Error()}
	}
	bumped, first := 0, ""
	for _, c := range changes {
		read, lock := lockReaders[path.Base(c.Path)]
		if !lock {
			read = manifestReaders[path.Base(c.Path)]
		}
		switch {
		case read == nil:
			return not(c.Path, errors.New("neither a lockfile that is understood nor its manifest"))
		case c.Old.Mode != modeFile || c.New.Mode != modeFile:
			return not(c.Path, errors.New("it is not there before and after as a plain file"))
		case !c.Old.read() || !c.New.read():
			return not(c.Path, errors.New("its content was not read"))
		}
		n, err := read(c.Old.Text, c.New.Text)
		if err != nil {
			return not(c.Path, err)
		}
		if lock && n > 0 && first == "" {
			first = c.Path
		}
		bumped += n
	}
	if first == "" {
		return not("", errors.New("no version in a lockfile goes up"))
	}
	return Verdict{Path: first, Allowed: true, Code: ClassLockfilePatch, Rule: fmt.Sprintf("versions that go up by their patch level: %d; nothing else changes", bumped)}
}

// version3 is a release of three numbers. Everything with more or less to it
// is not certain to be ordered.
var version3 = lazyregexp.New(`^v?(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)

// withoutPatch returns the version without its patch level, or nothing if it is
// not a release of three numbers.
func withoutPatch(version string) string {
	m := version3.FindStringSubmatch(version)
	if m == nil {
		return ""
	}
	return version[:len(version)-len(m[3])]
}

// patchUp returns an error unless a version goes up by its patch level.
func patchUp(name, old, now string) error {
	if withoutPatch(old) == "" || withoutPatch(old) != withoutPatch(now) {
		return fmt.Errorf("%s goes from %q to %q, which is not certain to be a patch", name, old, now)
	}
	from, _ := strconv.Atoi(old[len(withoutPatch(old)):])
	to, _ := strconv.Atoi(now[len(withoutPatch(now)):])
	if to <= from {
		return fmt.Errorf("%s goes down from %q to %q", name, old, now)
	}
	return nil
}

var oneRange = lazyregexp.New(`^(\^|~|=|==|>=|~=|)(v?[0-9]+\.[0-9]+\.[0-9]+)$`)

// rangeUp is patchUp for a range of one version with one operator.
func rangeUp(name, old, now string) error {
	a, b := oneRange.FindStringSubmatch(old), oneRange.FindStringSubmatch(now)
	if a == nil || b == nil || a[1] != b[1] {
		return fmt.Errorf("%s goes from %q to %q, which is not certain to be a patch", name, old, now)
	}
	return patchUp(name, a[2], b[2])
}

// leaf decides about one text that differs. The place is made of keys and
// numbers.
type leaf func(at []string, old, now string) error

// countChanges walks two documents and asks about each text that differs; any other
// difference is an error. It counts the texts.
func countChanges(at []string, old, now any, allowed leaf) (int, error) {
	if reflect.DeepEqual(old, now) {
		return 0, nil
	}
	switch a := old.(type) {
	case map[string]any:
		if b, ok := now.(map[string]any); ok && sameKeys(a, b) {
			return countMapChanges(at, a, b, allowed)
		}
	case []any:
		if b, ok := now.([]any); ok && len(a) == len(b) {
			total := 0
			for i := range a {
				n, err := countChanges(append(slices.Clip(at), strconv.Itoa(i)), a[i], b[i], allowed)
				if err != nil {
					return 0, err
				}
				total += n
			}
			return total, nil
		}
	case string:
		if b, ok := now.(string); ok {
			return 1, allowed(at, a, b)
		}
	}
	return 0, fmt.Errorf("%q differs by more than a version", at)
}

func countMapChanges(at []string, old, now map[string]any, allowed leaf) (int, error) {
	total := 0
	for key := range old {
		n, err := countChanges(append(slices.Clip(at), key), old[key], now[key], allowed)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func sameKeys(a, b map[string]any) bool {
	for key := range a {
		if _, ok := b[key]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}
