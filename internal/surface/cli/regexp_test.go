package cli_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// This package imports all others.
func TestEveryRegularExpressionIsValid(*testing.T) { lazyregexp.CompileAll() }
