package forge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeOpen = fault.New("forge.open.before")
	afterOpen  = fault.New("forge.open.after")
)

// States of a pull request.
const (
	Open   = "OPEN"
	Closed = "CLOSED"
	Merged = "MERGED"
)

// PR is a pull request as the host reports it.
type PR struct {
	Number int
	URL    string
	State  string // Open, Closed or Merged
	Base   string // branch, short name
	Head   string // branch, short name
	Commit string // tip of Head
	Draft  bool
}

// PullRequest says what to open.
type PullRequest struct {
	Repo  Repository
	Base  string // branch, short name
	Head  string // branch of the same repository, short name
	Title string // one line; control characters are dropped
	Body  string // at most MaxBody bytes are sent
	Draft bool

	// Confirm is called right before the pull request is opened. If it returns an
	// error, nothing is opened. May be nil.
	Confirm func(context.Context) error
}

// Limits of the texts that are sent, in bytes.
const (
	MaxTitle = 250
	MaxBody  = 60 << 10
)

// pullAnswer is what gh prints for --json with pullFields.
type pullAnswer struct {
	Number            int    `json:"number"`
	URL               string `json:"url"`
	State             string `json:"state"`
	BaseRefName       string `json:"baseRefName"`
	HeadRefName       string `json:"headRefName"`
	HeadRefOid        string `json:"headRefOid"`
	IsDraft           bool   `json:"isDraft"`
	IsCrossRepository bool   `json:"isCrossRepository"`
}

const pullFields = "number,url,state,baseRefName,headRefName,headRefOid,isDraft,isCrossRepository"

// FindPullRequest returns the pull request of a branch of the repository itself:
// the open one, or else the newest. It reports whether there is one. Branches
// with the same name in forks do not count.
func (g GH) FindPullRequest(ctx context.Context, repo Repository, head string) (PR, bool, error) {
	if err := checkNames(repo, head); err != nil {
		return PR{}, false, err
	}
	var answers []pullAnswer
	err := g.runDecoding(ctx, &answers, "pr", "list", "--repo="+repo.String(), "--head="+head, "--state=all", "--limit=100", "--json="+pullFields)
	if err != nil {
		return PR{}, false, fmt.Errorf("find the pull request of %s: %w", head, err)
	}
	var best PR
	for _, a := range answers {
		pr, ok := a.toPR(repo)
		if !ok || a.IsCrossRepository || pr.Head != head {
			continue
		}
		if best.Number == 0 || pr.isBetterThan(best) {
			best = pr
		}
	}
	return best, best.Number != 0, nil
}

// isBetterThan orders the pull requests of one branch: an open one first, then
// the newest.
func (p PR) isBetterThan(other PR) bool {
	if (p.State == Open) != (other.State == Open) {
		return p.State == Open
	}
	return p.Number > other.Number
}

// toPR returns false if the answer's URL is not one of this repository.
func (a pullAnswer) toPR(repo Repository) (PR, bool) {
	number, ok := pullNumber(repo, a.URL)
	switch a.State {
	case Open, Closed, Merged:
	default:
		ok = false
	}
	return PR{
		Number: a.Number, URL: a.URL, State: a.State, Base: a.BaseRefName, Head: a.HeadRefName, Commit: a.HeadRefOid, Draft: a.IsDraft,
	}, ok && number == a.Number
}

// pullNumber returns the number in the URL of a pull request.
func pullNumber(repo Repository, address string) (int, bool) {
	prefix := "https://" + repo.String() + "/pull/"
	if len(address) <= len(prefix) || !strings.EqualFold(address[:len(prefix)], prefix) {
		return 0, false
	}
	n, err := strconv.Atoi(address[len(prefix):])
	return n, err == nil && n > 0
}

// OpenPullRequest opens a pull request. If the branch has one already, in any
// state, it returns that and does nothing: what a person closed stays closed.
func (g GH) OpenPullRequest(ctx context.Context, p PullRequest) (PR, error) {
	if err := checkNames(p.Repo, p.Base, p.Head); err != nil {
		return PR{}, err
	}
	pr, found, err := g.FindPullRequest(ctx, p.Repo, p.Head)
	if err != nil || found {
		return pr, err
	}
	if err := beforeOpen.Hit(ctx); err != nil {
		return PR{}, fmt.Errorf("open pull request of %s: %w", p.Head, err)
	}
	args := []string{
		"pr", "create", "--repo=" + p.Repo.String(), "--base=" + p.Base, "--head=" + p.Head,
		"--title=" + cleanTitle(p.Title), "--body-file=-",
	}
	if p.Draft {
		args = append(args, "--draft")
	}
	if p.Confirm != nil {
		if err := p.Confirm(ctx); err != nil {
			return PR{}, fmt.Errorf("open pull request of %s: %w", p.Head, err)
		}
	}
	out, err := g.runGH(ctx, strings.NewReader(cleanBody(p.Body)), args...)
	if err != nil {
		return PR{}, fmt.Errorf("open pull request of %s: %w", p.Head, err)
	}
	if err := afterOpen.Hit(ctx); err != nil {
		return PR{}, fmt.Errorf("open pull request of %s: %w", p.Head, err)
	}
	return p.parseOpened(string(out))
}

// parseOpened reads the URL that gh prints last.
func (p PullRequest) parseOpened(out string) (PR, error) {
	words := strings.Fields(out)
	if len(words) > 0 {
		address := words[len(words)-1]
		if n, ok := pullNumber(p.Repo, address); ok {
			return PR{Number: n, URL: address, State: Open, Base: p.Base, Head: p.Head, Draft: p.Draft}, nil
		}
	}
	return PR{}, &loop.Fault{
		Exit: loop.ExitError, What: fmt.Sprintf("gh opened a pull request of %s and did not say which", p.Head),
		Fix: "look at https://" + p.Repo.String() + "/pulls",
	}
}

var branchName = lazyregexp.New(`^[^\s~^:?*\[\\\x00-\x20\x7f-][^\s~^:?*\[\\\x00-\x20\x7f]*$`)

// checkNames refuses names that gh could take for something else, such as
// owner:branch or an option.
func checkNames(repo Repository, branches ...string) error {
	if err := repo.validate(); err != nil {
		return err
	}
	for _, b := range branches {
		if len(b) > 255 || !branchName.MatchString(b) || strings.Contains(b, "..") {
			return fmt.Errorf("%.100q is not a branch name", b)
		}
	}
	return nil
}

func cleanTitle(s string) string {
	s = strings.Join(strings.Fields(withoutControls(s)), " ")
	if s == "" {
		return "(no title)"
	}
	return truncate(s, MaxTitle)
}

func cleanBody(s string) string { return truncate(withoutControls(s), MaxBody) }

// withoutControls drops control characters and those that reverse the reading
// direction.
func withoutControls(s string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// truncate shortens a text to at most limit bytes, between characters.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
}
