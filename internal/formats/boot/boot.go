// Package boot keeps a loop's memory in files of a branch, STATE.json, TODO.json and
// CHANGELOG.md, by the rules of a boot repository that AGENT_LINK.md names.
//
// Each run is one session: it repairs the memory, works on one task of it at a time, and
// leaves one commit with the memory and the work, whatever its outcome. A clone goes on from
// there: everything that the next session needs is in the branch.
package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Protocol opens the memory of workspaces that follow the boot protocol.
type Protocol struct{ Contracts bootrepo.Cache }

// Remote is the remote that the branch of the memory is pushed to.
const Remote = "origin"

// mostHistory bounds the earlier versions of a broken file that are tried.
const mostHistory = 200

// Open implements engine.Protocol: steps 1 to 4 of the boot protocol.
func (p Protocol) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s := &session{v: v, texts: map[string]string{}, present: map[string]bool{}}
	base, checkedOut, err := v.History.Base(ctx)
	if err != nil {
		return nil, err
	}
	s.branch, s.elsewhere = base.Branch, !checkedOut
	if s.branch == "" {
		return nil, &engine.OpenError{Outcome: loop.OutcomeFailed, Reason: loop.ReasonMemory, Detail: "HEAD names no branch, and the memory is on one; check a branch out"}
	}
	if err := s.readLink(ctx); err != nil {
		return nil, err
	}
	if s.contract, err = p.Contracts.Load(ctx, s.link, v.Root); err != nil {
		return nil, openError(err)
	}
	for _, w := range s.contract.Warnings {
		s.notes = append(s.notes, w.Reason.Explain(w.Detail))
	}
	if s.contract.Offline != "" {
		s.notes = append(s.notes, "the boot repository cannot be reached; what it said at "+s.contract.Fetched.UTC().Format(time.RFC3339)+" holds: "+s.contract.Offline)
	}
	if err := s.readMemory(ctx); err != nil {
		return nil, err
	}
	s.closeLost()
	if err := s.findKept(ctx); err != nil {
		return nil, err
	}
	if err := s.readLastCommit(ctx, base.Commit); err != nil {
		return nil, err
	}
	if err := s.followBoot(ctx, p.Contracts); err != nil {
		return nil, err
	}
	if err := s.compareRemote(ctx); err != nil {
		return nil, err
	}
	if err := s.readAudit(ctx); err != nil {
		return nil, err
	}
	return s, s.findUncommitted(ctx)
}

// openError says how a run ends whose boot repository cannot be used.
func openError(err error) error {
	refused, ok := errors.AsType[*bootrepo.Error](err)
	if !ok {
		return err
	}
	lines := []string{refused.Fault.Error()}
	if advice := refused.Fault.Advice().String(); advice != "" {
		lines[0] += "; " + advice
	}
	for _, f := range refused.Findings {
		lines = append(lines, f.String())
	}
	return &engine.OpenError{Outcome: loop.OutcomeFailed, Reason: refused.Reason, Detail: strings.Join(lines, "\n")}
}

// readLink reads AGENT_LINK.md.
func (s *session) readLink(ctx context.Context) error {
	file, err := s.readFile(ctx, bootdef.LinkFile)
	if err != nil {
		return err
	}
	if !file.Exists {
		return &engine.OpenError{Outcome: loop.OutcomeFailed, Reason: loop.ReasonLinkMissing, Detail: "there is no " + bootdef.LinkFile + " at the top of the workspace"}
	}
	if file.Problem != "" {
		return &engine.OpenError{Outcome: loop.OutcomeFailed, Reason: loop.ReasonLinkMalformed, Detail: bootdef.LinkFile + ": " + file.Problem}
	}
	var findings []bootlink.Finding
	if s.link, findings = bootlink.ParseLink(file.Content); len(findings) > 0 {
		lines := make([]string, len(findings))
		for i, f := range findings {
			lines[i] = bootdef.LinkFile + ":" + f.String()
		}
		return &engine.OpenError{Outcome: loop.OutcomeFailed, Reason: findings[0].Reason, Detail: strings.Join(lines, "\n")}
	}
	return nil
}

// readFile reads a file of the branch: of the checkout if it has the branch.
func (s *session) readFile(ctx context.Context, name string) (file bootstate.File, err error) {
	file.Path = name
	if s.elsewhere {
		file.Content, err = s.v.History.Show(ctx, "", name)
		if errors.Is(err, loop.ErrNotFound) {
			return file, nil
		}
		file.Exists = err == nil
		return file, err
	}
	found, err := s.v.Files.Read(name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		file.Exists, file.Problem = true, err.Error()
		return file, nil
	case err != nil:
		return file, err
	case found.TooBig:
		file.Exists, file.Problem = true, "it is larger than pawl reads"
		return file, nil
	}
	file.Exists, file.Content = found.Exists, []byte(found.Content)
	return file, nil
}

// readMemory reads and validates the memory, and repairs what can be repaired.
func (s *session) readMemory(ctx context.Context) (err error) {
	found := bootstate.Found{Project: path.Base(s.v.Root), Now: s.v.Now}
	for name, to := range map[string]*bootstate.File{s.link.State: &found.State, s.link.Tasks: &found.Tasks, s.link.Changelog: &found.Changelog} {
		if *to, err = s.readFile(ctx, name); err != nil {
			return err
		}
		s.texts[name], s.present[name] = string(to.Content), to.Exists
	}
	var failed error
	found.StateHistory, found.TasksHistory = s.versions(ctx, s.link.State, &failed), s.versions(ctx, s.link.Tasks, &failed)
	found.StateStashes = s.stashed(ctx, s.link.State, &failed)
	memory, repairs, stop := s.contract.Schemas.Recover(found)
	if failed != nil {
		return failed
	}
	if stop != nil {
		lines := []string{stop.String()}
		for _, f := range stop.Findings {
			lines = append(lines, stop.Path+":"+f.String())
		}
		return &engine.OpenError{Outcome: loop.OutcomeFailed, Reason: stop.Reason, Detail: strings.Join(lines, "\n")}
	}
	s.found, s.memory, s.repairs = memory, memory, repairs
	return nil
}

// versions are what a file held in the commits of the branch, newest first.
func (s *session) versions(ctx context.Context, name string, failed *error) iter.Seq[bootstate.Version] {
	return func(yield func(bootstate.Version) bool) {
		list, err := s.v.History.Commits(ctx, name, mostHistory)
		if err != nil {
			*failed = err
			return
		}
		for _, c := range list {
			if !s.yieldVersion(ctx, c.ID, name, yield, failed) {
				return
			}
		}
	}
}

// stashed are what a file held in the stashes of the checkout, newest first.
func (s *session) stashed(ctx context.Context, name string, failed *error) iter.Seq[bootstate.Version] {
	return func(yield func(bootstate.Version) bool) {
		ids, err := s.v.History.Stashes(ctx, mostHistory)
		if err != nil {
			*failed = err
			return
		}
		for _, id := range ids {
			if !s.yieldVersion(ctx, id, name, yield, failed) {
				return
			}
		}
	}
}

func (s *session) yieldVersion(ctx context.Context, commit, name string, yield func(bootstate.Version) bool, failed *error) bool {
	text, err := s.v.History.Show(ctx, commit, name)
	if err != nil && !errors.Is(err, loop.ErrNotFound) {
		*failed = err
		return false
	}
	return yield(bootstate.Version{Name: commit[:min(7, len(commit))], Content: text})
}

// readLastCommit makes the state name the commit of the last session: a clone has a file
// that could not know its own.
func (s *session) readLastCommit(ctx context.Context, tip string) error {
	if s.memory.State.LastCommit() == tip {
		return nil
	}
	list, err := s.v.History.Commits(ctx, s.link.State, 1)
	if err != nil || len(list) == 0 {
		return err
	}
	if _, ours := bootstate.ReadMessage(list[0].Message); ours {
		s.memory.State = s.memory.State.Clone()
		s.memory.State.SetLastCommit(list[0].ID)
	}
	return nil
}

// findUncommitted finds out whether the memory in the checkout differs from that of the branch,
// for example because a session died. The difference is committed, whatever the outcome of
// this run.
func (s *session) findUncommitted(ctx context.Context) error {
	s.keeps = len(s.repairs) > 0
	if s.elsewhere || s.keeps || s.changed && !s.behind && !s.owed {
		return nil
	}
	files := map[string]string{}
	for _, name := range []string{s.link.State, s.link.Tasks, s.link.Changelog} {
		files[name] = s.texts[name]
	}
	differ, err := s.v.History.Differs(ctx, files)
	if err != nil {
		return err
	}
	for _, name := range differ {
		if name == s.link.State {
			text, err := s.v.History.Show(ctx, "", name)
			if err != nil && !errors.Is(err, loop.ErrNotFound) {
				return err
			}
			if committed, wrong := s.contract.Schemas.ReadState(text); len(wrong) == 0 && committed.EqualButCommit(s.found.State) {
				continue
			}
		}
		s.changed, s.keeps = true, true
	}
	return nil
}

// bootMetadata is the name under which the state records the boot repository's commit, and
// fieldCommit the field that has it.
const bootMetadata, fieldCommit = "boot", "commit"

// followBoot records the commit of the boot repository. If it has moved since the last
// session, and its rules or stop lines differ, a person is asked first.
func (s *session) followBoot(ctx context.Context, contracts bootrepo.Cache) error {
	known := ""
	if seen := s.memory.State.Metadata(bootMetadata); seen != nil {
		known = seen.GetText(fieldCommit)
	}
	now := s.contract.Commit
	if known == now {
		return nil
	}
	if known != "" {
		key := "boot/" + known[:min(12, len(known))] + "-" + now[:min(12, len(now))]
		change, err := contracts.Diff(ctx, s.link, s.v.Root, known, now)
		text, needsYes := change.Text, change.NeedsYes()
		if refused, away := errors.AsType[*bootrepo.Error](err); away {
			text, needsYes, err = "what changed cannot be shown: "+refused.Error(), true, nil
		}
		if err != nil {
			return err
		}
		_, agreed := s.v.Answers[key]
		if needsYes && !agreed {
			s.question = &engine.Question{Key: key, Reason: loop.ReasonBootMoved, Text: fmt.Sprintf(
				"%s has moved from %s to %s. Are its rules and stop lines followed from now on?\n%s", s.contract.Repository, known, now, text)}
			return nil
		}
		s.say("boot repository moved from %s to %s", known[:min(7, len(known))], now[:min(7, len(now))])
		s.notes = append(s.notes, fmt.Sprintf("the boot repository has moved from %s to %s\n%s", known, now, text))
		s.changed = true
	}
	s.memory.State = s.memory.State.Clone()
	s.memory.State.SetMetadata(bootMetadata, jsontree.NewObject(jsontree.Member{Name: fieldCommit, Value: jsontree.NewText(now)}))
	return nil
}

// compareRemote finds out whether the remote has sessions of another workspace, and lacks
// such of this one. A remote that cannot be asked is in nobody's way.
func (s *session) compareRemote(ctx context.Context) (err error) {
	if s.v.Ending {
		return nil
	}
	if s.behind, err = s.v.History.Behind(ctx, Remote); err != nil {
		if ctx.Err() != nil {
			return err
		}
		s.notes = append(s.notes, Remote+" cannot be asked; the run continues with what is here: "+readiness.FirstLine(err.Error()))
	}
	list, err := s.v.History.Unpushed(ctx, Remote, mostHistory)
	s.owed = slices.ContainsFunc(list, func(c git.Commit) bool { _, ours := bootstate.ReadMessage(c.Message); return ours })
	return err
}

// contractArg is what a memory is valid by, as an effect keeps it.
type contractArg struct {
	Root string
	Link bootlink.Link
}

// MergeMemory unites the memories of two commits, as an effect.MemoryMerge.
func (p Protocol) MergeMemory(ctx context.Context, contract string, base, ours, theirs map[string]string) (map[string]string, error) {
	var by contractArg
	if err := json.Unmarshal([]byte(contract), &by); err != nil {
		return nil, fmt.Errorf("read the contract of a memory: %w", err)
	}
	c, err := p.Contracts.Load(ctx, by.Link, by.Root)
	if err != nil {
		return nil, err
	}
	merged := map[string]string{}
	for _, name := range slices.Concat(keysOf(ours), keysOf(theirs)) {
		merged[name] = uniteLines(ours[name], theirs[name])
	}
	first, err := readSide(c.Schemas, by.Link, ours)
	if err != nil {
		return nil, fmt.Errorf("the memory here is invalid: %w", err)
	}
	second, err := readSide(c.Schemas, by.Link, theirs)
	if err != nil {
		return nil, fmt.Errorf("the memory at the other side is invalid: %w", err)
	}
	switch {
	case second.State.IsZero():
		second.State = first.State
	case first.State.IsZero():
		first.State = second.State
	}
	switch {
	case second.Tasks.IsZero():
		second.Tasks = first.Tasks
	case first.Tasks.IsZero():
		first.Tasks = second.Tasks
	}
	began, err := readSide(c.Schemas, by.Link, base)
	if err != nil {
		began = bootstate.Memory{} // Of two valid memories the newer one holds.
	}
	m, wrong := c.Schemas.MergeFrom(began, first, second)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s: %s", loop.ReasonMergeInvalid.Sentence(), wrong[0])
	}
	merged[by.Link.State], merged[by.Link.Tasks], merged[by.Link.Changelog] = string(m.State.Encode()), string(m.Tasks.Encode()), m.Changelog
	return merged, nil
}

// readSide reads the memory of one commit. A file that is missing is the zero value.
func readSide(schemas bootstate.Schemas, link bootlink.Link, files map[string]string) (m bootstate.Memory, err error) {
	var wrong []bootstate.Finding
	if text, there := files[link.State]; there {
		if m.State, wrong = schemas.ReadState([]byte(text)); len(wrong) > 0 {
			return m, fmt.Errorf("%s:%s", link.State, wrong[0])
		}
	}
	if text, there := files[link.Tasks]; there {
		if m.Tasks, wrong = schemas.ReadTodo([]byte(text)); len(wrong) > 0 {
			return m, fmt.Errorf("%s:%s", link.Tasks, wrong[0])
		}
	}
	m.Changelog = files[link.Changelog]
	return m, nil
}

func keysOf(files map[string]string) []string {
	keys := make([]string, 0, len(files))
	for name := range files {
		keys = append(keys, name)
	}
	return keys
}

// uniteLines is the first text with the lines that only the second one has.
func uniteLines(first, second string) string {
	has := map[string]bool{}
	for line := range strings.Lines(first) {
		has[strings.TrimRight(line, "\n")] = true
	}
	for line := range strings.Lines(second) {
		if line = strings.TrimRight(line, "\n"); !has[line] {
			if first != "" && !strings.HasSuffix(first, "\n") {
				first += "\n"
			}
			first += line + "\n"
		}
	}
	return first
}
