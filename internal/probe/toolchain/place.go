package toolchain

import (
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pawl-run/pawl/internal/proc"
)

// cacheHome is the directory in which programs keep what they can make again.
func cacheHome(env []string) string {
	if dir := proc.Variable(env, "XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if runtime.GOOS == "darwin" {
		return below(proc.Variable(env, "HOME"), "Library/Caches")
	}
	return below(proc.Variable(env, "HOME"), ".cache")
}

// plainCacheHome is cacheHome for programs that do everywhere as on Linux.
func plainCacheHome(env []string) string {
	if dir := proc.Variable(env, "XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return below(proc.Variable(env, "HOME"), ".cache")
}

// configHome is the directory in which programs keep settings.
func configHome(env []string) string {
	if dir := proc.Variable(env, "XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if runtime.GOOS == "darwin" {
		return below(proc.Variable(env, "HOME"), "Library/Application Support")
	}
	return below(proc.Variable(env, "HOME"), ".config")
}

// dataHome is the directory in which programs keep what they work with.
func dataHome(env []string) string {
	if dir := proc.Variable(env, "XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return below(proc.Variable(env, "HOME"), ".local/share")
}

// below is a path in dir, or empty if there is no dir.
func below(dir, path string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// goModCache is where the go command keeps modules, or empty.
func goModCache(env []string) string {
	if dir := goSetting(env, "GOMODCACHE"); filepath.IsAbs(dir) {
		return dir
	}
	path, _, _ := strings.Cut(goSetting(env, "GOPATH"), string(filepath.ListSeparator))
	if path == "" {
		path = below(proc.Variable(env, "HOME"), "go")
	}
	return below(path, "pkg/mod")
}
