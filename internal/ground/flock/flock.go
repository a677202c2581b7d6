// Package flock claims names on this machine by locking files. A claim ends when
// its file is closed or its process ends, in whatever way.
//
// It never breaks a claim, never reads a claimed file and never removes one: the
// only holder of a claim may remove its file before closing it. On a system without
// such locks every claim fails with errors.ErrUnsupported.
package flock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/ground/waiting"
)

// ErrHeld means that somebody else holds the claim.
var ErrHeld = errors.New("it is in use")

// How long to wait before a held claim is tried again. The waits become longer,
// because a claim that is held for a while is probably held for long work.
const (
	firstWait = 3 * time.Millisecond
	lastWait  = 50 * time.Millisecond
)

// Try claims the file at path for its caller alone, or fails with ErrHeld. It
// creates the file and its folder if they are missing. Closing the file ends the
// claim.
func Try(path string) (*os.File, error) { return tryLock(path, false) }

// Wait is Try, but waits until nobody holds the claim, or ctx ends.
func Wait(ctx context.Context, path string) (*os.File, error) { return waitLock(ctx, path, false) }

// WaitShared is Wait for a claim that others may share.
func WaitShared(ctx context.Context, path string) (*os.File, error) { return waitLock(ctx, path, true) }

func waitLock(ctx context.Context, path string, shared bool) (*os.File, error) {
	defer waiting.For(ctx, "the lock "+path, func() string { return Holder(path) })()
	for pause := firstWait; ; pause = min(2*pause, lastWait) {
		f, err := tryLock(path, shared)
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

func tryLock(path string, shared bool) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return nil, err
	}
	err = lockFile(f, shared)
	if err == nil && !isFileAt(f, path) {
		err = ErrHeld
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// isFileAt reports whether f is still the file at path. It is not if the previous
// holder of the claim removed it.
func isFileAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(open, there)
}
