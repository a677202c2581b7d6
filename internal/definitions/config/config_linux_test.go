package config_test

import (
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/definitions/config"
)

func TestTheHomeOfTheGivenEnvironmentGoesBeforeThatOfTheProcess(t *testing.T) {
	got, err := config.Load(config.Settings{}, []string{"HOME=/home/ann"})
	if want := "/home/ann/.local/state/pawl"; err != nil || got.Home != want || got.Database != filepath.Join(want, "pawl.db") {
		t.Errorf("settings = %+v, %v; want home %s", got, err, want)
	}
}
