package boards

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/people"
)

// ExportQuery says what to export.
type ExportQuery struct {
	Board string `json:"board,omitempty"` // slug or id; empty: all of them
}

// Export returns boards with all that belongs to them. Import of it in another workspace,
// exported there, is the same.
func (s *Service) Export(ctx context.Context, q ExportQuery) (d board.Document, err error) {
	err = s.view(ctx, func(r *store.Reader) error {
		all, err := s.readAll(ctx, r)
		if err != nil || q.Board == "" {
			d = all
			return err
		}
		b, err := s.findBoard(ctx, r, q.Board)
		if err == nil {
			d = all.Only(b.value.ID)
		}
		return err
	})
	if err == nil && s.ws.Store == nil && q.Board != "" {
		err = s.noBoard(q.Board)
	}
	d.Schema = board.DocumentSchema
	d.Sort()
	return d.Filled(), err
}

// readAll reads everything of the workspace's boards.
func (s *Service) readAll(ctx context.Context, r *store.Reader) (d board.Document, err error) {
	read := func(err2 error) {
		if err == nil {
			err = err2
		}
	}
	d.Boards, err = list[board.Board](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetBoards})
	tasks, err2 := list[board.Task](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetTasks})
	read(err2)
	d.Tasks = tasks
	d.Comments, err2 = list[board.Comment](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetComments})
	read(err2)
	d.Activity, err2 = list[board.Activity](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetActivity})
	read(err2)
	d.Subscriptions, err2 = list[board.Subscription](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetSubscriptions})
	read(err2)
	d.Resources, err2 = list[board.Resource](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetResources})
	read(err2)
	d.Errors, err2 = list[board.Error](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetErrors})
	read(err2)
	members, err2 := s.members(ctx, r)
	read(err2)
	minds, err2 := s.minds(ctx, r)
	read(err2)
	for _, m := range members {
		d.Agents = append(d.Agents, board.Agent{Member: m, Mind: minds[m.Handle]})
	}
	entries, err2 := r.Rows(ctx, s.ws.ID, loop.RowQuery{Set: board.SetLog, Limit: everything})
	read(err2)
	logs := map[string][]board.LogEntry{}
	for _, row := range entries {
		e, err2 := board.FromRow[board.LogEntry](row)
		read(err2)
		logs[row.Scope] = append(logs[row.Scope], e)
	}
	for i, t := range d.Tasks {
		d.Tasks[i].ExecutionLog = logs[t.ID][max(0, len(logs[t.ID])-board.MostLog):]
	}
	messages, err2 := r.Messages(ctx, s.ws.ID, store.MessageQuery{OfBoards: true, Limit: everything})
	read(err2)
	for _, m := range messages {
		d.AgentMessages = append(d.AgentMessages, viewMessage(m).Message)
	}
	return d, err
}

// ImportRequest says what to take over.
type ImportRequest struct {
	Path     string `json:"path,omitempty"`     // a file with a document or a TASKS.md, or a folder with agents/*/TASKS.md
	Base     string `json:"base,omitempty"`     // the folder at which a relative path begins
	Document string `json:"document,omitempty"` // the document itself; then Path is how messages call it
	Board    string `json:"board,omitempty"`    // slug or id of the board that steps of TASKS.md are for
}

// Imported is what Import would take over, or has taken over, schema pawl.board-import/v1.
type Imported struct {
	Schema   string          `json:"schema"`
	Path     string          `json:"path"`
	Sets     []ImportedSet   `json:"sets"`
	Problems []board.Problem `json:"problems"`
	Added    int             `json:"added"`
	Written  bool            `json:"written"`
}

// ImportedSet says what an import does with one list.
type ImportedSet struct {
	Name  string `json:"name"`
	Added int    `json:"added"`
	Kept  int    `json:"kept"` // that are here already, and stay as they are
}

// PlanImport says what Import would do, and writes nothing.
func (s *Service) PlanImport(ctx context.Context, r ImportRequest) (v Imported, err error) {
	var d board.Document
	plan := func(rd *store.Reader) error {
		if d, v.Problems, err = s.readImport(ctx, rd, r); err != nil {
			return err
		}
		p, err := s.planImport(ctx, rd, d)
		v.Sets, v.Added = p.sets, p.added
		return err
	}
	v = newImported(r)
	if s.ws.Store == nil {
		err = plan(nil)
	} else {
		err = s.ws.Store.View(ctx, plan)
	}
	if v.Problems == nil {
		v.Problems = []board.Problem{}
	}
	return v, err
}

func newImported(r ImportRequest) Imported {
	return Imported{Schema: "pawl.board-import/v1", Path: cmp.Or(r.Path, "standard input"), Sets: []ImportedSet{}, Problems: []board.Problem{}}
}

// Import takes over what is not here yet, all of it or nothing. What is here stays as it is.
func (s *Service) Import(ctx context.Context, by loop.Actor, r ImportRequest) (v Imported, err error) {
	err = s.update(ctx, func(tx *store.Tx) error {
		v = newImported(r)
		d, problems, err := s.readImport(ctx, &tx.Reader, r)
		if err != nil {
			return err
		}
		v.Problems = append(v.Problems, problems...)
		p, err := s.planImport(ctx, &tx.Reader, d)
		if err != nil {
			return err
		}
		v.Sets, v.Added, v.Written = p.sets, p.added, true
		if p.added == 0 {
			return tx.AnswerCall(ctx, s.claim, v)
		}
		now := board.At(tx.Now())
		for _, row := range p.rows(now) {
			if err := s.write(ctx, tx, row, 0); err != nil {
				return err
			}
		}
		for _, m := range p.messages {
			if m.SentAt = cmp.Or(m.SentAt, now); m.ToAgentID == board.Human {
				m.Acknowledged = true
			}
			if _, err := tx.Send(ctx, s.ws.ID, m.Delivery(), m.Acknowledged); err != nil {
				return err
			}
		}
		if err := s.register(ctx, tx, by, "board import", p.members()...); err != nil {
			return err
		}
		if err := s.link(ctx, tx, by, "board import", v.Path, plain(v.Sets)); err != nil {
			return err
		}
		return tx.AnswerCall(ctx, s.claim, v)
	})
	v.Written = err == nil
	return v, err
}

// refused is the error for a document that cannot be taken over.
func refused(path string, problems []board.Problem) error {
	var words []string
	for _, p := range problems {
		if !p.Note {
			words = append(words, p.String())
		}
	}
	if len(words) == 0 {
		return nil
	}
	const shown = 20
	if n := len(words); n > shown {
		words = append(words[:shown], fmt.Sprintf("and %d more", n-shown))
	}
	return &loop.Fault{Exit: loop.ExitUnreadable, What: path + " is refused", Why: strings.Join(words, "\n"), Fix: "change what is named; nothing was written"}
}

// readImport reads what is to be taken over, as a document that can be stored.
func (s *Service) readImport(ctx context.Context, r *store.Reader, q ImportRequest) (d board.Document, problems []board.Problem, err error) {
	known := board.Known{Boards: map[string]string{}, Agents: map[string]bool{}, Tasks: map[string]bool{}}
	if r != nil {
		if err := s.readKnown(ctx, r, &known); err != nil {
			return d, nil, err
		}
	}
	name := cmp.Or(q.Path, "standard input")
	at := q.Path
	if at != "" && !filepath.IsAbs(at) {
		at = filepath.Join(q.Base, at)
	}
	text := q.Document
	if text == "" {
		info, err := os.Stat(at)
		if err != nil {
			return d, nil, &loop.Fault{Exit: loop.ExitNotFound, What: "import " + name, Why: "there is no such file or folder", Fix: "name a JSON document, a TASKS.md, or a folder that has agents/ in it", Err: loop.ErrNotFound}
		}
		if info.IsDir() {
			return s.readTree(ctx, r, q, at, known)
		}
		if text, err = readFile(at, name); err != nil {
			return d, nil, err
		}
	}
	if strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")), "{") {
		d, problems = board.ReadDocument([]byte(text), known)
	} else {
		id, err := s.targetBoard(ctx, r, q)
		if err != nil {
			return d, nil, err
		}
		listed, wrong := s.ws.Formats.Tasks().Parse(text)
		d.Tasks, problems = board.FromListed(filepath.Base(name), s.agentOfFile(at), id, listed, wrong, known)
	}
	problems = append(problems, s.findSecrets(d)...)
	return d, problems, refused(name, problems)
}

// agentOfFile is the agent whose TASKS.md a file is: the folder that it is in.
func (s *Service) agentOfFile(at string) string {
	if filepath.Base(at) != s.ws.Formats.Tasks().Name {
		return ""
	}
	return filepath.Base(filepath.Dir(at))
}

// mostImported bounds a file that is taken over.
const mostImported = 256 << 20

func readFile(at, name string) (string, error) {
	f, err := projection.ReadFile(at, mostImported)
	switch {
	case err != nil:
		return "", &loop.Fault{Exit: loop.ExitUnreadable, What: name + " cannot be read", Why: err.Error(), Fix: "name a regular file", Err: err}
	case f.TooBig:
		return "", &loop.Fault{Exit: loop.ExitUnreadable, What: name + " is refused", Why: fmt.Sprintf("it has more than %d bytes", mostImported), Fix: "take it over in parts"}
	}
	return f.Content, nil
}

// targetBoard is the id of the board that steps of TASKS.md are for.
func (s *Service) targetBoard(ctx context.Context, r *store.Reader, q ImportRequest) (string, error) {
	if q.Board == "" {
		return "", &loop.Fault{Exit: loop.ExitUsage, What: "the steps of a TASKS.md belong to no board yet", Fix: "write --board with the board that they are for"}
	}
	if r == nil {
		return "", s.noBoard(q.Board)
	}
	b, err := s.findBoard(ctx, r, q.Board)
	return b.value.ID, err
}

// readTree reads the TASKS.md of every agent of a tree.
func (s *Service) readTree(ctx context.Context, r *store.Reader, q ImportRequest, dir string, known board.Known) (d board.Document, problems []board.Problem, err error) {
	id, err := s.targetBoard(ctx, r, q)
	if err != nil {
		return d, nil, err
	}
	file := s.ws.Formats.Tasks()
	entries, err := os.ReadDir(filepath.Join(dir, file.Dir))
	if err != nil {
		return d, nil, &loop.Fault{Exit: loop.ExitNotFound, What: "import " + q.Path, Why: "it has no folder " + file.Dir, Fix: "name the folder that has " + file.Dir + "/ in it", Err: loop.ErrNotFound}
	}
	for _, e := range entries {
		name := path.Join(file.Dir, e.Name(), file.Name)
		at := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := readFile(at, name)
		if err != nil {
			return d, nil, err
		}
		listed, wrong := file.Parse(text)
		tasks, found := board.FromListed(name, e.Name(), id, listed, wrong, known)
		if !known.Agents[e.Name()] {
			found = append(found, board.Problem{Path: name, Message: fmt.Sprintf("@%s is not an agent of the boards; its tasks are nobody's", e.Name()), Note: true})
		}
		d.Tasks, problems = append(d.Tasks, tasks...), append(problems, found...)
	}
	problems = append(problems, s.findSecrets(d)...)
	return d, problems, refused(q.Path, problems)
}

func (s *Service) readKnown(ctx context.Context, r *store.Reader, known *board.Known) error {
	boards, err := list[board.Board](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetBoards})
	if err != nil {
		return err
	}
	for _, b := range boards {
		known.Boards[b.ID], known.Boards[b.Slug] = b.ID, b.ID
	}
	for set, into := range map[string]map[string]bool{board.SetMembers: known.Agents, board.SetTasks: known.Tasks} {
		rows, err := r.Rows(ctx, s.ws.ID, loop.RowQuery{Set: set, Limit: everything})
		if err != nil {
			return err
		}
		for _, row := range rows {
			into[row.Key] = true
		}
	}
	return nil
}

// findSecrets names the texts of a document that have a secret in them.
func (s *Service) findSecrets(d board.Document) (problems []board.Problem) {
	look := func(path, text string) {
		if s.Hide != nil && s.Hide(text) != text {
			problems = append(problems, board.Problem{Path: path, Message: "it has a secret in it"})
		}
	}
	lookInto(reflect.ValueOf(d), "", func(path, text string) { look(strings.TrimPrefix(path, "."), text) })
	return problems
}

// lookInto calls look for each text of a value.
func lookInto(v reflect.Value, path string, look func(path, text string)) {
	kind := v.Kind()
	if kind == reflect.String {
		look(path, v.String())
	}
	if kind == reflect.Slice {
		for i := range v.Len() {
			lookInto(v.Index(i), fmt.Sprintf("%s[%d]", path, i), look)
		}
	}
	if kind == reflect.Struct {
		for f, field := range v.Fields() {
			at := path
			if name := strings.Split(f.Tag.Get("json"), ",")[0]; name != "" {
				at += "." + name
			}
			lookInto(field, at, look)
		}
	}
}

// importPlan is what of a document is not here yet.
type importPlan struct {
	board.Document

	messages []board.Message
	sets     []ImportedSet
	added    int
}

// planImport takes out of a document what is here already.
func (s *Service) planImport(ctx context.Context, r *store.Reader, d board.Document) (p importPlan, err error) {
	here := func(set string) map[string]bool {
		keys := map[string]bool{}
		if r == nil || err != nil {
			return keys
		}
		rows, err2 := r.Rows(ctx, s.ws.ID, loop.RowQuery{Set: set, Limit: everything})
		err = err2
		for _, row := range rows {
			keys[row.Key] = true
		}
		return keys
	}
	p.Boards = missing(&p, "boards", d.Boards, here(board.SetBoards), func(b board.Board) string { return b.ID })
	p.Agents = missing(&p, "agents", d.Agents, here(board.SetMembers), func(a board.Agent) string { return a.Handle })
	p.Tasks = missing(&p, "tasks", d.Tasks, here(board.SetTasks), func(t board.Task) string { return t.ID })
	p.Comments = missing(&p, "comments", d.Comments, here(board.SetComments), func(c board.Comment) string { return c.ID })
	p.Activity = missing(&p, "activity", d.Activity, here(board.SetActivity), func(a board.Activity) string { return a.ID })
	p.Subscriptions = missing(&p, "subscriptions", d.Subscriptions, here(board.SetSubscriptions), func(s board.Subscription) string { return s.ID })
	p.Resources = missing(&p, "resources", d.Resources, here(board.SetResources), func(r board.Resource) string { return r.ID })
	p.Errors = missing(&p, "errors", d.Errors, here(board.SetErrors), func(e board.Error) string { return e.ID })
	sent := map[string]bool{}
	if r != nil && err == nil {
		all, err2 := r.Messages(ctx, s.ws.ID, store.MessageQuery{OfBoards: true, Limit: everything})
		err = err2
		for _, m := range all {
			sent[m.To+"\x00"+m.Key] = true
		}
	}
	p.messages = missing(&p, "agentMessages", d.AgentMessages, sent, func(m board.Message) string { return board.LoopName(m.ToAgentID) + "\x00" + m.ID })
	if err == nil {
		err = s.checkTeam(ctx, r, p)
	}
	return p, err
}

func missing[T any](p *importPlan, name string, all []T, here map[string]bool, key func(T) string) (added []T) {
	for _, v := range all {
		if !here[key(v)] {
			added = append(added, v)
		}
	}
	if len(all) > 0 {
		p.sets = append(p.sets, ImportedSet{Name: name, Added: len(added), Kept: len(all) - len(added)})
	}
	p.added += len(added)
	return added
}

func (p importPlan) members() (all []board.Member) {
	for _, a := range p.Agents {
		all = append(all, a.Member)
	}
	return all
}

// checkTeam is the error for agents whose reports would go around in a circle.
func (s *Service) checkTeam(ctx context.Context, r *store.Reader, p importPlan) error {
	all := p.members()
	if r != nil {
		there, err := s.members(ctx, r)
		if err != nil {
			return err
		}
		all = append(all, there...)
	}
	for _, wrong := range board.Team(all).Check() {
		if wrong.Kind == people.ProblemCycle {
			return refused("the document", []board.Problem{{Path: "agents", Message: wrong.Message}})
		}
	}
	return nil
}

// rows are the new rows of a plan. What has no time was made now.
func (p importPlan) rows(now board.Millis) (all []loop.Row) {
	for _, b := range p.Boards {
		b.CreatedAt = cmp.Or(b.CreatedAt, now)
		all = append(all, b.Row())
	}
	for _, a := range p.Agents {
		a.CreatedAt = cmp.Or(a.CreatedAt, now)
		all = append(all, a.Member.Row())
		if !reflect.ValueOf(a.Mind).IsZero() {
			all = append(all, a.Mind.Row(a.Handle))
		}
	}
	for _, t := range p.Tasks {
		t.CreatedAt = cmp.Or(t.CreatedAt, now)
		all = append(all, t.Row())
		for i, e := range t.ExecutionLog {
			all = append(all, e.Row(fmt.Sprintf("%s.%05d", t.ID, i), t.ID, t.AssigneeID))
		}
	}
	for _, c := range p.Comments {
		c.CreatedAt = cmp.Or(c.CreatedAt, now)
		all = append(all, c.Row())
	}
	for _, a := range p.Activity {
		a.CreatedAt = cmp.Or(a.CreatedAt, now)
		all = append(all, a.Row())
	}
	for _, s := range p.Subscriptions {
		s.MentionedAt = cmp.Or(s.MentionedAt, now)
		all = append(all, s.Row())
	}
	for _, r := range p.Resources {
		r.CreatedAt = cmp.Or(r.CreatedAt, now)
		all = append(all, r.Row())
	}
	for _, e := range p.Errors {
		e.Timestamp = cmp.Or(e.Timestamp, now)
		all = append(all, e.Row())
	}
	return slices.Clip(all)
}
