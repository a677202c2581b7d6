// Package flock claims names of this machine by locked files. A claim ends when
// its file is closed, or with its process, however that ends.
//
// It never breaks a claim of somebody else, never looks into a file, and never
// removes one: whoever holds a claim alone may remove its file before closing
// it. Where the system has no such locks, every claim is errors.ErrUnsupported.
package flock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/waiting"
)

// ErrHeld means that somebody else holds the claim.
var ErrHeld = errors.New("it is in use")

// How long a claim that is held is left alone before it is tried again: ever
// longer, because what holds it after a while is long work.
const (
	firstWait = 3 * time.Millisecond
	lastWait  = 50 * time.Millisecond
)

// Try claims the file at path for its caller alone, or fails with ErrHeld. It
// makes the file and its folder where they are missing.
func Try(path string) (*os.File, error) { return try(path, false) }

// Wait is Try, but waits until nobody holds the claim, or ctx ends.
func Wait(ctx context.Context, path string) (*os.File, error) { return wait(ctx, path, false) }

// WaitShared is Wait for a claim that others may share.
func WaitShared(ctx context.Context, path string) (*os.File, error) { return wait(ctx, path, true) }

func wait(ctx context.Context, path string, shared bool) (*os.File, error) {
	defer waiting.For(ctx, "the lock "+path, func() string { return Holder(path) })()
	for pause := firstWait; ; pause = min(2*pause, lastWait) {
		f, err := try(path, shared)
		if err == nil || !errors.Is(err, ErrHeld) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func try(path string, shared bool) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return nil, err
	}
	err = lock(f, shared)
	if err == nil && !stands(f, path) {
		err = ErrHeld
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// stands reports whether the path still means the open file: whoever held the
// claim before has removed it otherwise.
func stands(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(open, there)
}
