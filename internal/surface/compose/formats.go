package compose

import (
	"time"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/formats/boards/heartbeat"
	"github.com/pawl-run/pawl/internal/formats/boot"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/spec"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/formats/tasks"
)

// Formats lists the formats for what only reads definitions. Now is the clock that tells how
// old their files are.
func Formats(now func() time.Time) format.List { return formats(bootrepo.Cache{}, now) }

// formats lists the formats of loops. A new one is a folder in internal/formats, and its line
// here.
func formats(contracts bootrepo.Cache, now func() time.Time) format.List {
	return format.List{
		spine.Format(),
		spec.Format(),
		boot.Format(contracts),
		tasks.Format(now),
		heartbeat.Format(),
	}
}
