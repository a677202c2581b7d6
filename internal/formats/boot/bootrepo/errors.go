package bootrepo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Error is why a boot repository cannot be used: a row of the protocol's table of
// failures, with its exit status in the Fault.
type Error struct {
	Reason   loop.Reason
	Fault    *loop.Fault
	Findings []Finding // faults of files of the repository, if that is why
}

func (e *Error) Error() string { return e.Fault.Error() }
func (e *Error) Unwrap() error { return e.Fault }

// Finding is one fault of a file, or a note about it.
type Finding struct {
	Path string // in the boot repository
	bootlink.Finding
}

// String is the finding with its file and place.
func (f Finding) String() string { return f.Path + ":" + f.Finding.String() }

// awayError means that a repository cannot be reached. One that answers, and has not
// what it was asked for, is an *Error at once.
type awayError struct {
	why string
	err error
}

func (e *awayError) Error() string { return e.why }
func (e *awayError) Unwrap() error { return e.err }

// refuseAway is what people are told of an awayError. Other errors stay what they are.
func (r *repository) refuseAway(err error) error {
	away, is := errors.AsType[*awayError](err)
	if !is {
		return err
	}
	fix, actions := "see that the repository is there and that you may read it: {1}", []loop.Command{loop.HostCommand("git", "ls-remote", r.source.String())}
	return &Error{Reason: loop.ReasonBootAway, Fault: &loop.Fault{
		Exit: loop.ExitMissing, What: fmt.Sprintf("the boot repository %s cannot be read", r.source), Why: away.why,
		Fix: fix, Actions: actions, Err: away.err,
	}}
}

// refuseReference is the error of a repository that has not what the link names.
func (r *repository) refuseReference(why string) error {
	return &Error{Reason: loop.ReasonBootAway, Fault: &loop.Fault{
		Exit: loop.ExitMissing, What: fmt.Sprintf("the boot repository %s has no %q", r.source, r.reference), Why: why,
		Fix: "write a branch, a tag or a full commit of it into the row Boot Reference of AGENT_LINK.md",
	}}
}

func refuseLink(format string, args ...any) error {
	return &Error{Reason: loop.ReasonLinkMalformed, Fault: &loop.Fault{
		Exit: loop.ExitUnreadable, What: "AGENT_LINK.md: " + fmt.Sprintf(format, args...),
		Fix: "write owner/repo, an https:// or ssh:// address, or a path into the row Boot Repository, and a branch, a tag or a full commit into the row Boot Reference",
	}}
}

func refuseIncomplete(missing []string, why string) error {
	what := "the boot repository is incomplete"
	if len(missing) > 0 {
		what += ": " + strings.Join(missing, ", ") + " missing"
	}
	return &Error{Reason: loop.ReasonBootIncomplete, Fault: &loop.Fault{
		Exit: loop.ExitMissing, What: what, Why: why,
		Fix: "add what is missing to the boot repository, or name the folder of the contract in a row Boot Path of AGENT_LINK.md",
	}}
}

func refuseFindings(reason loop.Reason, what string, findings []Finding) error {
	lines := make([]string, 0, len(findings))
	for _, f := range findings[:min(len(findings), 5)] {
		lines = append(lines, f.String())
	}
	if more := len(findings) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return &Error{Reason: reason, Findings: findings, Fault: &loop.Fault{
		Exit: loop.ExitUnreadable, What: what, Why: strings.Join(lines, "; "),
		Fix: "correct the boot repository, or name an earlier reference of it in AGENT_LINK.md",
	}}
}

func refuseVersion(c bootlink.Compatibility) error {
	return &Error{Reason: c.Reason, Fault: &loop.Fault{
		Exit: loop.ExitNotReady, What: "the boot version does not fit", Why: c.Detail,
		Fix: "change the row Boot Version or Boot Reference of AGENT_LINK.md, so that they fit together",
	}}
}
