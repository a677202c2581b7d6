package credential

import (
	"errors"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// CheckPossible returns a *loop.Fault if a driver cannot reach its model in the way
// that a definition or an entry of the roster asks for, on any machine.
func CheckPossible(p agent.Profile, provider, baseURL string, auth loop.Auth) error {
	w := Want{Profile: p, Provider: provider, BaseURL: baseURL, Auth: auth}
	base, err := BaseURL(baseURL)
	if err != nil {
		return err
	}
	switch auth {
	case loop.AuthLend:
		if err := w.checkLendable(base); err != nil {
			return withExit(err, loop.ExitUsage)
		}
		if provider == "" {
			return nil
		}
	case loop.AuthInject:
	case "":
		if provider == "" && base == nil {
			return nil
		}
	default:
		return w.invalidAuth()
	}
	_, err = w.vendorsFor(base)
	return withExit(err, loop.ExitUsage)
}

// withExit sets the exit status of err if it is a fault.
func withExit(err error, exit int) error {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		f.Exit = exit
	}
	return err
}
