package forge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/lazyregexp"
	"github.com/pawl-run/pawl/internal/loop"
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

// PR is a pull request as the host knows it.
type PR struct {
	Number int
	URL    string
	State  string // Open, Closed or Merged
	Base   string // branch, short name
	Head   string // branch, short name
	Commit string // tip of Head
	Draft  bool
}

// PullRequest says what is to be opened.
type PullRequest struct {
	Repo  Repository
	Base  string // branch, short name
	Head  string // branch of the same repository, short name
	Title string // one line; control characters are dropped
	Body  string // at most MaxBody bytes are sent
	Draft bool

	// Confirm is asked right before the forge is; its error opens nothing. Nil
	// confirms.
	Confirm func(context.Context) error
}

// Longest texts in bytes that are sent.
const (
	MaxTitle = 250
	MaxBody  = 60 << 10
)

// answer is what gh prints for --json with the fields below.
type answer struct {
	Number            int    `json:"number"`
	URL               string `json:"url"`
	State             string `json:"state"`
	BaseRefName       string `json:"baseRefName"`
	HeadRefName       string `json:"headRefName"`
	HeadRefOid        string `json:"headRefOid"`
	IsDraft           bool   `json:"isDraft"`
	IsCrossRepository bool   `json:"isCrossRepository"`
}

const fields = "number,url,state,baseRefName,headRefName,headRefOid,isDraft,isCrossRepository"

// Find returns the pull request of a branch of the repository itself: the open
// one, else the newest. It reports whether there is one. Branches of the same
// name in forks do not count.
func (g GH) Find(ctx context.Context, repo Repository, head string) (PR, bool, error) {
	if err := checkAll(repo, head); err != nil {
		return PR{}, false, err
	}
	var answers []answer
	err := g.ask(ctx, &answers, "pr", "list", "--repo="+repo.String(), "--head="+head, "--state=all", "--limit=100", "--json="+fields)
	if err != nil {
		return PR{}, false, fmt.Errorf("find the pull request of %s: %w", head, err)
	}
	var best PR
	for _, a := range answers {
		pr, ok := a.pr(repo)
		if !ok || a.IsCrossRepository || pr.Head != head {
			continue
		}
		if best.Number == 0 || pr.before(best) {
			best = pr
		}
	}
	return best, best.Number != 0, nil
}

// before orders pull requests of one branch: an open one first, then the newest.
func (p PR) before(other PR) bool {
	if (p.State == Open) != (other.State == Open) {
		return p.State == Open
	}
	return p.Number > other.Number
}

// pr believes an answer only if its address is of this repository.
func (a answer) pr(repo Repository) (PR, bool) {
	number, ok := numberOf(repo, a.URL)
	switch a.State {
	case Open, Closed, Merged:
	default:
		ok = false
	}
	return PR{
		Number: a.Number, URL: a.URL, State: a.State, Base: a.BaseRefName, Head: a.HeadRefName, Commit: a.HeadRefOid, Draft: a.IsDraft,
	}, ok && number == a.Number
}

// numberOf takes the number out of the address of a pull request.
func numberOf(repo Repository, address string) (int, bool) {
	prefix := "https://" + repo.String() + "/pull/"
	if len(address) <= len(prefix) || !strings.EqualFold(address[:len(prefix)], prefix) {
		return 0, false
	}
	n, err := strconv.Atoi(address[len(prefix):])
	return n, err == nil && n > 0
}

// Open opens a pull request. If the branch has one already, in whatever state,
// that is returned and nothing is done: what a person closed stays closed.
func (g GH) Open(ctx context.Context, p PullRequest) (PR, error) {
	if err := checkAll(p.Repo, p.Base, p.Head); err != nil {
		return PR{}, err
	}
	pr, found, err := g.Find(ctx, p.Repo, p.Head)
	if err != nil || found {
		return pr, err
	}
	if err := beforeOpen.Hit(ctx); err != nil {
		return PR{}, fmt.Errorf("open pull request of %s: %w", p.Head, err)
	}
	args := []string{
		"pr", "create", "--repo=" + p.Repo.String(), "--base=" + p.Base, "--head=" + p.Head,
		"--title=" + title(p.Title), "--body-file=-",
	}
	if p.Draft {
		args = append(args, "--draft")
	}
	if p.Confirm != nil {
		if err := p.Confirm(ctx); err != nil {
			return PR{}, fmt.Errorf("open pull request of %s: %w", p.Head, err)
		}
	}
	out, err := g.run(ctx, strings.NewReader(body(p.Body)), args...)
	if err != nil {
		return PR{}, fmt.Errorf("open pull request of %s: %w", p.Head, err)
	}
	if err := afterOpen.Hit(ctx); err != nil {
		return PR{}, fmt.Errorf("open pull request of %s: %w", p.Head, err)
	}
	return p.opened(string(out))
}

// opened reads the address that gh prints last.
func (p PullRequest) opened(out string) (PR, error) {
	words := strings.Fields(out)
	if len(words) > 0 {
		address := words[len(words)-1]
		if n, ok := numberOf(p.Repo, address); ok {
			return PR{Number: n, URL: address, State: Open, Base: p.Base, Head: p.Head, Draft: p.Draft}, nil
		}
	}
	return PR{}, &loop.Fault{
		Exit: loop.ExitError, What: fmt.Sprintf("gh opened a pull request of %s and did not say which", p.Head),
		Fix: "look at https://" + p.Repo.String() + "/pulls",
	}
}

var branchName = lazyregexp.New(`^[^\s~^:?*\[\\\x00-\x20\x7f-][^\s~^:?*\[\\\x00-\x20\x7f]*$`)

// checkAll refuses names that gh could take for something else: owner:branch,
// an option.
func checkAll(repo Repository, branches ...string) error {
	if err := repo.check(); err != nil {
		return err
	}
	for _, b := range branches {
		if len(b) > 255 || !branchName.MatchString(b) || strings.Contains(b, "..") {
			return fmt.Errorf("%.100q is not a branch name", b)
		}
	}
	return nil
}

func title(s string) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if s == "" {
		return "(no title)"
	}
	return cut(s, MaxTitle)
}

func body(s string) string { return cut(clean(s), MaxBody) }

// clean drops control characters and those that reverse the reading direction.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// cut shortens a text to at most limit bytes, at a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
}
