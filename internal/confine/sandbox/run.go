package sandbox

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

func notStarted(s proc.Spec, err error) (proc.Result, error) {
	return proc.Result{Exit: -1, Ended: proc.NotStarted}, fmt.Errorf("start %s: %w", s.Argv[0], err)
}

// hostPorts opens the box's ports on the host's loopback, for programs that share the
// host's network, and serves them until closeAll is called, which waits until Serve
// has returned. It returns their numbers and the variables that lead to them.
func (b Box) hostPorts(ctx context.Context) (numbers []int, env []string, closeAll func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	closeAll = func() {
		cancel()
		serving.Wait()
	}
	for _, p := range b.Ports {
		l := p.Listener
		if l == nil {
			if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0"); err != nil {
				closeAll()
				return nil, nil, nil, fmt.Errorf("open a port: %w", err)
			}
		}
		addr := l.Addr().(*net.TCPAddr) //nolint:forcetypeassert // It listens on TCP.
		numbers = append(numbers, addr.Port)
		env = append(env, p.Env(addr.String())...)
		stop := context.AfterFunc(ctx, func() { l.Close() })
		serving.Go(func() {
			defer stop()
			p.Serve(ctx, l)
		})
	}
	return numbers, env, closeAll, nil
}
