package proc

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// hostStage remembers the strongest kind of stage that works on this host.
var hostStage struct {
	mu   sync.Mutex
	kind stage.Kind
}

// strongestKind tries the kinds in order until one works. It remembers the answer
// only if no stronger kind failed for a temporary reason: a daemon on a host that
// was short of memory for a moment must not go without namespaces ever after.
func strongestKind() (stage.Kind, error) {
	hostStage.mu.Lock()
	defer hostStage.mu.Unlock()
	if hostStage.kind != 0 {
		return hostStage.kind, nil
	}
	kinds := []stage.Kind{stage.KindUser, stage.KindSubreaper}
	if os.Geteuid() == 0 {
		kinds = append([]stage.Kind{stage.KindPID}, kinds...)
	}
	var refused error
	for _, kind := range kinds {
		err := tryStage(kind, program{argv: []string{"a probe"}})
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		if !isTemporary(refused) {
			hostStage.kind = kind
		}
		return kind, nil
	}
	return 0, refused
}

// tryStage starts a stage and waits for its end. P ends by itself; without a path the
// stage sets itself up and exits.
func tryStage(kind stage.Kind, p program) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := startStage(ctx, kind, p, [3]*os.File{null, null, null})
	if err != nil {
		return err
	}
	<-c.done()
	c.reap()
	return nil
}

// isTemporary reports whether err may not happen again later.
func isTemporary(err error) bool {
	for _, e := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
