package git

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/git/program"
)

// MaxMessage is the longest commit message in bytes.
const MaxMessage = 8 << 10

// Commit writes a commit of an existing tree and returns its name. No ref
// points to it. The message is cleaned by CleanMessage.
func (r *Repo) Commit(ctx context.Context, tree string, parents []string, message string, when time.Time) (string, error) {
	args := []string{"commit-tree", tree}
	for _, id := range append([]string{tree}, parents...) {
		if err := r.checkID(id); err != nil {
			return "", fmt.Errorf("commit tree %s: %w", tree, err)
		}
	}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	date := fmt.Sprintf("@%d +0000", unixSeconds(when))
	out := &program.Bounded{Limit: 1 << 10}
	dated := r.git.With("GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	if err := dated.Pipe(ctx, strings.NewReader(CleanMessage(message)), out, args...); err != nil {
		return "", fmt.Errorf("commit tree %s: %w", tree, err)
	}
	id := strings.TrimSpace(out.String())
	return id, r.checkID(id)
}

// unixSeconds is the date of a commit. Git has no dates before 1970.
func unixSeconds(t time.Time) int64 { return max(0, t.Unix()) }

// CleanMessage makes any text a commit message: valid UTF-8, no control
// character but tab and line feed, no character that reverses the reading
// direction, at most MaxMessage bytes, one line feed at the end.
func CleanMessage(s string) string {
	s = strings.ReplaceAll(s[:min(len(s), 4*MaxMessage)], "\r\n", "\n")
	s = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case unicode.IsControl(c), unicode.Is(unicode.Bidi_Control, c):
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.TrimSpace(s)
	if len(s) > MaxMessage-1 {
		cut := MaxMessage - 1 - len("\n…")
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "\n…"
	}
	if s == "" {
		s = "(no message)"
	}
	return s + "\n"
}
