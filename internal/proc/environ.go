package proc

import (
	"path/filepath"
	"slices"
	"strings"
)

// Variable returns the value of the first NAME=VALUE entry for name, which is
// the one that C programs see, or empty. Case counts.
func Variable(env []string, name string) string {
	for _, entry := range env {
		if n, value, ok := strings.Cut(entry, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// WithVariables returns env with NAME=VALUE entries set over those of the same
// names, later ones over earlier ones. Neither list is changed.
func WithVariables(env []string, set ...string) []string {
	env = slices.Clone(env)
	for _, entry := range set {
		name, _, _ := strings.Cut(entry, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, entry)
	}
	return env
}

// PathDirs are the directories of a list like PATH, in its order. Those that
// are not absolute mean another one in another place, and are left out.
func PathDirs(list string) []string {
	return slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
}
