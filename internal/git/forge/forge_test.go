//go:build unix

package forge

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var repo = Repository{Host: "github.com", Owner: "pawl-run", Name: "pawl"}

// fakeGH is a program named gh that records its arguments, environment and
// input, and answers with files.
type fakeGH struct {
	GH
	dir string
}

func newFakeGH(t *testing.T, answers map[string]string) fakeGH {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
cd "$FAKE_GH" || exit 9
printf '%s\0' "$@" >>args; printf '\n' >>args
env >environ
name="$1-$2"
[ "$1 $2" = "pr create" ] && cat >body
[ -e "$name.err" ] && cat "$name.err" >&2
[ -e "$name.hang" ] && exec sleep 60
[ -e "$name" ] && cat "$name"
exit "$(cat "$name.exit" 2>/dev/null || echo 0)"
`
	if err := os.WriteFile(filepath.Join(dir, "gh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range answers {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + dir + ":/usr/bin:/bin", "FAKE_GH=" + dir, "GH_REPO=evil/evil", "GH_DEBUG=api", "GIT_DIR=/x", "GH_TOKEN=secret"}
	return fakeGH{GH{Exec: proc.Plain{}, Environ: env}, dir}
}

// calls lists the arguments of every call.
func (s fakeGH) calls(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "args"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var calls [][]string
	for call := range strings.SplitSeq(string(text), "\x00\n") {
		if call != "" {
			calls = append(calls, strings.Split(call, "\x00"))
		}
	}
	return calls
}

func (s fakeGH) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func wantFault(t *testing.T, err error, exit int, fix string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != exit || !strings.Contains(f.Advice().String(), fix) {
		t.Fatalf("error = %#v, want a fault with exit %d and a fix that says %q", err, exit, fix)
	}
}

func pull(number, state, head, cross string) string {
	return `{"number":` + number + `,"url":"https://github.com/Pawl-Run/pawl/pull/` + number + `","state":"` + state +
		`","baseRefName":"main","headRefName":"` + head + `","headRefOid":"abc","isDraft":true,"isCrossRepository":` + cross + `}`
}

func TestFindBelievesOnlyPullRequestsOfTheBranchItself(t *testing.T) {
	cases := map[string]struct {
		answer string
		want   int
	}{
		"there is none":                            {`[]`, 0},
		"an open one":                              {"[" + pull("7", "OPEN", "pawl/x", "false") + "]", 7},
		"an open one before a newer closed one":    {"[" + pull("9", "CLOSED", "pawl/x", "false") + "," + pull("7", "OPEN", "pawl/x", "false") + "]", 7},
		"the newest of those that are not open":    {"[" + pull("3", "MERGED", "pawl/x", "false") + "," + pull("4", "CLOSED", "pawl/x", "false") + "]", 4},
		"one of a fork has the same branch name":   {"[" + pull("7", "OPEN", "pawl/x", "true") + "]", 0},
		"another branch":                           {"[" + pull("7", "OPEN", "pawl/xy", "false") + "]", 0},
		"a state that nobody knows":                {"[" + pull("7", "ODD", "pawl/x", "false") + "]", 0},
		"an address of another repository":         {strings.ReplaceAll("["+pull("7", "OPEN", "pawl/x", "false")+"]", "/pull/", "/../pull/"), 0},
		"an address whose number is another":       {strings.ReplaceAll("["+pull("7", "OPEN", "pawl/x", "false")+"]", "pull/7", "pull/8"), 0},
		"an address with more behind its number":   {strings.ReplaceAll("["+pull("7", "OPEN", "pawl/x", "false")+"]", "pull/7", "pull/7/x"), 0},
		"an address that is not https: javascript": {strings.ReplaceAll("["+pull("7", "OPEN", "pawl/x", "false")+"]", "https", "javascript"), 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			gh := newFakeGH(t, map[string]string{"pr-list": c.answer})
			pr, ok, err := gh.FindPullRequest(t.Context(), repo, "pawl/x")
			if err != nil || pr.Number != c.want || ok != (c.want != 0) {
				t.Errorf("Find = %+v, %v, %v, want number %d", pr, ok, err, c.want)
			}
		})
	}
}

func TestAnswersThatAreNotExactlyJSONAreFaults(t *testing.T) {
	for _, answer := range []string{"", "{", `{"number":1}`, `[] []`, `[{"number":"1"}]`, "<html>"} {
		gh := newFakeGH(t, map[string]string{"pr-list": answer})
		_, _, err := gh.FindPullRequest(t.Context(), repo, "pawl/x")
		wantFault(t, err, loop.ExitError, "gh --version")
	}
}

func TestOpenLooksFirstAndSendsTheTextAsItIs(t *testing.T) {
	gh := newFakeGH(t, map[string]string{"pr-list": "[]", "pr-create": "Creating…\nhttps://github.com/pawl-run/pawl/pull/12\n"})
	pr, err := gh.OpenPullRequest(t.Context(), PullRequest{
		Repo: repo, Base: "main", Head: "pawl/ci/1", Draft: true,
		Title: "--web $(touch x)\n\x1b[2J`id`", Body: "--body\n$HOME \u202e\x00end\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := PR{Number: 12, URL: "https://github.com/pawl-run/pawl/pull/12", State: Open, Base: "main", Head: "pawl/ci/1", Draft: true}
	if d := cmp.Diff(want, pr); d != "" {
		t.Error(d)
	}
	wantCalls := [][]string{
		{"pr", "list", "--repo=github.com/pawl-run/pawl", "--head=pawl/ci/1", "--state=all", "--limit=100", "--json=" + pullFields},
		{"pr", "create", "--repo=github.com/pawl-run/pawl", "--base=main", "--head=pawl/ci/1", "--title=--web $(touch x) [2J`id`", "--body-file=-", "--draft"},
	}
	if d := cmp.Diff(wantCalls, gh.calls(t)); d != "" {
		t.Error(d)
	}
	if got, want := gh.file(t, "body"), "--body\n$HOME end\n"; got != want {
		t.Errorf("body = %q, want %q", got, want)
	}
	env := strings.Split(gh.file(t, "environ"), "\n")
	for _, unwanted := range []string{"GH_REPO=evil/evil", "GH_DEBUG=api", "GIT_DIR=/x"} {
		if slices.Contains(env, unwanted) {
			t.Errorf("gh saw %s", unwanted)
		}
	}
	for _, wanted := range []string{"GH_TOKEN=secret", "GH_PROMPT_DISABLED=1"} {
		if !slices.Contains(env, wanted) {
			t.Errorf("gh did not see %s", wanted)
		}
	}
}

func TestOpenOpensNothingWhereThereIsOneInAnyState(t *testing.T) {
	for _, state := range []string{Open, Closed, Merged} {
		gh := newFakeGH(t, map[string]string{"pr-list": "[" + pull("7", state, "pawl/x", "false") + "]"})
		pr, err := gh.OpenPullRequest(t.Context(), PullRequest{Repo: repo, Base: "main", Head: "pawl/x"})
		if err != nil || pr.Number != 7 || pr.State != state || len(gh.calls(t)) != 1 {
			t.Errorf("Open = %+v, %v after %q, want the one that is there", pr, err, gh.calls(t))
		}
	}
}

func TestOpenThatDiedAfterItsEffectFindsItWhenRepeated(t *testing.T) {
	gh := newFakeGH(t, map[string]string{"pr-list": "[]", "pr-create": "https://github.com/pawl-run/pawl/pull/7\n"})
	plan, err := fault.Parse("forge.open.after=EIO")
	if err != nil {
		t.Fatal(err)
	}
	p := PullRequest{Repo: repo, Base: "main", Head: "pawl/x"}
	if _, err := gh.OpenPullRequest(fault.With(t.Context(), plan), p); err == nil {
		t.Fatal("the fault was not seen")
	}
	if err := os.WriteFile(filepath.Join(gh.dir, "pr-list"), []byte("["+pull("7", Open, "pawl/x", "false")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pr, err := gh.OpenPullRequest(t.Context(), p); err != nil || pr.Number != 7 {
		t.Errorf("Open = %+v, %v", pr, err)
	}
	creates := 0
	for _, call := range gh.calls(t) {
		if call[1] == "create" {
			creates++
		}
	}
	if creates != 1 {
		t.Errorf("%d pull requests were opened, want 1", creates)
	}
}

func TestOpenSaysSoWhenTheAddressIsNotOfTheRepository(t *testing.T) {
	for _, out := range []string{"", "done\n", "https://github.com/other/pawl/pull/7\n", "https://github.com/pawl-run/pawl/issues/7\n"} {
		gh := newFakeGH(t, map[string]string{"pr-list": "[]", "pr-create": out})
		_, err := gh.OpenPullRequest(t.Context(), PullRequest{Repo: repo, Base: "main", Head: "pawl/x"})
		wantFault(t, err, loop.ExitError, "https://github.com/pawl-run/pawl/pulls")
	}
}

func TestNamesThatGhCouldTakeForSomethingElseNeverReachIt(t *testing.T) {
	gh := newFakeGH(t, nil)
	for _, head := range []string{"", "-x", "owner:branch", "a b", "a..b", "a\nb", "x\x00", strings.Repeat("a", 256)} {
		if _, _, err := gh.FindPullRequest(t.Context(), repo, head); err == nil {
			t.Errorf("branch %q was accepted", head)
		}
	}
	for _, r := range []Repository{{}, {"-h", "o", "n"}, {"h", "..", "n"}, {"h", "o", "a/b"}, {"h", "-o", "n"}, {"h", "o", "n?x"}} {
		if _, _, err := gh.FindPullRequest(t.Context(), r, "b"); err == nil {
			t.Errorf("repository %q was accepted", r)
		}
	}
	if calls := gh.calls(t); calls != nil {
		t.Errorf("gh was started: %q", calls)
	}
}

func TestLabelsHasThreeAnswers(t *testing.T) {
	const none = `{"nodes":[]}`
	answer := func(topics, issues, pulls string) string {
		return `{"data":{"repository":{"url":"https://github.com/pawl-run/pawl","repositoryTopics":` + topics + `,"issues":` + issues + `,"pullRequests":` + pulls + `}}}`
	}
	cases := map[string]struct {
		files map[string]string
		want  LabelState
		on    string
	}{
		"nothing carries it":      {map[string]string{"api-graphql": answer(none, none, none)}, LabelNotSet, ""},
		"the repository has it":   {map[string]string{"api-graphql": answer(`{"nodes":[{"topic":{"name":"go"}},{"topic":{"name":"loop-pause"}}]}`, none, none)}, LabelSet, "https://github.com/pawl-run/pawl"},
		"an issue has it":         {map[string]string{"api-graphql": answer(none, `{"nodes":[{"url":"i"}]}`, none)}, LabelSet, "i"},
		"a pull request has it":   {map[string]string{"api-graphql": answer(none, none, `{"nodes":[{"url":"p"}]}`)}, LabelSet, "p"},
		"a field is missing":      {map[string]string{"api-graphql": answer(none, none, "null")}, LabelUnknown, ""},
		"the repository is null":  {map[string]string{"api-graphql": `{"data":{"repository":null},"errors":[{"message":"x"}]}`}, LabelUnknown, ""},
		"errors beside an answer": {map[string]string{"api-graphql": strings.TrimSuffix(answer(none, none, none), "}") + `,"errors":[{"message":"x"}]}`}, LabelUnknown, ""},
		"no login":                {map[string]string{"api-graphql.exit": "4"}, LabelUnknown, ""},
		"the host is down":        {map[string]string{"api-graphql.exit": "1", "api-graphql.err": "could not connect"}, LabelUnknown, ""},
		"not JSON":                {map[string]string{"api-graphql": "<html>"}, LabelUnknown, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			gh := newFakeGH(t, c.files)
			got, on, err := gh.FindPauseLabel(t.Context(), repo)
			if got != c.want || on != c.on || (err != nil) != (c.want == LabelUnknown) {
				t.Errorf("Labels = %s, %q, %v, want %s, %q", got, on, err, c.want, c.on)
			}
		})
	}
}

func TestAHostThatNeverAnswersIsUnknownWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	gh := newFakeGH(t, map[string]string{"api-graphql.hang": ""})
	got, _, err := gh.FindPauseLabel(t.Context(), repo)
	if got != LabelUnknown || !errors.Is(err, errSlow) {
		t.Errorf("Labels = %s, %v, want unknown because it took too long", got, err)
	}
}

func TestWhatIsWrongWithGhIsSaidWithTheFix(t *testing.T) {
	gh := newFakeGH(t, map[string]string{"pr-list.exit": "4", "pr-list.err": "To get\x1b[2J started\nmore"})
	_, _, err := gh.FindPullRequest(t.Context(), repo, "b")
	wantFault(t, err, loop.ExitMissing, "gh auth login")
	if strings.Contains(err.Error(), "\x1b") || strings.Contains(err.Error(), "more") {
		t.Errorf("the message holds what gh printed as it is: %q", err)
	}
	gh.Program = filepath.Join(gh.dir, "no-such-gh")
	_, _, err = gh.FindPullRequest(t.Context(), repo, "b")
	wantFault(t, err, loop.ExitMissing, "install gh")
}

func TestParseTakesTheRepositoryOutOfAnAddress(t *testing.T) {
	for address, want := range map[string]string{
		"https://github.com/o/n":                 "github.com/o/n",
		"https://user:secret@GitHub.com/o/n.git": "github.com/o/n",
		"git@github.com:o/n.git":                 "github.com/o/n",
		"ssh://git@github.com:22/o/n.git/":       "github.com/o/n",
		"https://ghe.example.org/o/.github":      "ghe.example.org/o/.github",
		"https://github.com/o":                   "",
		"https://github.com/o/n/x":               "",
		"https://github.com/o/..":                "",
		"https://-h/o/n":                         "",
		"http://user:secret@github.com/o/n":      "",
		"ext::sh -c secret":                      "",
		"/srv/secret":                            "",
		"-o@h:x/y":                               "",
		"":                                       "",
	} {
		r, err := ParseRepository(address)
		if want == "" {
			wantFault(t, err, loop.ExitUnreadable, "set-url")
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error holds a secret: %v", err)
			}
			continue
		}
		if err != nil || r.String() != want {
			t.Errorf("Parse(%q) = %s, %v, want %s", address, r, err, want)
		}
	}
}
