package toolchain

import (
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// cacheHome is the directory for programs' caches, or empty.
func cacheHome(env []string) string {
	if dir := proc.LookupVariable(env, "XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if runtime.GOOS == "darwin" {
		return joinBelow(proc.LookupVariable(env, "HOME"), "Library/Caches")
	}
	return joinBelow(proc.LookupVariable(env, "HOME"), ".cache")
}

// plainCacheHome is cacheHome for programs that use the directory of Linux everywhere.
func plainCacheHome(env []string) string {
	if dir := proc.LookupVariable(env, "XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return joinBelow(proc.LookupVariable(env, "HOME"), ".cache")
}

// configHome is the directory for programs' settings, or empty.
func configHome(env []string) string {
	if dir := proc.LookupVariable(env, "XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if runtime.GOOS == "darwin" {
		return joinBelow(proc.LookupVariable(env, "HOME"), "Library/Application Support")
	}
	return joinBelow(proc.LookupVariable(env, "HOME"), ".config")
}

// dataHome is the directory for programs' data, or empty.
func dataHome(env []string) string {
	if dir := proc.LookupVariable(env, "XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return joinBelow(proc.LookupVariable(env, "HOME"), ".local/share")
}

// joinBelow joins path to dir, or returns an empty string if dir is empty.
func joinBelow(dir, path string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// goModCache is the directory of the go command's modules, or empty.
func goModCache(env []string) string {
	if dir := goSetting(env, "GOMODCACHE"); filepath.IsAbs(dir) {
		return dir
	}
	path, _, _ := strings.Cut(goSetting(env, "GOPATH"), string(filepath.ListSeparator))
	if path == "" {
		path = joinBelow(proc.LookupVariable(env, "HOME"), "go")
	}
	return joinBelow(path, "pkg/mod")
}
