// Package sandbox confines programs: what they can see, write, reach and use
// up. It starts them through package proc, so that whatever they start dies
// with them.
//
// A [Box] in tier full gets a root of its own in which nothing exists but what
// the box names, in namespaces of its own, behind Landlock and a filter of
// system calls. [Test] tries from inside whether that holds, and [Check] is the
// same for callers that only want to know whether a tier may be used here. No
// helper binary, no container and no privilege is needed: the running binary is
// executed once more and becomes the program (package stage). Tier seatbelt was
// written without a Mac to try it on.
//
// It decides nothing about what a program is for, makes no tree and no cache,
// knows no loop, and never weakens a tier by itself: what the host cannot
// enforce is an error.
package sandbox

import (
	"context"
	"net"
)

// Tier says how strongly programs are confined.
//
// Landlock is weaker than full in ways that no kernel rule closes: Protect and
// Masks do not hold in it, a port of the box may be connected to at any address
// and not only at the loopback, and tests that open servers fail. What the
// programs read and write is confined alike; the modes, times and attributes of
// files elsewhere, where proc holds them together by a namespace.
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

// Box says what one program may see and write. The zero Box confines nothing.
// It may be used for one program after the other; two at a time must not have
// an Upper in common.
type Box struct {
	Tier Tier

	Tree    string   // where programs see the tree: at the checkout's own path
	Layers  *Overlay // the tree, if it is layered
	Dir     string   // the tree, if it is a plain directory of the host
	Protect []string // absolute paths in the tree that cannot be written; those that do not exist do not count

	Home  string // where programs see an empty home of their own; it goes with the program
	Binds []Bind
	Views []View
	Masks []string // absolute paths of which nothing is to be seen

	// Scratch is a directory of the host, for tiers in which programs see those:
	// home and temporary files.
	Scratch string

	Ports []Port
}

// Bind is a file or directory of the host.
type Bind struct {
	From  string // absolute path on the host
	To    string // absolute path where it is seen; empty: the same
	Write bool
}

// At is where a program in the tier sees it.
func (b Bind) At(t Tier) string {
	if t.HasOwnRoot() && b.To != "" {
		return b.To
	}
	return b.From
}

// View is a layered directory beside the tree: a cache that programs may add
// to, without anybody else seeing it.
type View struct {
	At string // absolute path where it is seen
	Overlay
}

// Port is a way out. Programs reach it at a port of the loopback address.
type Port struct {
	Number int // in tiers with a network of their own; in others any free one is taken

	// Listener is what programs without a network of their own are led to, and
	// Serve then gets; nil: one is opened. The box closes it.
	Listener net.Listener

	// Serve accepts connections until l is closed, which happens when the program
	// has ended, and returns when it is through with them.
	Serve func(ctx context.Context, l net.Listener)
	// Env are the variables that lead to addr, which is host:port.
	Env func(addr string) []string
}
