package proc

import (
	"context"
	"os"
)

func startForeground(ctx context.Context, p program, stdio [3]*os.File) (child, error) {
	return startPlain(ctx, p, stdio)
}
