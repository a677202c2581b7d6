package bootlink

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Version is a version without a pre-release.
type Version struct{ Major, Minor, Patch int }

// String is like 1.0.0.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// ParseVersion reads three numbers; a v before them is ignored.
func ParseVersion(text string) (Version, bool) {
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) != 3 {
		return Version{}, false
	}
	var n [3]int
	for i, part := range parts {
		number, ok := versionNumber(part)
		if !ok {
			return Version{}, false
		}
		n[i] = number
	}
	return Version{n[0], n[1], n[2]}, true
}

func versionNumber(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}

// BootVersion is a VERSION.json.
type BootVersion struct {
	Version    Version
	Compatible []string // versions of workspaces, where x stands for any number
}

// ParseBootVersion reads a VERSION.json. It must not be used if there is a finding.
func ParseBootVersion(src []byte) (BootVersion, []Finding) {
	root, problem := jsontree.Parse(src, jsontree.Bounds{Bytes: MaxBytes, Depth: 16})
	if problem != nil {
		return BootVersion{}, []Finding{{loop.ReasonBootMalformed, problem.Message, problem.Line, problem.Column}}
	}
	var b BootVersion
	var findings []Finding
	lines := jsontree.NewLines(src)
	report := func(v *jsontree.Value, format string, args ...any) {
		f := Finding{Reason: loop.ReasonBootMalformed, Message: fmt.Sprintf(format, args...)}
		f.Line, f.Column = lines.Place(v.At)
		findings = append(findings, f)
	}
	switch found := root.Get("bootVersion"); {
	case root.Kind != jsontree.Object:
		report(root, "is %s, not an object", root.Kind)
		return b, findings
	case found == nil:
		report(root, "bootVersion is missing")
	default:
		var ok bool
		if b.Version, ok = ParseVersion(found.Text); !ok || found.Kind != jsontree.Text {
			report(found, "bootVersion: %s is not a version; write three numbers, like 1.0.0", readiness.Quote(found.Text))
		}
	}
	list := root.Get("compatibleWorkspaces")
	if list == nil {
		report(root, "compatibleWorkspaces is missing")
		return b, findings
	}
	if list.Kind != jsontree.List {
		report(list, "compatibleWorkspaces is %s, not a list", list.Kind)
	}
	for _, item := range list.Items {
		if item.Kind != jsontree.Text || !isVersionRange(item.Text) {
			report(item, "compatibleWorkspaces: %s is not a version; write numbers or x, like 1.0.x", readiness.Quote(item.Text))
			continue
		}
		b.Compatible = append(b.Compatible, item.Text)
	}
	return b, findings
}

func isWildcard(part string) bool { return part == "x" || part == "X" || part == "*" }

func isVersionRange(text string) bool {
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	for _, part := range parts {
		if _, ok := versionNumber(part); !ok && !isWildcard(part) {
			return false
		}
	}
	return len(parts) <= 3
}

// inRange reports whether a version is one of those that a range like 1.0.x means. What
// a range does not write is any number.
func inRange(v Version, text string) bool {
	numbers := []int{v.Major, v.Minor, v.Patch}
	for i, part := range strings.Split(strings.TrimPrefix(text, "v"), ".") {
		if n, _ := versionNumber(part); !isWildcard(part) && n != numbers[i] {
			return false
		}
	}
	return true
}

// Compatibility is whether a workspace may go on with a boot repository, and why.
type Compatibility struct {
	OK      bool
	Warning bool // it may, and people should be told
	Reason  loop.Reason
	Detail  string
}

// Compare holds the version that a workspace expects against what the boot repository
// has: one row of the table for each pair.
func Compare(expected Version, found BootVersion) Compatibility {
	has := found.Version
	versions := fmt.Sprintf("AGENT_LINK.md expects the boot version %s, and the boot repository has %s", expected, has)
	listed := slices.ContainsFunc(found.Compatible, func(r string) bool { return inRange(expected, r) })
	switch {
	case expected.Major != has.Major:
		return Compatibility{Reason: loop.ReasonVersionMajor, Detail: versions + ": upgrade the one that is older"}
	case expected.Minor > has.Minor:
		return Compatibility{Reason: loop.ReasonVersionAhead, Detail: versions + ": upgrade the boot repository"}
	case !listed:
		detail := fmt.Sprintf("%s, which works with workspaces of %s only", versions, strings.Join(found.Compatible, ", "))
		if len(found.Compatible) == 0 {
			detail = versions + ", which lists no version of workspaces that it works with"
		}
		return Compatibility{Reason: loop.ReasonVersionUnlisted, Detail: detail}
	case expected.Minor < has.Minor:
		return Compatibility{OK: true, Warning: true, Reason: loop.ReasonVersionBehind, Detail: versions}
	case expected.Patch != has.Patch:
		return Compatibility{OK: true, Reason: loop.ReasonVersionPatch, Detail: versions}
	}
	return Compatibility{OK: true, Reason: loop.ReasonVersionEqual, Detail: versions}
}

// Files that a boot repository must have, below its contract folder.
const (
	VersionFile     = "VERSION.json"
	RulesFile       = "contract/AGENT_RULES.md"
	StateSchemaFile = "schemas/state-schema.json"
	TasksSchemaFile = "schemas/todo-schema.json"
)

// ContractFolder finds the folder of a boot repository that has a VERSION.json with
// contract/ and schemas/ beside it, among the paths of all its files. The top is "".
// It is not found if there are several, unless one of them is the top.
func ContractFolder(files []string) (folder string, found bool) {
	var folders []string
	beside := map[string]bool{}
	for _, file := range files {
		for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
			beside[dir] = true
		}
	}
	for _, file := range files {
		dir := path.Dir(file)
		if path.Base(file) == VersionFile && beside[path.Join(dir, "contract")] && beside[path.Join(dir, "schemas")] {
			folders = append(folders, dir)
		}
	}
	if slices.Contains(folders, ".") {
		return "", true
	}
	if len(folders) != 1 {
		return "", false
	}
	return folders[0], true
}

// MissingFiles returns which of the files that a contract folder must have are not among
// the paths of a boot repository.
func MissingFiles(folder string, files []string) []string {
	var missing []string
	for _, name := range []string{VersionFile, RulesFile, StateSchemaFile, TasksSchemaFile} {
		if file := path.Join(folder, name); !slices.Contains(files, file) {
			missing = append(missing, file)
		}
	}
	return missing
}
