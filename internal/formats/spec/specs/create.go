package specs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// CreateRequest says which spec to create: that of a document, or that of a template.
type CreateRequest struct {
	Document string `json:"document,omitempty"` // JSON; empty: the template's
	File     string `json:"file,omitempty"`     // how messages call the document
	Foreign  bool   `json:"foreign,omitempty"`  // it may be another program's: its id and times are kept, and what fits no phrase becomes a note

	Template string `json:"template,omitempty"` // empty: the skeleton
	Fill

	DryRun bool `json:"dry_run,omitempty"` // check everything and write nothing

	// Key makes the id of the spec: what is created with the same key again is there already,
	// and nothing more is created. Empty: the id is random.
	Key   string      `json:"-"`
	Claim store.Claim `json:"-"` // of the call that creates it
}

// Fill is what a template is filled with, beside what the repository says of itself.
type Fill struct {
	Goal      string   `json:"goal,omitempty"`
	Agent     string   `json:"agent,omitempty"`
	Paths     []string `json:"paths,omitempty"` // that may be changed; empty: where the sources are
	Test      string   `json:"test,omitempty"`  // these four: empty: what the repository names
	TypeCheck string   `json:"typecheck,omitempty"`
	Lint      string   `json:"lint,omitempty"`
	Coverage  string   `json:"coverage,omitempty"`
	Source    string   `json:"source,omitempty"` // what a monitor looks at: a command
}

// Create creates a spec and the loop that runs it. If anything of it is refused, nothing
// is created, and the error is a *loop.Fault that exits with loop.ExitUnreadable.
func (s *Service) Create(ctx context.Context, by loop.Actor, r CreateRequest) (v View, err error) {
	in, everything := by.Grant.Within(), true
	if in != nil {
		if r.Paths, everything, err = s.pathsAbove(ctx, in); err != nil {
			return View{}, err
		}
	}
	spec, doc, notes, err := s.draft(ctx, r)
	if err == nil && !everything && len(r.Paths) == 0 {
		err = checkChangesNothing(in, spec)
	}
	if err != nil {
		return View{}, err
	}
	findings, err := s.validate(ctx, spec)
	if err != nil {
		return View{}, err
	}
	findings = append(notes, findings...)
	if err := refusal(r, doc, findings); err != nil {
		return View{}, err
	}
	if !r.Foreign {
		spec.ParentID, spec.ChildIDs = "", nil // Only a spec that is there has relatives.
	}
	if r.DryRun {
		return View{Schema: "pawl.spec/v1", Run: loopspec.Run{Spec: spec, Status: loopspec.StatusDraft, Iterations: []loopspec.Iteration{}}, Notes: onlyNotes(findings)}, nil
	}
	insert := s.insert
	if in != nil {
		insert = s.insertChild
	}
	id, err := insert(ctx, by, spec, r, func(tx *store.Tx, id string) (err error) {
		if v, err = s.viewIn(ctx, &tx.Reader, id); err != nil {
			return err
		}
		v.Notes = onlyNotes(findings)
		return tx.AnswerCall(ctx, r.Claim, v)
	})
	if err != nil {
		return View{}, err
	}
	if v.Spec.ID == id {
		return v, nil
	}
	v, err = s.Get(ctx, id) // It was there already.
	v.Notes = onlyNotes(findings)
	return v, err
}

// draft is the spec that a request describes, with its document, if it has one, and what
// was changed in it.
func (s *Service) draft(ctx context.Context, r CreateRequest) (spec loopspec.Spec, doc *loopspec.Document, notes []loopspec.Finding, err error) {
	if r.Document == "" {
		t, err := s.fill(r.Fill, nil)
		if err != nil {
			return spec, nil, nil, err
		}
		spec, err = loopspec.FromTemplate(r.Template, t.Task)
		return spec, nil, nil, err
	}
	read, findings := loopspec.Decode([]byte(r.Document))
	if err := refusal(r, &read, findings); err != nil {
		return spec, nil, nil, err
	}
	spec = read.Spec.WithDefaults()
	if r.Foreign {
		spec, notes = loopspec.Adopt(spec, s.machine(ctx))
	}
	return spec, &read, notes, nil
}

// refusal is the error for a spec of which a finding refuses something; nil if none does.
// Each finding has its place in the document, if there is one.
func refusal(r CreateRequest, doc *loopspec.Document, findings []loopspec.Finding) error {
	if !loopspec.Refused(findings) {
		return nil
	}
	if doc == nil {
		return loopspec.AsFault(findings)
	}
	var all []string
	for _, f := range doc.Locate(findings) {
		if !f.Note {
			all = append(all, f.Render(r.File, []byte(strings.TrimPrefix(r.Document, "\ufeff"))))
		}
	}
	return &loop.Fault{
		Exit: loop.ExitUnreadable, What: r.File + " is refused", Why: strings.Join(all, "\n"), Fix: "change what is named; nothing was created",
	}
}

func onlyNotes(findings []loopspec.Finding) []loopspec.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f loopspec.Finding) bool { return !f.Note })
}

// validate finds what is wrong with a spec in itself, and on this machine: its agent is not
// there, or its runs would fire it again.
func (s *Service) validate(ctx context.Context, spec loopspec.Spec) ([]loopspec.Finding, error) {
	findings := loopspec.Validate(spec, s.machine(ctx))
	d, _ := spec.Definition(spec.ID)
	if spec.AgentID != "" {
		_, err := s.ws.Actor(ctx, d)
		unknown, ok := errors.AsType[*loop.Fault](err)
		switch {
		case ok:
			findings = append(findings, loopspec.Finding{Path: "agentId", Message: readiness.Printable(unknown.Why + "; " + unknown.Advice().String())})
		case err != nil:
			return nil, err
		}
	}
	if cycle := catalog.Cycle(s.ws.Formats, s.ws.Root, spec.ID, d.On); spec.ID != "" && cycle != nil {
		findings = append(findings, loopspec.Finding{Path: "trigger.on", Message: readiness.Printable("the spec would fire itself: " + cycle.Error())})
	}
	if d.LandVia == "pr" {
		if _, err := s.ws.Repo.RemoteURL("origin"); err != nil {
			findings = append(findings, loopspec.Finding{Path: "humanGate", Note: true, Message: "there is no remote origin to push to: a result can be kept, and a pull request needs one"})
		}
	}
	return findings, nil
}

// definitionOf is the definition by which a spec runs. What was flagged is a part of it, so
// that each run says by what it was judged.
func definitionOf(spec loopspec.Spec, rubric *judged) loop.Definition {
	d, _ := spec.Definition(spec.ID)
	d.Spec = string(loopspec.Encode(spec))
	if rubric != nil {
		d.Rubric, d.Claims = rubric.Criteria, rubric.Claims
	}
	return d
}

// insert stores a new spec with its loop and returns its id. An id that is in the document
// is kept if no other spec has it. Stored is called with the id in the same transaction, once
// the spec is there, and again if the database has the transaction made again.
func (s *Service) insert(ctx context.Context, by loop.Actor, spec loopspec.Spec, r CreateRequest, stored func(tx *store.Tx, id string) error) (string, error) {
	given, keep := spec.ID, r.Foreign
	for try := 0; ; try++ {
		random, err := randomBytes()
		if err != nil {
			return "", err
		}
		spec.ID = loopspec.NewID(random)
		switch {
		case keep && try == 0 && loopspec.IsID(given):
			spec.ID = given
		case r.Key != "":
			if spec.ID = idOfKey(r.Key, try); try > 0 {
				break
			}
			if _, before, err := s.find(ctx, spec.ID); err == nil && before.Goal == spec.Goal {
				return spec.ID, nil // The caller of before did not hear of it.
			}
		}
		added := false
		err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
			if now := tx.Now().UnixMilli(); !keep || spec.CreatedAt == 0 {
				spec.CreatedAt, spec.UpdatedAt = now, now
			}
			if added, err = s.add(ctx, tx, by, spec, loop.Loop{}); err != nil || !added {
				return err
			}
			return stored(tx, spec.ID)
		})
		if err != nil || added {
			return spec.ID, err
		}
	}
}

// idOfKey is the id of the spec that is created with a key. If another one has it by chance, a
// further try has another.
func idOfKey(key string, try int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "spec\x00%d\x00%s", try, key))
	return loopspec.NewID([loopspec.IDBytes]byte(sum[:]))
}

// add stores a new spec with its loop, of which l says where an agent made it. It reports false,
// and changes nothing, if its id is taken.
func (s *Service) add(ctx context.Context, tx *store.Tx, by loop.Actor, spec loopspec.Spec, l loop.Loop) (added bool, err error) {
	id := catalog.LoopID(s.ws.ID, loop.ProtocolSpec, spec.ID)
	if taken, err := tx.HasSpec(ctx, spec.ID); taken || err != nil {
		return false, err
	}
	l.ID, l.WorkspaceID, l.Name, l.Protocol = id, s.ws.ID, spec.ID, loop.ProtocolSpec
	if err := tx.AddLoop(ctx, s.ws.Workspace, l); err != nil {
		return false, err
	}
	if l.Parent != "" {
		if err := tx.AdoptLoop(ctx, l); err != nil {
			return false, err
		}
	}
	row := store.Spec{
		ID: spec.ID, WorkspaceID: s.ws.ID, LoopID: id, Goal: spec.Goal, Agent: spec.AgentID, Parent: spec.ParentID, Entry: spec.BoardEntry, Body: string(loopspec.Encode(spec)),
	}
	if added, err = tx.AddSpec(ctx, row, by.Who); err != nil || !added {
		return added, err
	}
	row.Revision = 1
	return true, register(ctx, tx, by, row, definitionOf(spec, nil), verbCreate)
}

// goalAuthor is who wrote the goal of a spec, if it was no person. A goal that stays the same
// in a new revision keeps its author, and so does one that a worker takes over from its parent.
func goalAuthor(ctx context.Context, tx *store.Tx, by loop.Actor, row store.Spec, goal string) (loop.Role, error) {
	from := []string{row.LoopID}
	if row.Parent != "" {
		from = append(from, catalog.LoopID(row.WorkspaceID, loop.ProtocolSpec, row.Parent))
	}
	for _, id := range from {
		l, err := tx.Loop(ctx, id)
		if errors.Is(err, loop.ErrNotFound) || err == nil && l.Registered.Good == "" {
			continue
		}
		if err != nil {
			return "", err
		}
		if before, err := tx.Definition(ctx, l.Registered.Good); err != nil || before.Goal == goal {
			return before.GoalBy, err
		}
	}
	return by.Role.Recorded(), nil
}

// register makes the loop of a spec run and fire by a definition, and records in its chain
// who changed it.
func register(ctx context.Context, tx *store.Tx, by loop.Actor, row store.Spec, d loop.Definition, verb string) error {
	l, err := tx.LockLoop(ctx, row.LoopID)
	if err != nil {
		return err
	}
	d.PawlTools = l.PawlTools
	if d.GoalBy, err = goalAuthor(ctx, tx, by, row, d.Goal); err != nil {
		return err
	}
	if err := tx.SaveDefinition(ctx, row.LoopID, d); err != nil {
		return err
	}
	d = d.WithDefaults()
	if err := tx.AddDefinition(ctx, row.LoopID, d); err != nil {
		return err
	}
	body := map[string]any{"verb": "spec " + verb, "revision": row.Revision, "definition": d.Digest()}
	if err := tx.LinkBy(ctx, by, row.LoopID, loop.LinkDefinition, "", body); err != nil {
		return err
	}
	if err := accept(ctx, tx, by, l, d.Digest(), verb); err != nil {
		return err
	}
	now := tx.Now()
	next := schedule.Firing{Planned: now, Due: now} // One that never ran is due at once.
	if l.LastN > 0 || d.Cadence == "" {
		if next, err = schedule.Next(d, l.Created, later(now, l.Ticked)); err != nil {
			return err
		}
	}
	return tx.SaveRegistration(ctx, row.LoopID, loop.Registration{
		Source: fmt.Sprintf("spec:%d", row.Revision), Good: d.Digest(), Planned: next.Planned, Due: next.Due, Listens: strings.Join(d.On, "\n"),
	})
}

// The verbs that change the definition of a spec.
const (
	verbCreate = "create"
	verbEdit   = "edit"
	verbFlag   = "flag"
)

// accept records the new definition of a spec as accepted. A person accepts what they make or
// change. An agent creates a spec from a template only, in which it chooses no command, scope or
// sandbox; and what it flags is text for reviewers, which accepts nothing that was not accepted
// before.
func accept(ctx context.Context, tx *store.Tx, by loop.Actor, before loop.Loop, digest, verb string) error {
	a := loop.Acceptance{LoopID: before.ID, Digest: digest, How: loop.AcceptedEdit, By: by}
	switch {
	case by.IsPerson():
	case verb == verbCreate:
		a.How = loop.AcceptedTemplate
	case verb == verbFlag:
		if ok, err := tx.IsAccepted(ctx, before.ID, before.Registered.Good); err != nil || !ok {
			return err
		}
	default:
		return nil
	}
	return tx.Accept(ctx, a)
}
