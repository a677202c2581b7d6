package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Check returns nil if the self-test of the tier has passed on this host, for this
// user and this binary, since the host was started. If it was not run yet, Check
// runs it in a temporary directory below home, and stores a pass in
// home/sandbox.json. Tiers that promise nothing are not tested.
//
// If the test does not pass, the error is a *loop.Fault with the cause and its fix.
func Check(ctx context.Context, home string, tier Tier) error {
	switch tier {
	case "", None, External:
		return nil
	case Full, Landlock, Seatbelt:
	}
	file, key := filepath.Join(home, "sandbox.json"), testIdentity()
	if isPassed(readPassed(file), tier, key) {
		return nil
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("test the sandbox: %w", err)
	}
	defer waiting.For(ctx, "the self-test of the sandbox, which this host needs once", nil)()
	select {
	case testTurn <- struct{}{}:
		defer func() { <-testTurn }()
	case <-ctx.Done():
		return fmt.Errorf("test the sandbox: %w", context.Cause(ctx))
	}
	defer waitForTurn(ctx, home)()
	passed := readPassed(file)
	if isPassed(passed, tier, key) {
		return nil // Somebody else has run it meanwhile.
	}
	result, err := Test(ctx, tier, home)
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("test the sandbox: %w", cause)
	}
	if failed := result.Failed(); err != nil || len(failed) > 0 {
		return readHostFacts(home).adviseOn(tier, err, failed)
	}
	if tier == Full {
		knownLayerless.Store(home, result.NoLayers)
	}
	passed[tier] = passedTest{Key: key, Result: result}
	if err := writePassed(file, passed); err != nil {
		return &loop.Fault{
			Exit: loop.ExitError, What: "the result of the sandbox's self-test cannot be kept", Why: err.Error(),
			Fix: "make " + home + " writable for this user", Err: err,
		}
	}
	return nil
}

// testTurn is held while this process runs the self-test: many runs that start at the
// same time need only one.
var testTurn = make(chan struct{}, 1)

// othersTestWait is how long to wait for the self-test of another process, which may
// be stopped.
const othersTestWait = 2 * time.Minute

// waitForTurn waits until no other process runs a self-test for the same home. The
// result ends the turn of this process. Tests at the same time do not disturb each
// other, but many of them are slow, and each has time limits. If the system has no
// file locks, or the wait takes too long, the test is run all the same.
func waitForTurn(ctx context.Context, home string) (done func()) {
	ctx, cancel := context.WithTimeout(ctx, othersTestWait)
	defer cancel()
	claim, err := flock.Wait(ctx, filepath.Join(home, "sandbox.lock"))
	if err != nil {
		return func() {}
	}
	return func() {
		_ = os.Remove(claim.Name()) // Whoever waits for it creates a new one.
		claim.Close()
	}
}

// isPassed reports whether the self-test of the tier passed for this key.
func isPassed(passed map[Tier]passedTest, tier Tier, key string) bool {
	p, ok := passed[tier]
	return ok && p.Key == key && key != ""
}

// passedTest is a self-test that passed. The key names everything that could make it
// fail later: see testIdentity.
type passedTest struct {
	Key    string `json:"key"`
	Result Result `json:"result"`
}

const passedSchema = "pawl.sandbox/v1"

type passedFile struct {
	Schema string              `json:"schema"`
	Passed map[Tier]passedTest `json:"passed"`
}

// readPassed reads the stored passes. It returns none if the file cannot be read or
// others may write it: then the test is run again.
func readPassed(file string) map[Tier]passedTest {
	none := map[Tier]passedTest{}
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return none
	}
	text, err := os.ReadFile(file)
	var m passedFile
	if err != nil || json.Unmarshal(text, &m) != nil || m.Schema != passedSchema || m.Passed == nil {
		return none
	}
	return m.Passed
}

// writePassed replaces the file as a whole, so that nobody reads a part of it.
func writePassed(file string, passed map[Tier]passedTest) (err error) {
	text, err := json.Marshal(passedFile{passedSchema, passed})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".sandbox-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// binaryID returns the path of the running binary and an identity of its content,
// both empty if it cannot be found.
func binaryID() (path, id string) {
	path, err := os.Executable()
	if err != nil {
		return "", ""
	}
	return path, fileID(path)
}

// fileID returns a text that changes when the file is replaced or written again,
// empty if it cannot be found. The inode tells files of the same size and time apart.
func fileID(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(info.Size(), 10) + "-" + strconv.FormatInt(info.ModTime().UnixNano(), 10) + "-" + fmt.Sprint(inodeNumber(info.Sys()))
}
