//go:build !linux

package toolchain

import (
	"context"
	"errors"
)

func (r *resolver) answeringProgram(context.Context, string) (string, error) {
	return "", errors.New("this system cannot say what a process runs")
}
