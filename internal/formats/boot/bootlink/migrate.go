package bootlink

import (
	"fmt"
	"slices"
	"strings"
)

// Render writes the AGENT_LINK.md of a new workspace. ParseLink reads it as the same
// link.
func Render(l Link) string {
	var b strings.Builder
	table := func(title, head string, rows ...[2]string) {
		fmt.Fprintf(&b, "\n## %s\n\n| %s | Value |\n|---|---|\n", title, head)
		for _, row := range rows {
			if row[1] != "" {
				fmt.Fprintf(&b, "| %s | `%s` |\n", row[0], row[1])
			}
		}
	}
	b.WriteString("# Agent link\n\nWhere the rules of this workspace are, and where its memory is.\n")
	table("Boot", "Field",
		[2]string{labelRepository, l.Repository}, [2]string{labelReference, l.Reference}, [2]string{labelVersion, l.Version.String()},
		[2]string{labelPath, l.BootPath}, [2]string{labelContract, l.Contract})
	table("Memory", "File", [2]string{labelState, l.State}, [2]string{labelTasks, l.Tasks}, [2]string{labelChangelog, l.Changelog})
	b.WriteString("\n## Directories\n\n| Directory | Holds |\n|---|---|\n")
	for _, dir := range l.Directories {
		fmt.Fprintf(&b, "| `%s` | %s |\n", dir, purposes[dir])
	}
	return b.String()
}

var purposes = map[string]string{
	"agent/": "state and tasks", "inputs/": "what people give", "outputs/": "results", "audits/": "what was done, by session",
	Scratch: "never committed",
}

// MigrateLink returns an AGENT_LINK.md of the older form in the new one, with the rest
// of its text as it is. What the text does not say is taken from the other link; the
// findings are those of the new text.
func MigrateLink(src []byte, other Link) (string, []Finding) {
	text := string(src)
	newline := "\n"
	if strings.Contains(text, "\r\n") {
		newline = "\r\n"
	}
	lines := strings.SplitAfter(text, "\n")
	rows := readTables(src)
	has := map[string]bool{}
	for _, row := range rows {
		has[strings.ToLower(row.Label)] = true
	}
	last := 0 // the line after which rows are added
	cells := 2
	for _, row := range olderRows(rows) {
		last, cells = row.Line, len(row.Cells)
		now := olderLabels[row.Label]
		if now == "" || has[strings.ToLower(now)] {
			continue
		}
		i := row.Line - 1
		lines[i] = strings.Replace(lines[i], row.Label, now, 1)
		has[strings.ToLower(now)] = true
	}
	var added []string
	for _, row := range [][2]string{
		{labelRepository, other.Repository}, {labelReference, other.Reference}, {labelVersion, versionText(other.Version)},
	} {
		if !has[strings.ToLower(row[0])] && row[1] != "" {
			added = append(added, fmt.Sprintf("| %s | `%s` |%s%s", row[0], row[1], strings.Repeat(" |", max(0, cells-2)), newline))
		}
	}
	switch {
	case len(added) == 0:
	case last > 0:
		if !strings.HasSuffix(lines[last-1], "\n") {
			lines[last-1] += newline
		}
		lines = slices.Insert(lines, last, added...)
	default:
		if end := len(lines) - 1; lines[end] != "" {
			lines[end] += newline
		}
		lines = append(lines, newline+"| Field | Value |"+newline+"|---|---|"+newline)
		lines = append(lines, added...)
	}
	text = strings.Join(lines, "")
	_, findings := ParseLink([]byte(text))
	return text, findings
}

func versionText(v Version) string {
	if v == (Version{}) {
		return ""
	}
	return v.String()
}
