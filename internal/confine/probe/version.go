package probe

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

var versionNumber = lazyregexp.New(`\d+\.\d+(?:\.\d+)*(?:-[0-9A-Za-z.]+)?`)

// firstVersion returns the first version number in an answer, or an empty string.
func firstVersion(said string) string { return versionNumber.FindString(said) }

// isOlder reports whether version a came before b, by their numbers alone. It is
// false if one of them has no number.
func isOlder(a, b string) bool {
	x, y := versionNumbers(a), versionNumbers(b)
	return len(x) > 0 && len(y) > 0 && slices.CompareFunc(x, y, cmp.Compare[uint64]) < 0
}

func versionNumbers(version string) []uint64 {
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

// deadProxy is the address of a proxy that refuses every connection.
const deadProxy = "http://127.0.0.1:9"

// quietEnviron keeps programs that are asked for their version from installing
// anything, from updating themselves, and from running a project's own copy.
var quietEnviron = []string{
	"HTTP_PROXY=" + deadProxy, "HTTPS_PROXY=" + deadProxy, "ALL_PROXY=" + deadProxy,
	"http_proxy=" + deadProxy, "https_proxy=" + deadProxy, "all_proxy=" + deadProxy, "NO_PROXY=", "no_proxy=",
	"GOTOOLCHAIN=local", "RUSTUP_AUTO_INSTALL=0",
	"COREPACK_ENABLE_NETWORK=0", "COREPACK_ENABLE_DOWNLOAD_PROMPT=0", "YARN_IGNORE_PATH=1", "NPM_CONFIG_MANAGE_PACKAGE_MANAGER_VERSIONS=false",
	"MISE_OFFLINE=1", "MISE_AUTO_INSTALL=0", "MISE_NOT_FOUND_AUTO_INSTALL=0", "MISE_EXEC_AUTO_INSTALL=0", "MISE_YES=0",
	"UV_OFFLINE=1", "UV_PYTHON_DOWNLOADS=never",
	"PROTO_AUTO_INSTALL=false", "PROTO_OFFLINE=1",
	"DISABLE_AUTOUPDATER=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "NO_UPDATE_NOTIFIER=1", "NPM_CONFIG_UPDATE_NOTIFIER=false",
	"DOTNET_CLI_TELEMETRY_OPTOUT=1", "DOTNET_NOLOGO=1", "CI=1", "NO_COLOR=1",
}

// OfflineEnviron returns the environment for a program that is asked for its
// version: the prober's, changed so that nothing is fetched or installed.
func (p Prober) OfflineEnviron() []string {
	replaced := map[string]bool{}
	all := slices.Clone(quietEnviron)
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
