package board

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// madeID is the id of something that has none: the same each time.
func madeID(prefix string, of ...any) string {
	text, err := json.Marshal(of)
	if err != nil {
		panic("board: an id is made of what does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return prefix + "_" + hex.EncodeToString(sum[:10])
}

func (r *reader) fixBoard(_ string, b *Board) {
	b.Slug = cmp.Or(b.Slug, SlugOf(b.Name))
	as := b.ID
	if there := r.boards[b.Slug]; there != "" {
		b.ID = there // The workspace has it already.
	}
	b.ID = cmp.Or(b.ID, madeID(PrefixBoard, b.Slug))
	for _, name := range []string{as, b.Slug, b.ID} {
		if name != "" {
			r.boards[name] = b.ID
		}
	}
}

// boardOf resolves what a record calls a board.
func (r *reader) boardOf(path string, ref *string) {
	if *ref == "" {
		return
	}
	if id := r.boards[*ref]; id != "" {
		*ref = id
		return
	}
	r.report(path, "there is no board %q", *ref)
}

// agentOf resolves what a record calls an agent.
func (r *reader) agentOf(path string, ref *string) {
	if *ref == "" {
		return
	}
	for _, name := range []string{*ref, strings.ToLower(strings.TrimPrefix(*ref, "@"))} {
		if handle := r.agents[name]; handle != "" {
			*ref = handle
			return
		}
	}
	r.report(path, "there is no agent %q", *ref)
}

// taskOf resolves what a record calls a task.
func (r *reader) taskOf(path string, ref *string) {
	if *ref == "" {
		return
	}
	if id := r.tasks[*ref]; id != "" {
		*ref = id
		return
	}
	r.report(path, "there is no task %q", *ref)
}

// readAgents reads the agents. They may report to each other, so all handles are read first.
func readAgents(r *reader, lists map[string]json.RawMessage) []Agent {
	recs := r.records(lists, "agents", "createdAt")
	seen := map[string]int{}
	for i, rec := range recs {
		handle := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(cmp.Or(rec.text("handle"), SlugOf(rec.text("name")))), "@"))
		if first, twice := seen[handle]; twice && handle != "" {
			r.report(fmt.Sprintf("agents[%d].handle", i), "agents[%d] has the handle @%s, too", first, handle)
		} else {
			seen[handle] = i
		}
		rec["handle"], _ = json.Marshal(handle) // A string marshals.
		for _, name := range []string{handle, rec.text("id")} {
			if name != "" {
				r.agents[name] = handle
			}
		}
	}
	all := []Agent{}
	for i, rec := range recs {
		path := fmt.Sprintf("agents[%d]", i)
		a, ok := decode[Agent](r, path, rec)
		if !ok {
			continue
		}
		a.Name = cmp.Or(a.Name, a.Handle)
		a.Layer = cmp.Or(a.Layer, Specialist)
		a.Role = cmp.Or(a.Role, string(a.Layer))
		a.Skills = filled(a.Skills)
		for j := range a.BoardIDs {
			r.boardOf(fmt.Sprintf("%s.boardIds[%d]", path, j), &a.BoardIDs[j])
		}
		r.boardOf(path+".leadBoardId", &a.LeadBoardID)
		if a.LeadBoardID != "" && !a.On(a.LeadBoardID) {
			a.BoardIDs = append(a.BoardIDs, a.LeadBoardID)
		}
		r.agentOf(path+".lead", &a.Lead)
		if a.Status != "" {
			var c checker
			oneOf(&c, "status", a.Status, Presences())
			for _, wrong := range c {
				r.report(path+"."+wrong.Field, "%s", wrong.Problem)
			}
		}
		a.WorkingMemory.Reflections = a.WorkingMemory.Reflections[max(0, len(a.WorkingMemory.Reflections)-MostRemembered):]
		a.WorkingMemory.RecentTasks = a.WorkingMemory.RecentTasks[max(0, len(a.WorkingMemory.RecentTasks)-MostRemembered):]
		r.check(path, a.Member)
		all = append(all, a)
	}
	return all
}

// readTasks reads the tasks. They may wait for each other, so all ids are read first.
func readTasks(r *reader, lists map[string]json.RawMessage) []Task {
	recs := r.records(lists, "tasks", "createdAt")
	titles := map[string]int{}
	for _, rec := range recs {
		of := cmp.Or(r.boards[rec.text("boardId")], rec.text("boardId"))
		same := of + "\x00" + rec.text("title")
		if titles[same]++; rec.text("id") == "" {
			rec["id"], _ = json.Marshal(madeID(PrefixTask, of, rec.text("title"), titles[same])) // A string marshals.
		}
		r.tasks[rec.text("id")] = rec.text("id")
	}
	counts := map[string]int{}
	all := []Task{}
	for i, rec := range recs {
		path := fmt.Sprintf("tasks[%d]", i)
		t, ok := decode[Task](r, path, rec)
		if !ok {
			continue
		}
		r.boardOf(path+".boardId", &t.BoardID)
		if _, has := rec["order"]; !has {
			t.Order = counts[t.BoardID]
		}
		counts[t.BoardID]++
		t.Status, t.Priority = cmp.Or(t.Status, Backlog), cmp.Or(t.Priority, Medium)
		r.agentOf(path+".assigneeId", &t.AssigneeID)
		if by := t.CreatedBy; by != "" && r.agents[by] == "" && r.agents[strings.ToLower(strings.TrimPrefix(by, "@"))] == "" {
			r.note(path+".createdBy", "no agent is called %q; it counts as a person", by)
			t.CreatedBy = Human
		}
		r.agentOf(path+".createdBy", &t.CreatedBy)
		t.CreatedBy = cmp.Or(t.CreatedBy, Human)
		r.taskOf(path+".parentTaskId", &t.ParentTaskID)
		if n := len(t.ExecutionLog); n > MostLog {
			r.note(path+".executionLog", "it has %d entries; the newest %d are kept", n, MostLog)
			t.ExecutionLog = t.ExecutionLog[n-MostLog:]
		}
		r.check(path, t)
		all = append(all, t)
	}
	r.checkUnique("tasks", all)
	r.checkCircles(all)
	return all
}

// checkCircles reports tasks that would have to be done before themselves.
func (r *reader) checkCircles(all []Task) {
	parents := map[string]string{}
	for _, t := range all {
		parents[t.ID] = t.ParentTaskID
	}
	for i, t := range all {
		at := t.ParentTaskID
		for range all {
			if at == "" || at == t.ID {
				break
			}
			at = parents[at]
		}
		if at == t.ID && t.ParentTaskID != t.ID {
			r.report(fmt.Sprintf("tasks[%d].parentTaskId", i), "the task would have to be done before itself")
		}
	}
}

func (r *reader) fixComment(path string, m *Comment) {
	r.taskOf(path+".taskId", &m.TaskID)
	if m.AuthorType == "" {
		m.AuthorType = ByHuman
		if r.agents[m.AuthorID] != "" && m.AuthorID != Human {
			m.AuthorType = ByAgent
		}
	}
	if m.AuthorType == ByAgent {
		r.agentOf(path+".authorId", &m.AuthorID)
	}
	m.AuthorID = cmp.Or(m.AuthorID, Human)
	for i := range m.Mentions {
		r.agentOf(fmt.Sprintf("%s.mentions[%d]", path, i), &m.Mentions[i])
	}
	m.ID = cmp.Or(m.ID, madeID(PrefixComment, m.TaskID, m.AuthorID, m.Content, m.CreatedAt))
}

func (r *reader) fixActivity(path string, a *Activity) {
	r.boardOf(path+".boardId", &a.BoardID)
	if a.ActorType == ByAgent {
		r.agentOf(path+".actorId", &a.ActorID)
	}
	a.ID = cmp.Or(a.ID, madeID(PrefixActivity, a.BoardID, a.ActorID, a.ActionType, a.Message, a.CreatedAt))
}

func (r *reader) fixSubscription(path string, s *Subscription) {
	r.agentOf(path+".agentId", &s.AgentID)
	r.taskOf(path+".taskId", &s.TaskID)
	s.ID = cmp.Or(s.ID, madeID(PrefixSubscription, s.AgentID, s.TaskID, s.CommentID, s.MentionedAt))
}

func (r *reader) fixMessage(path string, m *Message) {
	r.agentOf(path+".fromAgentId", &m.FromAgentID)
	r.agentOf(path+".toAgentId", &m.ToAgentID)
	r.taskOf(path+".taskId", &m.TaskID)
	m.ID = cmp.Or(m.ID, madeID("ms", m.FromAgentID, m.ToAgentID, m.MessageType, m.Content, m.TaskID, m.SentAt))
	if m.ToAgentID == Human {
		m.Acknowledged = true // A person has read it, as far as one can know.
	}
}

func (r *reader) fixResource(path string, s *Resource) {
	r.boardOf(path+".boardId", &s.BoardID)
	s.Category = cmp.Or(s.Category, General)
	s.ID = cmp.Or(s.ID, madeID(PrefixResource, s.BoardID, s.Title, s.Category))
}

func (r *reader) fixError(path string, e *Error) {
	r.agentOf(path+".agentId", &e.AgentID)
	e.ID = cmp.Or(e.ID, madeID(PrefixError, e.AgentID, e.Phase, e.Message, e.Timestamp))
}
