package proc

import (
	"path/filepath"
	"slices"
	"strings"
)

// LookupVariable returns the value of the first NAME=VALUE entry for name, which
// is the one that C programs see, or "" if there is none. Names are compared with
// their case.
func LookupVariable(env []string, name string) string {
	for _, entry := range env {
		if n, value, ok := strings.Cut(entry, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// WithVariables returns env with the NAME=VALUE entries of set in place of those
// with the same names; of two in set the later one counts. Neither list is changed.
func WithVariables(env []string, set ...string) []string {
	env = slices.Clone(env)
	for _, entry := range set {
		name, _, _ := strings.Cut(entry, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, entry)
	}
	return env
}

// PathDirs returns the directories of a list like PATH, in its order. Relative
// ones are left out, because they mean another directory in another place.
func PathDirs(list string) []string {
	return slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
}
