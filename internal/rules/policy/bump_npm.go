package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// npmTables hold ranges by package.
var npmTables = []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"}

func parseJSON(text string) (map[string]any, error) {
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	return doc, nil
}

func bothJSON(old, text string) (a, b map[string]any, err error) {
	if a, err = parseJSON(old); err == nil {
		b, err = parseJSON(text)
	}
	return a, b, err
}

func npmManifest(old, text string) (int, error) {
	a, b, err := bothJSON(old, text)
	if err != nil {
		return 0, err
	}
	return countChanges(nil, a, b, npmRange)
}

// npmRange allows ranges in the tables of a manifest.
func npmRange(at []string, old, now string) error {
	if len(at) != 2 || !slices.Contains(npmTables, at[0]) {
		return fmt.Errorf("%q changes", at)
	}
	return rangeUp(at[1], old, now)
}

func npmLock(old, text string) (int, error) {
	a, b, err := bothJSON(old, text)
	if err != nil {
		return 0, err
	}
	if v := a["lockfileVersion"]; v != 2.0 && v != 3.0 {
		return 0, fmt.Errorf("lockfileVersion %v is not understood", v)
	}
	packages, ok := a["packages"].(map[string]any)
	now, ok2 := b["packages"].(map[string]any)
	if !ok || !ok2 || !sameKeys(packages, now) {
		return 0, fmt.Errorf("packages come or go")
	}
	total, err := countChanges(nil, packages[""], now[""], npmRange)
	if err != nil {
		return 0, err
	}
	delete(packages, "")
	n, err := npmEntries(packages, now)
	if err != nil {
		return 0, err
	}
	total += n
	if _, err := npmTree(a["dependencies"], b["dependencies"]); err != nil {
		return 0, err
	}
	for _, known := range []string{"packages", "dependencies"} {
		delete(a, known)
		delete(b, known)
	}
	_, err = countChanges(nil, a, b, func(at []string, _, _ string) error { return fmt.Errorf("%q changes", at) })
	return total, err
}

// npmTree compares the nested tree that version 2 repeats its packages in.
func npmTree(old, now any) (int, error) {
	a, isMap := old.(map[string]any)
	b, alsoMap := now.(map[string]any)
	if old == nil && now == nil {
		return 0, nil
	}
	if !isMap || !alsoMap || !sameKeys(a, b) {
		return 0, fmt.Errorf("dependencies come or go")
	}
	for name := range a {
		x, y := asObject(a[name]), asObject(b[name])
		if _, err := npmTree(x["dependencies"], y["dependencies"]); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		delete(x, "dependencies")
		delete(y, "dependencies")
	}
	return npmEntries(a, b)
}

func asObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func npmEntries(old, now map[string]any) (int, error) {
	total := 0
	for name := range old {
		n, err := npmEntry(name, asObject(old[name]), asObject(now[name]))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// npmEntry compares one package: a new version has a new content at the same
// place, and an old version has the old content.
func npmEntry(name string, old, now map[string]any) (int, error) {
	from, _ := old["version"].(string)
	to, _ := now["version"].(string)
	bumped := from != to
	n, err := countChanges(nil, old, now, func(at []string, a, b string) error {
		switch {
		case len(at) == 1 && at[0] == "version":
			return patchUp(name, a, b)
		case len(at) == 1 && (at[0] == "resolved" || at[0] == "integrity") && bumped:
			return nil // Looked at below, because these must differ.
		case len(at) == 2 && at[0] == "requires" && bumped:
			return rangeUp(at[1], a, b)
		case bumped:
			return npmRange(at, a, b)
		}
		return fmt.Errorf("%s changes its %q and not its version", name, at)
	})
	if err != nil || n == 0 {
		return 0, err
	}
	text := func(entry map[string]any, key string) string {
		value, _ := entry[key].(string)
		return value
	}
	if err := sameSource(name, text(old, "resolved"), text(now, "resolved"), from, to); err != nil {
		return 0, err
	}
	return 1, strongIntegrity(name, text(old, "integrity"), text(now, "integrity"))
}

// sameSource allows an address that differs by the version alone.
func sameSource(name, old, now, from, to string) error {
	if strings.HasPrefix(old, "https://") && strings.Contains(old, from) && strings.ReplaceAll(old, from, to) == now {
		return nil
	}
	return fmt.Errorf("%s comes from another place: %q, before %q", name, now, old)
}

func strongIntegrity(name, old, now string) error {
	if old != now && strings.HasPrefix(old, "sha512-") && strings.HasPrefix(now, "sha512-") {
		return nil
	}
	return fmt.Errorf("%s has no new SHA-512", name)
}

// yarnBlock is one entry of a yarn.lock of version 1.
type yarnBlock struct {
	specs  []string // name@range
	fields map[string]string
	needs  map[string]string // section/name → range
}

var yarnKey = lazyregexp.New(`^"?((?:@[^@/"]+/)?[^@/"]+)@([^@"]+)"?$`)

// name is the package of all specs, or nothing if they disagree.
func (b yarnBlock) name() string {
	name := ""
	for i, spec := range b.specs {
		m := yarnKey.FindStringSubmatch(spec)
		if m == nil || i > 0 && m[1] != name {
			return ""
		}
		name = m[1]
	}
	return name
}

// parseYarn reads what yarn 1 writes, and nothing else.
func parseYarn(text string) ([]yarnBlock, error) {
	if !strings.Contains(text, "# yarn lockfile v1\n") {
		return nil, fmt.Errorf("not a yarn lockfile of version 1")
	}
	var blocks []yarnBlock
	section := ""
	for at := range strings.Lines(text) {
		at = strings.TrimRight(at, "\r\n")
		body := strings.TrimLeft(at, " ")
		indent := len(at) - len(body)
		header, isHeader := strings.CutSuffix(body, ":")
		key, value, isField := strings.Cut(body, " ")
		key, value = strings.Trim(key, `"`), strings.Trim(value, `"`)
		switch {
		case body == "" || indent == 0 && body[0] == '#':
		case indent == 0 && isHeader:
			blocks, section = append(blocks, yarnBlock{strings.Split(header, ", "), map[string]string{}, map[string]string{}}), ""
		case len(blocks) == 0:
			return nil, fmt.Errorf("line %.40q is not understood", at)
		case indent == 2 && isHeader && (header == "dependencies" || header == "optionalDependencies"):
			section = header
		case indent == 2 && isField:
			blocks[len(blocks)-1].fields[key], section = value, ""
		case indent == 4 && isField && section != "":
			blocks[len(blocks)-1].needs[section+"/"+key] = value
		default:
			return nil, fmt.Errorf("line %.40q is not understood", at)
		}
	}
	return blocks, nil
}

func yarnLock(old, text string) (int, error) {
	a, err := parseYarn(old)
	if err != nil {
		return 0, err
	}
	b, err := parseYarn(text)
	if err != nil {
		return 0, err
	}
	key := func(b yarnBlock) string { return b.name() }
	version := func(b yarnBlock) string { return b.fields["version"] }
	pairs, err := pairUp(a, b, key, version)
	if err != nil {
		return 0, err
	}
	for _, p := range pairs {
		if err := yarnPair(p[0], p[1]); err != nil {
			return 0, err
		}
	}
	return len(pairs), nil
}

func yarnPair(old, now yarnBlock) error {
	name, from, to := old.name(), old.fields["version"], now.fields["version"]
	if name == "" || len(old.specs) != len(now.specs) {
		return fmt.Errorf("%q is asked for in another way", now.specs)
	}
	for i := range old.specs {
		a, b := yarnKey.FindStringSubmatch(old.specs[i]), yarnKey.FindStringSubmatch(now.specs[i])
		if a[2] == b[2] {
			continue
		}
		if err := rangeUp(name, a[2], b[2]); err != nil {
			return err
		}
	}
	if err := patchUp(name, from, to); err != nil {
		return err
	}
	a, _, _ := strings.Cut(old.fields["resolved"], "#")
	b, _, _ := strings.Cut(now.fields["resolved"], "#")
	if err := sameSource(name, a, b, from, to); err != nil {
		return err
	}
	if err := strongIntegrity(name, old.fields["integrity"], now.fields["integrity"]); err != nil {
		return err
	}
	_, err := countChanges(nil, asTexts(old.needs), asTexts(now.needs), func(at []string, a, b string) error { return rangeUp(at[0], a, b) })
	if err != nil {
		return err
	}
	for _, known := range []string{"version", "resolved", "integrity"} {
		delete(old.fields, known)
		delete(now.fields, known)
	}
	_, err = countChanges(nil, asTexts(old.fields), asTexts(now.fields), func(at []string, _, _ string) error { return fmt.Errorf("%s changes its %q", name, at) })
	return err
}

func asTexts(m map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range m {
		all[key] = value
	}
	return all
}
