package boots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Severities of a finding.
const (
	SeverityError  = "error"  // a run would stop
	SeverityRepair = "repair" // a run would mend it, and say so in the changelog
	SeverityNote   = "note"
)

// Finding is something about a file that a run would read.
type Finding struct {
	Path     string      `json:"path"` // below the workspace; of a file of the boot repository, below its address
	Line     int         `json:"line"`
	Column   int         `json:"column"`
	Severity string      `json:"severity"`
	Reason   loop.Reason `json:"reason,omitempty"`
	Pointer  string      `json:"pointer,omitempty"` // JSON pointer of the value that is meant
	Message  string      `json:"message"`
}

// String is the finding on one line, with its place.
func (f Finding) String() string {
	text := f.Message
	if f.Pointer != "" {
		text = f.Pointer + ": " + text
	}
	if f.Reason != "" {
		text += " (" + string(f.Reason) + ")"
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.Path, f.Line, f.Column, text)
}

// Boot is a boot repository as it was found.
type Boot struct {
	Repository string     `json:"repository"` // its address or path, without secrets
	Reference  string     `json:"reference"`
	Commit     string     `json:"commit,omitempty"`
	Folder     string     `json:"folder,omitempty"` // of the contract; empty: the top
	Expected   string     `json:"expected"`         // version that the link names
	Version    string     `json:"version,omitempty"`
	Fetched    *time.Time `json:"fetched,omitempty"` // when its commit came here
	Offline    string     `json:"offline,omitempty"` // why the reference could not be looked up, and the last known commit is used
}

// Checked is what Check found, schema pawl.boot-check/v1.
type Checked struct {
	Schema   string    `json:"schema"`
	Ready    bool      `json:"ready"` // a run would come as far as to its plan
	Exit     int       `json:"exit"`  // the exit status of such a run, if it would not
	Boot     *Boot     `json:"boot,omitempty"`
	Findings []Finding `json:"findings"` // in the order in which a run would meet them
}

// Check does what a run does before it plans, and writes nothing: it reads the link, loads
// the contract, and reads and validates the memory. It stops where a run would.
func (s *Service) Check(ctx context.Context) (Checked, error) {
	c := Checked{Schema: "pawl.boot-check/v1", Findings: []Finding{}}
	err := s.check(ctx, &c)
	c.Ready = c.Exit == 0
	return c, err
}

// stop adds findings with which a run ends. The first ones say its exit status.
func (c *Checked) stop(exit int, findings ...Finding) {
	if c.Exit == 0 {
		c.Exit = exit
	}
	for _, f := range findings {
		f.Severity = SeverityError
		c.Findings = append(c.Findings, f)
	}
}

func (c *Checked) note(severity string, f Finding) {
	f.Severity = severity
	c.Findings = append(c.Findings, f)
}

func (s *Service) check(ctx context.Context, c *Checked) error {
	link, err := bootdef.Read(s.ws.Root)
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		reason := loop.ReasonLinkMalformed
		if errors.Is(err, loop.ErrNotFound) {
			reason = loop.ReasonLinkMissing
		}
		c.stop(f.Exit, Finding{Path: bootdef.LinkFile, Line: 1, Column: 1, Reason: reason, Message: f.Why})
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range link.Findings {
		c.stop(loop.ExitUnreadable, Finding{Path: bootdef.LinkFile, Line: f.Line, Column: f.Column, Reason: f.Reason, Message: f.Message})
	}
	if c.Exit != 0 {
		return nil
	}
	if link.Contract != "" {
		c.note(SeverityNote, atValue(link, link.Contract, loop.ReasonLinkContract,
			"the companion contract %s is asked for, and pawl does not read it: paths, sizes, schemas and secrets are checked by pawl's own rules", link.Contract))
	}
	if err := s.checkDefinition(ctx, c); err != nil {
		return err
	}
	schemas, err := s.checkContract(ctx, c, link)
	if err != nil || schemas.Set == nil {
		return err
	}
	m, err := s.openMemory(ctx, link)
	if err != nil {
		return err
	}
	checkMemory(c, schemas, m.find(ctx))
	return nil
}

// checkDefinition reports what is wrong with the loop's own keys.
func (s *Service) checkDefinition(ctx context.Context, c *Checked) error {
	e, err := s.ws.Loops.Lookup(ctx, loop.ProtocolBoot+":"+bootdef.Name)
	if err != nil || e.Problem == nil {
		return err
	}
	f, _ := errors.AsType[*loop.Fault](e.Problem)
	exit, why := loop.ExitNotReady, e.Problem.Error()
	if f != nil {
		exit, why = f.Exit, f.Why
	}
	first, _, _ := strings.Cut(why, "\n")
	c.stop(exit, Finding{Path: ".loops/boot/loop.config.yaml", Line: 1, Column: 1, Message: first + "; pawl check boot says more"})
	return nil
}

// atValue is a finding at the place in the link where a value is written.
func atValue(link bootdef.Link, value string, reason loop.Reason, format string, args ...any) Finding {
	line, column := link.Place(value)
	return Finding{Path: bootdef.LinkFile, Line: line, Column: column, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// checkContract loads the contract, and returns its schemas; none if a run would end with
// it.
func (s *Service) checkContract(ctx context.Context, c *Checked, link bootdef.Link) (bootstate.Schemas, error) {
	contract, err := s.contract(ctx, link.Link)
	c.Boot = bootOf(link.Link, contract)
	if refused, ok := errors.AsType[*bootrepo.Error](err); ok {
		c.stop(refused.Fault.Exit, refusals(link, contract, refused)...)
		return bootstate.Schemas{}, nil
	}
	if err != nil {
		return bootstate.Schemas{}, err
	}
	if contract.Offline != "" {
		c.note(SeverityNote, atValue(link, link.Reference, loop.ReasonBootAway, "offline: %s; the commit %s that was fetched %s is used",
			contract.Offline, short(contract.Commit), contract.Fetched.UTC().Format(time.RFC3339)))
	}
	for _, w := range contract.Warnings {
		c.note(SeverityNote, atValue(link, link.Version.String(), w.Reason, "%s", w.Detail))
	}
	return contract.Schemas, nil
}

func bootOf(link bootlink.Link, c bootrepo.Contract) *Boot {
	b := &Boot{
		Repository: c.Repository, Reference: link.Reference, Commit: c.Commit, Folder: c.Folder, Expected: link.Version.String(),
		Fetched: shape.Time(c.Fetched), Offline: c.Offline,
	}
	if c.Version.Version != (bootlink.Version{}) {
		b.Version = c.Version.Version.String()
	}
	return b
}

// refusals are the findings of a contract that cannot be used.
func refusals(link bootdef.Link, contract bootrepo.Contract, refused *bootrepo.Error) (found []Finding) {
	for _, f := range refused.Findings {
		found = append(found, Finding{Path: contract.Repository + "/" + f.Path, Line: f.Line, Column: f.Column, Reason: f.Reason, Message: f.Message})
	}
	if len(found) > 0 {
		return found
	}
	value := link.Repository
	if refused.Fault.Exit == loop.ExitNotReady { // The versions do not fit.
		value = link.Version.String()
	}
	return []Finding{atValue(link, value, refused.Reason, "%s; %s", refused.Fault.Error(), refused.Fault.Advice())}
}

// checkMemory reports what a run would find in the memory, and what it would mend.
func checkMemory(c *Checked, schemas bootstate.Schemas, found bootstate.Found) {
	_, repairs, stop := schemas.Recover(found)
	if stop != nil && stop.Path == found.State.Path {
		// What is wrong with the tasks does not depend on the state.
		c.stopBy(stop)
		valid := found
		valid.State.Content, valid.State.Exists, valid.State.Problem = bootstate.NewState(found.Project, found.Now).Encode(), true, ""
		_, repairs, stop = schemas.Recover(valid)
	}
	if stop != nil {
		c.stopBy(stop)
	}
	mended := func(name string) bool {
		return slices.ContainsFunc(repairs, func(r bootstate.Repair) bool { return r.Path == name })
	}
	for _, file := range []bootstate.File{found.State, found.Tasks} {
		if !mended(file.Path) || !file.Exists || file.Problem != "" {
			continue
		}
		_, wrong := schemas.ReadState(file.Content)
		if file.Path == found.Tasks.Path {
			_, wrong = schemas.ReadTodo(file.Content)
		}
		for _, f := range wrong {
			c.note(SeverityRepair, memoryFinding(file.Path, f))
		}
	}
	for _, r := range repairs {
		c.note(SeverityRepair, Finding{Path: r.Path, Line: 1, Column: 1, Reason: r.Reason, Message: "a run would note: " + r.Note})
	}
}

func (c *Checked) stopBy(stop *bootstate.Stop) {
	exit := loop.ExitUnreadable
	if stop.Reason == loop.ReasonStateLost {
		exit = loop.ExitNoSuccess
	}
	found := []Finding{}
	for _, f := range stop.Findings {
		found = append(found, memoryFinding(stop.Path, f))
	}
	if len(found) == 0 {
		found = append(found, Finding{Path: stop.Path, Line: 1, Column: 1, Reason: stop.Reason, Message: stop.Message})
	}
	c.stop(exit, found...)
}

func memoryFinding(name string, f bootstate.Finding) Finding {
	return Finding{Path: name, Line: max(f.Line, 1), Column: max(f.Column, 1), Reason: f.Reason, Pointer: f.Pointer, Message: f.Message}
}
