package policy

import (
	"fmt"
	"strings"
)

// refuseUnportable refuses the paths that a change adds and that a checkout on
// Windows cannot hold. A folder that the base has is not held against the files
// in it; beside is as in Check.
func refuseUnportable(changes []Change, beside []string) []Verdict {
	var refused []Verdict
	var known map[string]bool // paths and folders of the base; made when it is first asked for
	for _, c := range changes {
		if !c.New.exists() || c.Old.exists() {
			continue
		}
		for end := range folderEnds(c.Path) {
			part := c.Path[strings.LastIndexByte(c.Path[:end], '/')+1 : end]
			why := notOnWindows(part)
			if why == "" {
				continue
			}
			if known == nil {
				known = knownPaths(changes, beside)
			}
			if !known[c.Path[:end]] {
				refused = append(refused, Verdict{
					Path: c.Path, Code: CodeUnportable, Rule: fmt.Sprintf("Windows cannot hold the name %q (%s); portable_names: false allows it", part, why),
				})
				break
			}
		}
	}
	return refused
}

// folderEnds yields the offsets at which the folders of a path and the path itself end.
func folderEnds(name string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range len(name) + 1 {
			if (i == len(name) || name[i] == '/') && !yield(i) {
				return
			}
		}
	}
}

// knownPaths are all paths of the base that are at hand, with their folders.
func knownPaths(changes []Change, beside []string) map[string]bool {
	known := map[string]bool{}
	add := func(name string) {
		for end := range folderEnds(name) {
			known[name[:end]] = true
		}
	}
	for _, name := range beside {
		add(name)
	}
	for _, c := range changes {
		if c.Old.exists() {
			add(c.Path)
		}
	}
	return known
}

// notOnWindows says why one part of a path is not a name of a file on Windows;
// empty if it is one. What every scope refuses is not looked at: backslashes,
// control characters, dots and spaces at the end.
func notOnWindows(part string) string {
	if i := strings.IndexAny(part, `<>:"|?*`); i >= 0 {
		return fmt.Sprintf("%q stands for something else there", part[i])
	}
	stem, _, _ := strings.Cut(part, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return "it is that of a device"
	}
	for _, device := range []string{"COM", "LPT"} {
		switch number, ok := strings.CutPrefix(stem, device); {
		case !ok:
		case len(number) == 1 && number[0] >= '1' && number[0] <= '9', number == "¹", number == "²", number == "³":
			return "it is that of a device"
		}
	}
	return ""
}
