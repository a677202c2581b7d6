package taskfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The errors of ParseUpdates. Their texts are the codes that the files and the log of
// an agent have.
var (
	ErrNoStructuredOutput    = errors.New("no_structured_output")
	ErrEmptyStructuredOutput = errors.New("empty_structured_output")
	ErrNoFileUpdatesFound    = errors.New("no_file_updates_found")
)

// The files of an agent.
const (
	TasksFile     = "TASKS.md"
	ContextFile   = "CONTEXT.md"
	HeartbeatFile = "HEARTBEAT.md"
	InboxFile     = "INBOX.md"
)

// noChanges is the content that leaves a file as it is.
const noChanges = "NO_CHANGES"

// Update is a file as an agent has printed it. TASKS.md and INBOX.md are whole files;
// what is printed for the other two is added at their end.
type Update struct {
	Name    string
	Content string
	Keep    bool // the agent says that nothing changes
}

// UpdateForm returns how an agent prints files, for its prompt. The nonce is a word that
// the files do not have.
func UpdateForm(nonce string) string {
	m := updateMarks(nonce)
	return m.start + "\n" + m.file + " " + TasksFile + "---\nthe whole new file\n" + m.fileEnd + "\n" +
		m.file + " " + HeartbeatFile + "---\n" + noChanges + "\n" + m.fileEnd + "\n" + m.end + "\n"
}

// marks are the lines between which files are printed.
type marks struct{ start, file, fileEnd, end string }

func updateMarks(nonce string) marks {
	if nonce == "" {
		return marks{"===FILES START===", "---FILE_UPDATE:", "---END_FILE_UPDATE---", "===FILES END==="}
	}
	return marks{"===FILES " + nonce + " START===", "---FILE_UPDATE " + nonce + ":", "---END_FILE_UPDATE " + nonce + "---", "===FILES " + nonce + " END==="}
}

// is reports whether a line is a mark. Without a nonce any word may stand where FILES
// does, as in "=== OUTPUT START ===".
func (m marks) is(line, mark, nonce, word string) bool {
	line = strings.TrimSpace(line)
	if line == mark {
		return true
	}
	bare := strings.TrimSpace(strings.Trim(line, "="))
	return nonce == "" && strings.HasPrefix(line, "===") && strings.HasSuffix(line, "===") && (bare == word || strings.HasSuffix(bare, "_"+word) || strings.HasSuffix(bare, " "+word))
}

// ParseUpdates reads the files that an agent has printed between the marks of
// UpdateForm. With an empty nonce it reads the marks without one: these files cannot
// hold such marks themselves.
//
// An error is one of the three above, with what is wrong: then nothing counts. Names
// that are not files of an agent are warnings, as is a file that is printed twice, of
// which the last counts. If the agent has printed several such parts, the last counts:
// the first may be a quotation of its prompt.
func ParseUpdates(text, nonce string) (updates []Update, warnings []string, err error) {
	m := updateMarks(nonce)
	lines := slices.Collect(strings.Lines(text))
	from, to := -1, -1
	for i, line := range lines {
		switch {
		case m.is(line, m.start, nonce, "START"):
			from, to = i+1, -1
		case from >= 0 && m.is(line, m.end, nonce, "END"):
			to = i
		}
	}
	switch {
	case from < 0:
		return nil, nil, fmt.Errorf("%w: no line %q", ErrNoStructuredOutput, m.start)
	case to < 0:
		return nil, nil, fmt.Errorf("%w: %q without %q: the output was cut off", ErrNoStructuredOutput, m.start, m.end)
	case len(textLines(lines[from:to])) == 0:
		return nil, nil, ErrEmptyStructuredOutput
	}
	name, content, open := "", strings.Builder{}, false
	for _, line := range lines[from:to] {
		trimmed := strings.TrimSpace(line)
		rest, begins := strings.CutPrefix(trimmed, m.file)
		switch {
		case open && trimmed == m.fileEnd:
			open = false
			u, warning := newUpdate(name, content.String())
			if warning != "" {
				warnings = append(warnings, warning)
				continue
			}
			if i := slices.IndexFunc(updates, func(x Update) bool { return x.Name == u.Name }); i >= 0 {
				warnings = append(warnings, u.Name+" is printed twice; the last one counts")
				updates = slices.Delete(updates, i, i+1)
			}
			updates = append(updates, u)
		case begins && open:
			return nil, nil, fmt.Errorf("%w: %s has no line %q", ErrNoFileUpdatesFound, name, m.fileEnd)
		case begins:
			name, open = strings.TrimSpace(strings.TrimSuffix(rest, "---")), true
			content.Reset()
		case open:
			content.WriteString(line)
		}
	}
	switch {
	case open:
		return nil, nil, fmt.Errorf("%w: %s has no line %q", ErrNoFileUpdatesFound, name, m.fileEnd)
	case len(updates)+len(warnings) == 0:
		return nil, nil, fmt.Errorf("%w: no line %q", ErrNoFileUpdatesFound, m.file+" NAME---")
	}
	return updates, warnings, nil
}

func newUpdate(name, content string) (u Update, warning string) {
	for _, known := range []string{TasksFile, ContextFile, HeartbeatFile, InboxFile} {
		if !strings.EqualFold(name, known) && !strings.EqualFold(name+".md", known) {
			continue
		}
		return Update{Name: known, Content: content, Keep: strings.TrimSpace(content) == noChanges}, ""
	}
	return u, fmt.Sprintf("%s is not a file of an agent and is left out; there are %s, %s, %s and %s", shown(fold(name)), TasksFile, ContextFile, HeartbeatFile, InboxFile)
}

// LossError means that the file that an agent has printed lacks what was in it.
type LossError struct {
	Name string
	Lost []string // steps or entries
}

func (e *LossError) Error() string {
	return fmt.Sprintf("%s is refused: it loses %s", e.Name, strings.Join(e.Lost, ", "))
}

// AcceptTasks returns an error for a whole TASKS.md that cannot be read, that lacks a
// step of before, or in which a number is there twice that was not.
func AcceptTasks(before, after string) error {
	if err := Check(after); err != nil {
		return err
	}
	b, _ := ParseTasks(before)
	a, _ := ParseTasks(after)
	inBefore, inAfter := b.places(), a.places()
	var lost []string
	for i := range b.steps {
		key := b.steps[i].Key
		switch at, found := inAfter[key]; {
		case key == "":
		case !found && !slices.Contains(lost, key):
			lost = append(lost, key)
		case found && at == severalSteps && inBefore[key] != severalSteps:
			return fmt.Errorf("%s is refused: %s is in it twice", TasksFile, key)
		}
	}
	if len(lost) > 0 {
		return &LossError{TasksFile, lost}
	}
	return nil
}

// AcceptInbox returns an error for a whole INBOX.md that cannot be read, that lacks an
// entry of before, or that puts a processed one back.
func AcceptInbox(before, after string) error {
	if err := Check(after); err != nil {
		return err
	}
	b, _ := ParseInbox(before)
	a, _ := ParseInbox(after)
	section := make(map[string]inboxSection, len(a.entries))
	for _, e := range a.entries {
		section[e.ID] = e.section
	}
	var lost []string
	for _, e := range b.entries {
		if there := section[e.ID]; there == noSection || there == pendingSection && e.section == processedSection {
			lost = append(lost, fmt.Sprintf("the entry from %s in line %d", shown(e.From), e.Line))
		}
	}
	if len(lost) > 0 {
		return &LossError{InboxFile, lost}
	}
	return nil
}
