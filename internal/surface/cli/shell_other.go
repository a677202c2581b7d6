//go:build !unix

package cli

import (
	"errors"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// onTerminal gives a program a terminal of its own.
func onTerminal(*proc.Spec, func() (int, error)) (exit int, err error) {
	return 0, errors.ErrUnsupported
}
