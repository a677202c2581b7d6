package compose_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"
	"unsafe"

	"modernc.org/sqlite"

	"github.com/pawl-run/pawl/internal/ground/clock"
)

// clockEnv names a file that says by how much the wall clock of a child is
// wrong. Without the file it is right.
const clockEnv = "PAWL_TEST_CLOCK"

// clockFile is that file of a fixture. All its children read it, as all processes
// of a host have one clock.
func (s *fixture) clockFile() string { return s.home + ".clock" }

// setClock makes the wall clock of the fixture wrong, also for children that run.
func (s *fixture) setClock(by time.Duration) {
	s.t.Helper()
	next := s.clockFile() + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(by.String()), 0o600), os.Rename(next, s.clockFile())); err != nil {
		s.t.Fatal(err)
	}
}

// shiftedClock is the machine's clock as somebody has set it: the wall clock is
// wrong by what the file says, and the monotonic clock is not. SQLite, which asks
// for the time itself, is given the same.
func shiftedClock(file string) (func() time.Time, error) {
	if file == "" {
		return nil, nil
	}
	now := func() time.Time { return setWall(clock.System{}.Now(), readShift(file)) }
	before, after := clock.System{}.Now(), setWall(clock.System{}.Now(), 2*time.Hour)
	if d := after.Sub(before); d < 0 || d > time.Hour || after.Unix()-before.Unix() < 7200 {
		return nil, fmt.Errorf("a clock that was set: %v later by the monotonic clock, from %v to %v", d, before, after)
	}
	err := sqlite.RegisterScalarFunction("unixepoch", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if len(args) != 1 || args[0] != "subsec" {
			return nil, fmt.Errorf("unixepoch(%v) is not shifted", args)
		}
		return float64(now().UnixMicro()) / 1e6, nil
	})
	return now, err
}

// setWall changes the wall time of t by whole seconds and leaves its monotonic
// reading, as no method of time.Time does. A time with such a reading has the
// seconds above 30 bits of nanoseconds in its first word.
func setWall(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30
	return t
}

func readShift(file string) time.Duration {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	by, parseErr := time.ParseDuration(string(text))
	if err := errors.Join(err, parseErr); err != nil {
		panic(err)
	}
	return by
}

func TestAClockThatWasSetKeepsItsMonotonicReading(t *testing.T) {
	begin := time.Now()
	for _, by := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour} {
		got := setWall(begin, by)
		if wall := got.Round(0).Sub(begin.Round(0)); wall != by || got.Sub(begin) != 0 {
			t.Errorf("by %v: the wall clock moved by %v and the monotonic one by %v", by, wall, got.Sub(begin))
		}
	}
}
