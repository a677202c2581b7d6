package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// diskShare is how much of the time may be spent on looking at files: one part of
// so many.
const diskShare = 20

// watchDisk returns a context that ends when the run's files take up more of the
// disk than they may. The second value stops watching, as often as it is called;
// it returns when the watcher is gone.
func (h *heldRun) watchDisk(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	looking, stop := context.WithCancel(ctx)
	s, most := h.runEnv(), h.def.DiskLimit()
	var watching sync.WaitGroup
	watching.Go(func() {
		wait := time.NewTimer(h.DiskGap)
		defer wait.Stop()
		for {
			select {
			case <-looking.Done():
				return
			case <-wait.C:
			}
			began := h.Now()
			u, err := s.Usage(looking)
			if err == nil && u.Bytes > most {
				s.Disk.Full()
				cancel(&stopError{ending{outcome: loop.OutcomeBudget, reason: loop.ReasonDisk, detail: h.said.Hide(diskText(u, most))}})
				return
			}
			wait.Reset(max(h.DiskGap, h.Now().Sub(began)*diskShare))
		}
	})
	return ctx, func() {
		stop()
		watching.Wait()
	}
}

func diskText(u runenv.Usage, most int64) string {
	return fmt.Sprintf("its files take up %s of the disk, and max_disk is %s; most of it is in %s",
		runenv.SizeText(u.Bytes), runenv.SizeText(most), strings.Join(printables(u.Largest), ", "))
}
