// Package config says where pawl keeps what it writes, who reviews, and where boot
// repositories are: the settings of one process, from flags, the environment and
// defaults, in this order.
//
// It reads only the environment that it is given, creates nothing, and knows
// no definition of any loop.
package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"
)

// Settings of one process. Every field but those of the reviewer and of the mirror has a
// value after Load.
type Settings struct {
	// Home is the folder of everything that pawl writes outside of workspaces:
	// the store, copies of trees, files of live runs.
	Home string
	// Database is the path of the SQLite file, or a postgres:// URL.
	Database string
	// Sockets is the folder of the sockets of daemons.
	Sockets string
	// ReviewerAgent and ReviewerModel are who reviews where a gate names nobody: an entry of
	// the roster or a driver, and the model that it asks. Without an agent it is that of the
	// loop; without a model, the agent's own. Both empty: nobody does.
	ReviewerAgent, ReviewerModel string
	// BootMirror is an address or a path below which a boot repository that is written as
	// owner/repo is looked for. Empty: on the forge.
	BootMirror string
}

// Names of the variables that set what flags do not.
const (
	EnvHome     = "PAWL_HOME"
	EnvDatabase = "PAWL_DATABASE"

	EnvReviewerAgent = "PAWL_REVIEWER_AGENT"
	EnvReviewerModel = "PAWL_REVIEWER_MODEL"

	EnvBootMirror = "PAWL_BOOT_MIRROR"
)

// Load fills in what the flags left empty: from the environment, NAME=VALUE
// each, and then from the defaults of the platform.
func Load(flags Settings, environ []string) (Settings, error) {
	s := flags
	if s.Home == "" {
		s.Home = lookupEnv(environ, EnvHome)
	}
	if s.Home == "" {
		s.Home = filepath.Join(stateHome(environ), "pawl")
		if dir := lookupEnv(environ, "XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
			s.Sockets = filepath.Join(dir, "pawl")
		}
	}
	home, err := filepath.Abs(s.Home)
	if err != nil {
		return s, err
	}
	s.Home = home
	if s.Sockets == "" { // Another home has its own.
		s.Sockets = home
	}
	if s.Database == "" {
		s.Database = lookupEnv(environ, EnvDatabase)
	}
	if s.Database == "" {
		s.Database = filepath.Join(s.Home, "pawl.db")
	}
	if s.ReviewerAgent == "" && s.ReviewerModel == "" {
		s.ReviewerAgent, s.ReviewerModel = lookupEnv(environ, EnvReviewerAgent), lookupEnv(environ, EnvReviewerModel)
	}
	if s.BootMirror == "" {
		s.BootMirror = lookupEnv(environ, EnvBootMirror)
	}
	return s, nil
}

// stateHome prefers the environment that was passed in over the process's own,
// which the library reads once at start.
func stateHome(environ []string) string {
	if dir := lookupEnv(environ, "XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := lookupEnv(environ, "HOME"); home != "" && os.PathSeparator == '/' && xdg.Home != home {
		return filepath.Join(home, ".local", "state")
	}
	return xdg.StateHome
}

func lookupEnv(environ []string, name string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
