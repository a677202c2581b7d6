package setup_test

import (
	"os"
	"testing"

	"github.com/pawl-run/pawl/internal/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }
