// Package bootrepo loads the contract of a boot repository: its version, its rules, its
// stop lines and its schemas, at the reference that an AGENT_LINK.md names.
//
// A boot repository is untrusted and never written to. Nothing of it is checked out or
// run: files are read from git's objects, each within bounds, and kept by the name of
// their commit, so that a commit that was seen once needs neither git nor a network.
package bootrepo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/stopline"
)

// Cache is the folder in which the contracts of all boot repositories are:
//
//	KEY/tips                the commits that branches and tags were last seen at
//	KEY/contracts/COMMIT    the files of a contract
//	KEY/lock                held by whoever adds to the folder
//
// Several processes may use one at once.
type Cache struct {
	Dir     string   // absolute path; need not exist
	Mirror  string   // an address or a path that owner/repo is below; empty: the forge
	Environ []string // the user's own, with which git logs in to another host
	Exec    proc.Runner
	Now     func() time.Time

	Patience time.Duration // how long another host may take to say where a branch is; zero: ten seconds
}

// Contract is what a boot repository asks of a workspace, valid and compatible.
type Contract struct {
	Repository string // its address or path, without secrets
	Commit     string
	Folder     string // the contract's folder in the repository; the top is empty
	Version    bootlink.BootVersion

	Rules         string // AGENT_RULES.md
	StopLineFile  string // its path in the repository; empty: there is none, and the defaults hold
	StopLineText  string
	StopLines     []stopline.Line
	Schemas       bootstate.Schemas
	Compatibility bootlink.Compatibility
	Warnings      []Warning

	Fetched time.Time // when its commit came here
	Offline string    // why the reference could not be looked up, and the last known commit is used; usually empty
}

// Warning is what people should be told although the contract can be used.
type Warning struct {
	Reason loop.Reason
	Detail string
}

// repository is one boot repository, as a link names it.
type repository struct {
	Cache
	source    source
	reference string
	bootPath  string
	dir       string // its folder of the cache
}

func (c Cache) repository(link bootlink.Link, root string) (*repository, error) {
	s, err := c.resolveSource(link.Repository, root)
	if err != nil {
		return nil, err
	}
	if err := checkReference(link.Reference); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(s.identity()))
	r := &repository{Cache: c, source: s, reference: link.Reference, bootPath: link.BootPath}
	r.dir = filepath.Join(c.Dir, hex.EncodeToString(sum[:8]))
	r.Patience = cmp.Or(c.Patience, 10*time.Second)
	return r, nil
}

// Load returns the contract that a link asks for. Root is the top of the workspace, at
// which relative paths begin. A full commit that was loaded before is not looked up
// anywhere. A branch or a tag is looked up each time; if its repository cannot be
// reached, its last known commit is used, and Offline says so.
//
// Every refusal is an *Error; the contract then has what was read before: where it is
// from, and often its version. What this machine lacks, such as git or a cache that can be
// written, is another error.
func (c Cache) Load(ctx context.Context, link bootlink.Link, root string) (Contract, error) {
	r, err := c.repository(link, root)
	if err != nil {
		return Contract{}, err
	}
	found, offline, err := r.findReference(ctx)
	if err != nil {
		return Contract{Repository: r.source.String()}, err
	}
	contract, err := readContract(link, found)
	contract.Repository, contract.Offline = r.source.String(), offline
	return contract, err
}

// findReference returns the files of the commit that the reference names now. Offline
// is not empty if they are those of its last known commit, and says why.
func (r *repository) findReference(ctx context.Context) (_ *files, offline string, err error) {
	if isCommit(r.reference) {
		found, err := r.findCommit(ctx, r.reference, r.reference)
		return found, "", r.refuseAway(err)
	}
	tip, err := r.lookUp(ctx)
	var found *files
	if err == nil {
		found, err = r.findCommit(ctx, tip.commit, tip.ref)
	}
	if err == nil {
		return found, "", r.noteTip(ctx, found.Commit)
	}
	if away, is := errors.AsType[*awayError](err); is {
		if known, ok := r.readTips()[r.reference]; ok {
			if found, ok := r.readFiles(known); ok {
				return found, away.Error(), nil
			}
		}
	}
	return nil, "", r.refuseAway(err)
}

// findCommit returns the files of a commit, from the cache or else from the repository.
// Name is that of a ref that leads to it, or of the commit itself. If the ref has moved
// meanwhile, the files are those of its newer commit.
func (r *repository) findCommit(ctx context.Context, commit, name string) (*files, error) {
	if found, ok := r.readFiles(commit); ok {
		return found, nil
	}
	turn, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer turn.Close()
	if found, ok := r.readFiles(commit); ok { // Another process was faster.
		return found, nil
	}
	found, err := r.readRepository(ctx, commit, name)
	if err != nil {
		return nil, err
	}
	found.Fetched = r.Now()
	return found, r.writeFiles(found)
}

// lock waits until nobody else adds to the repository's folder.
func (r *repository) lock(ctx context.Context) (*os.File, error) {
	if err := os.MkdirAll(filepath.Join(r.dir, contractsName), 0o700); err != nil {
		return nil, fmt.Errorf("keep the boot repository %s: %w", r.source, err)
	}
	turn, err := flock.Wait(ctx, filepath.Join(r.dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("keep the boot repository %s: %w", r.source, err)
	}
	// Whoever was killed while it had the lock may have left a part.
	if err := errors.Join(git.RemoveFetched(r.dir), removeHalves(r.dir), removeHalves(filepath.Join(r.dir, contractsName))); err != nil {
		return nil, errors.Join(fmt.Errorf("keep the boot repository %s: %w", r.source, err), turn.Close())
	}
	return turn, nil
}
