// Package sandbox confines programs: it limits what they can see, write, reach and
// use. It starts them through package proc, so that whatever they start dies with
// them.
//
// A program in a [Box] of tier full runs in namespaces of its own, with a root in
// which only what the box names exists, restricted by Landlock and a filter of
// system calls. [Test] tries from inside a box whether that is so, and [Check] tells
// a caller whether a tier may be used on this host. No helper binary, container or
// privilege is needed: the running binary is executed again and sets up the box
// (package stage). Tier seatbelt was written without a Mac to try it on.
//
// It knows nothing about loops and about what a program is for, makes no trees and
// no caches, and never weakens a tier: if the host cannot enforce it, that is an
// error.
package sandbox

import (
	"context"
	"net"
)

// Tier says how strongly programs are confined.
//
// Landlock is weaker than full in ways that the kernel cannot prevent: Protect and
// Masks have no effect, programs may connect to a port of the box at any address and
// not only at the loopback, and tests that open servers fail. Reading and writing
// files is confined as in full. Changing the modes, times and attributes of other
// files is prevented only if proc runs the program in a PID namespace.
type Tier string

// The tiers.
const (
	Full     Tier = "full"     // a root, users, processes and a network of its own, Landlock, seccomp
	Landlock Tier = "landlock" // the host's root, in which Landlock and seccomp permit little
	Seatbelt Tier = "seatbelt" // macOS: sandbox-exec
	External Tier = "external" // whatever pawl itself runs in
	None     Tier = "none"
)

// HasOwnRoot reports whether programs in the tier have a root of their own, in
// which binds, views and layers are mounted at their paths. In all other tiers
// they see the directories of the host at the host's paths.
func (t Tier) HasOwnRoot() bool { return t == Full }

// Box says what one program may see and write. The zero Box confines nothing. It may
// be used for several programs one after another; programs that run at the same time
// must not share an Upper.
type Box struct {
	Tier Tier

	Tree    string   // where programs see the tree: at the checkout's own path
	Layers  *Overlay // the tree, if it is layered
	Dir     string   // the tree, if it is a plain directory of the host
	Protect []string // absolute paths in the tree that cannot be written; those that do not exist are ignored

	Home  string // where programs see an empty home of their own, which ends with the program
	Binds []Bind
	Views []View
	Masks []string // absolute paths whose content is hidden

	// Scratch is a directory of the host for home and temporary files, in tiers
	// without a root of their own.
	Scratch string

	Ports []Port
}

// Bind is a file or directory of the host that programs see.
type Bind struct {
	From  string // absolute path on the host
	To    string // absolute path where it is seen; empty: the same
	Write bool
}

// At returns the path at which a program in the tier sees it.
func (b Bind) At(t Tier) string {
	if t.HasOwnRoot() && b.To != "" {
		return b.To
	}
	return b.From
}

// View is a layered directory besides the tree, such as a cache that programs may add
// to without anybody else seeing the additions.
type View struct {
	At string // absolute path where it is seen
	Overlay
}

// Port is a server outside the box that programs reach at the loopback address.
type Port struct {
	Number int // in tiers with a network of their own; in others a free one is taken

	// Listener is used in tiers without a network of their own, if not nil;
	// otherwise one is opened. The box closes it.
	Listener net.Listener

	// Serve accepts connections until l is closed, which happens when the program
	// has ended, and returns when it has finished with them.
	Serve func(ctx context.Context, l net.Listener)
	// Env returns the variables that lead programs to addr, which is host:port.
	Env func(addr string) []string
}
