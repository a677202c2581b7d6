// Package selftest is the part of package sandbox's self-test that runs inside a
// box. It tries what a confined program must not be able to do, and some of what it
// must be able to do, and prints a line for each. With the hidden argument [Arg] the
// init of this package takes over and never returns.
//
// It is a leaf that imports only os, syscall and golang.org/x/sys/unix. Without
// the hidden argument the init does nothing. It does not judge the results, and
// does no harm if an action succeeds: dangerous system calls are made with arguments
// that the kernel rejects after it has decided whether the call is permitted.
package selftest

// Arg is the hidden first argument.
const Arg = "__pawl-selftest"

// Wait is the second argument of a process that prints its pid and waits for ever.
// Its third argument is the token by which it can be found.
const Wait = "wait"

// Hold is the second argument of a process that fills memory, prints a line and waits
// for ever. Its third argument is the number of bytes.
const Hold = "hold"

// A line has three fields between tabs: the action, one of these answers, and a
// detail, mostly the name of an errno.
const (
	Works  = "works"
	Denied = "denied"
)

// Names of the self-test's parameters, which are arguments NAME=VALUE.
const (
	Canary    = "canary"    // a file of the host that is not in the box
	Tree      = "tree"      // where the tree is
	Protected = "protected" // a file in the tree that is not to be written
	Home      = "home"
	Temporary = "tmp"
	TCP4      = "tcp4" // port of a server of the host at 127.0.0.1
	TCP6      = "tcp6" // the same at ::1; empty: the host has none
	UDP       = "udp"
	Path      = "path"      // socket of the host
	Abstract  = "abstract"  // name of an abstract socket of the host
	Token     = "token"     // in the environment of the waiting process, and its third argument
	Resolver  = "resolver"  // IPv4 address of a name server
	Processes = "processes" // how many the self-test may have; empty: as many as the host allows
	FileBytes = "filebytes" // how large a file may be that the self-test writes
)

// Actions, in the words that a person reads.
const (
	WriteOutside     = "write outside of the tree"
	ReadOutside      = "read a file of the host"
	LinkOutside      = "hard-link a file of the host"
	RenameOutside    = "rename a file of the host"
	ChangeOutside    = "change the mode or the time of a file of the host"
	WriteProtected   = "write a protected file"
	RenameProtected  = "rename a protected file"
	ConnectTCP4      = "connect to the host's 127.0.0.1"
	ConnectTCP6      = "connect to the host's ::1"
	SendUDP          = "send a datagram to the host"
	ConnectMPTCP     = "connect by MPTCP"
	ConnectEarly     = "connect by sending at once"
	ServeUnbound     = "serve at a port that the kernel picks"
	OtherProtocols   = "use a rare protocol of the Internet"
	ConnectPath      = "connect to a socket of the host by its path"
	ConnectAbstract  = "connect to an abstract socket of the host"
	OpenVSOCK        = "open a socket of the hypervisor"
	OpenPacket       = "open a packet socket"
	OpenALG          = "open a socket of the kernel's ciphers"
	OtherFamilies    = "open a socket of a rare family"
	OtherPairs       = "open a pair of sockets of a rare family"
	OtherNetlink     = "speak to the kernel by netlink beyond routes"
	NewUserByClone   = "make a user namespace by clone"
	NewUserByUnshare = "make a user namespace by unshare"
	NewUserByClone3  = "make a user namespace by clone3"
	MountSomething   = "mount"
	PivotRoot        = "change the root"
	Trace            = "trace a process"
	ReadMemory       = "read the memory of a process"
	IOURing          = "set up an io_uring"
	LoadBPF          = "use bpf"
	FaultByUser      = "use userfaultfd"
	UseKeys          = "use the kernel's keyrings"
	UsePerf          = "use perf events"
	OpenByHandle     = "open a file by its handle"
	Type             = "type into a terminal"
	MakeDevice       = "make a device"
	SeeProcesses     = "see a process of the host"
	SignalProcess    = "signal a process of the host"
	LimitProcess     = "limit a process of the host"
	ReadEnvironment  = "read the environment of a process of the host"
	ReadPID1         = "read the environment of process 1"
	GainBySetUID     = "gain by a set-user-id program"
	HoldCapability   = "hold a capability"
	GainCapability   = "gain a capability by a program"
	AskResolver      = "look up a name"
	ReachMetadata    = "reach 169.254.169.254"
	ExceedProcesses  = "have more processes than its limit"
	ExceedFileSize   = "write a larger file than its limit"
	ExceedMemory     = "hold more memory than its limit"
	LeaveCore        = "leave a core file"

	WriteTree = "write in the tree"
	WriteHome = "write in the home directory"
	WriteTemp = "write temporary files"
	ReadUsr   = "read /usr"
	Fork      = "start a process"
	Serve     = "serve and connect on the own loopback"
)
