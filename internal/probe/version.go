package probe

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var versionNumber = regexp.MustCompile(`\d+\.\d+(?:\.\d+)*(?:-[0-9A-Za-z.]+)?`)

// version is the first version number of an answer, or empty.
func version(said string) string { return versionNumber.FindString(said) }

// older reports whether version a came before b, by their numbers alone. What
// has no number is not older.
func older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	return len(x) > 0 && len(y) > 0 && slices.CompareFunc(x, y, cmp.Compare[uint64]) < 0
}

func numbers(version string) []uint64 {
	release, _, _ := strings.Cut(version, "-")
	var all []uint64
	for part := range strings.SplitSeq(release, ".") {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return all
		}
		all = append(all, n)
	}
	return all
}

// nowhere is a proxy that refuses every connection.
const nowhere = "http://127.0.0.1:9"

// quiet keeps programs that are asked for their version from installing one,
// from updating themselves, and from running what a project put in their place.
var quiet = []string{
	"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "ALL_PROXY=" + nowhere,
	"http_proxy=" + nowhere, "https_proxy=" + nowhere, "all_proxy=" + nowhere, "NO_PROXY=", "no_proxy=",
	"GOTOOLCHAIN=local", "RUSTUP_AUTO_INSTALL=0",
	"COREPACK_ENABLE_NETWORK=0", "COREPACK_ENABLE_DOWNLOAD_PROMPT=0", "YARN_IGNORE_PATH=1", "NPM_CONFIG_MANAGE_PACKAGE_MANAGER_VERSIONS=false",
	"MISE_OFFLINE=1", "MISE_AUTO_INSTALL=0", "MISE_NOT_FOUND_AUTO_INSTALL=0", "MISE_EXEC_AUTO_INSTALL=0", "MISE_YES=0",
	"UV_OFFLINE=1", "UV_PYTHON_DOWNLOADS=never",
	"PROTO_AUTO_INSTALL=false", "PROTO_OFFLINE=1",
	"DISABLE_AUTOUPDATER=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "NO_UPDATE_NOTIFIER=1", "NPM_CONFIG_UPDATE_NOTIFIER=false",
	"DOTNET_CLI_TELEMETRY_OPTOUT=1", "DOTNET_NOLOGO=1", "CI=1", "NO_COLOR=1",
}

// Offline is the environment of a program that is asked for its version: that of
// the prober, with what keeps it from fetching or installing anything.
func (p Prober) Offline() []string {
	replaced := map[string]bool{}
	all := slices.Clone(quiet)
	for _, entry := range all {
		name, _, _ := strings.Cut(entry, "=")
		replaced[name] = true
	}
	for _, entry := range p.Environ {
		if name, _, _ := strings.Cut(entry, "="); !replaced[name] {
			all = append(all, entry)
		}
	}
	return all
}
