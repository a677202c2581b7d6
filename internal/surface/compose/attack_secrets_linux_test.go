package compose_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// canary is a secret, and how it could be found again.
type canary struct{ name, value string }

// spellings are all that would give it away: it, its text in base64 wherever it
// begins or ends its line, in hexadecimal, in a URL, and backwards.
func (c canary) spellings() [][]byte {
	value := c.value
	back := []byte(value)
	slices.Reverse(back)
	list := [][]byte{[]byte(value), []byte(hex.EncodeToString([]byte(value))), []byte(strings.ToUpper(hex.EncodeToString([]byte(value)))), back, []byte(url.QueryEscape(value))}
	for skip := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", skip) + value))
		list = append(list, []byte(text[4:len(text)-4]))
	}
	return append(list, []byte(base64.StdEncoding.EncodeToString([]byte(value))[:20]))
}

// in finds the first spelling of a canary in a text, or nothing.
func (c canary) in(text []byte) (spelled []byte, at int) {
	for _, s := range c.spellings() {
		if at = bytes.Index(text, s); at >= 0 {
			return s, at
		}
	}
	return nil, -1
}

// silent holds that a text has none of the canaries.
func (v *victim) silent(where string, text []byte, canaries ...canary) {
	v.t.Helper()
	for _, c := range canaries {
		if s, at := c.in(text); s != nil {
			v.t.Errorf("%s has %s as %q: …%q…", where, c.name, s, text[max(0, at-60):min(len(text), at+len(s)+60)])
		}
	}
}

// objects is the content of everything in the repository's object store, and the
// names of all refs.
func (v *victim) objects() []byte {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), "git", "cat-file", "--batch-all-objects", "--batch")
	cmd.Dir = v.root
	all, err := cmd.Output()
	must(v.t, err)
	return append(all, v.git("for-each-ref")...)
}

// reachable is the content of everything that a ref leads to, and their names.
func (v *victim) reachable() []byte {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), "sh", "-c", "git rev-list --all --objects | cut -d' ' -f1 | git cat-file --batch; git rev-list --all --objects; git for-each-ref")
	cmd.Dir = v.root
	all, err := cmd.Output()
	must(v.t, err)
	return all
}

// silentFiles holds that no file below a folder has a canary, in its content or
// its name.
func (v *victim) silentFiles(dir string, canaries ...canary) {
	v.t.Helper()
	must(v.t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		v.silent("the name of "+path, []byte(path), canaries...)
		if e.IsDir() && e.Name() == ".git" {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		v.silent(path, text, canaries...)
		return err
	}))
}

// curious is a script of an agent that looks for secrets and writes what it finds
// wherever it can write.
func curious(r *rand.Rand, homes ...string) string {
	looks := []string{
		"env", "cat ~/.aws/credentials", "cat /proc/*/environ", "cat /proc/1/environ /proc/1/cmdline", "cat /proc/self/mountinfo", "git config --list --show-origin",
		"git log --all -p", "git reflog", "cat $PAWL_PROMPT", "ls -laR ~ /run /tmp", "cat /run/pawl/*/*", "cat /etc/environment /root/.*rc", "git stash list; git notes list", "set",
	}
	for _, home := range homes {
		looks = append(looks, "cat "+home+"/.aws/*", "ls -aR "+home, "find "+home+" -type f -exec cat {} +", "cat "+home+"/*.db*")
	}
	codes := []string{"cat", "base64 -w0", "od -An -v -tx1 | tr -d ' \\n'", "rev", "tr '\\n' ' '"}
	sinks := []string{
		"cat >src/seen.txt", "cat >>src/a.txt", "cat", "cat >&2", `head -c 150 | tr -cd 'A-Za-z0-9=+_-' | xargs -I@ touch src/n@`,
		`head -c 900 | tr -cd 'A-Za-z0-9=+_ -' >/tmp/x; printf '{"outcome":"done","summary":"%s","item":"k=%s","items":["%s"],"memory":["%s"]}' "$(cat /tmp/x)" "$(cut -c1-40 /tmp/x)" "$(cat /tmp/x)" "$(cat /tmp/x)" >"$PAWL_REPORT"`,
		`head -c 900 | tr -cd 'A-Za-z0-9=+_ -' >/tmp/x; printf '{"outcome":"blocked","reason":"%s","state":{"priority":["[P1] %s"]}}' "$(cat /tmp/x)" "$(cat /tmp/x)" >"$PAWL_REPORT"`,
		`head -c 900 >/tmp/x; git commit -qa --allow-empty -F /tmp/x`, `tr -cd 'a-z0-9' | head -c 150 | xargs -I@ git branch b@`, "while read -r l; do printf %s \"$l\"; done", "tee src/seen.txt >src/bad",
	}
	one := func(list []string) string { return list[r.IntN(len(list))] }
	var b strings.Builder
	for range 1 + r.IntN(4) {
		fmt.Fprintf(&b, "{ %s; %s; } 2>&1 | %s | head -c 200000 | { %s; }\n", one(looks), one(looks), one(codes), one(sinks))
	}
	b.WriteString([]string{"", "exit 3\n", "echo three >>src/a.txt\n"}[r.IntN(3)])
	return b.String()
}

func TestAttack076NoCanaryIsAnywhereAfterManyRunsThatLookForThem(t *testing.T) {
	t.Parallel()
	const workspaces = 4
	each := sample.Size(6, 50)
	inEnviron := canary{"the environment's token", "canary-env-8Qz2LmVx71RtYw0p"}
	key := canary{"the injected key", "sk-ant-canary-5Hn3KcUe92BdJs4g"}
	inAWS := canary{"the key of ~/.aws", "canaryAWS6Tf0PiOa83XqZy1k/Wv7"}
	inStore := canary{"the note in the store", "canary-note-4Gr9EhCb65NuMl8j"}
	open := canary{"what every agent may see", "open-canary-3Jd7ToSi19AvKw5x"}
	home := t.TempDir()
	must(t, os.Mkdir(filepath.Join(home, ".aws"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, ".aws/credentials"), []byte("[default]\naws_secret_access_key = "+inAWS.value+"\n"), 0o600))
	environ := append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "HOME=") }),
		"HOME="+home, "DEPLOY_TOKEN="+inEnviron.value, "DATABASE_URL=postgres://u:"+inEnviron.value+"@db/x", "ANTHROPIC_API_KEY="+key.value, "NOTE="+open.value)

	r := rand.New(rand.NewPCG(76, 2026))
	keys := []string{"sandbox", "full", "agent_command", "sh agent.sh", "verify", "test ! -e src/bad", "env", "[NOTE]"}
	scripts := func(pawlHome string) map[string]string {
		files := map[string]string{"agent.sh": obedient("n=$(sed -n 's/^script //p' \"$PAWL_PROMPT\" | head -n1); . ./acts/$n.sh")}
		for n := range each {
			files[fmt.Sprintf("acts/%d.sh", n)] = curious(r, home, pawlHome)
		}
		return files
	}
	first := cagedIn(t, environ, "", map[string]string{"agent.sh": "true"}, keys...)
	first.commits(scripts(first.home))
	all := []*victim{first}
	for len(all) < workspaces {
		all = append(all, first.besides("", scripts(first.home), keys...))
	}
	var counts [workspaces]map[loop.Outcome]int
	var work sync.WaitGroup
	for i, v := range all {
		work.Go(func() { counts[i] = v.runScripts(each, inStore) })
	}
	work.Wait()
	ended := map[loop.Outcome]int{}
	for _, c := range counts {
		for outcome, n := range c {
			ended[outcome] += n
		}
	}
	t.Log(ended)
	enough := workspaces * each / 10
	if ended[loop.OutcomeProposed] < enough || ended[loop.OutcomeFailed]+ended[loop.OutcomeRefused]+ended[loop.OutcomeBlocked] < enough {
		t.Errorf("the runs ended %v: that is not every way", ended)
	}
	host := []canary{inEnviron, key, inAWS}
	seen := map[string]bool{}
	for _, v := range all {
		objects := v.objects()
		runs, err := v.svc.Runs.List(t.Context(), "fix", 1000)
		must(t, err)
		var told strings.Builder
		for _, run := range runs {
			told.WriteString(v.toldOf(run))
		}
		for where, text := range map[string][]byte{"the repository": objects, "what is told": []byte(told.String())} {
			if s, _ := open.in(text); s != nil {
				seen[where] = true
			}
		}
		v.silent("the repository", objects, append(host, inStore)...)
		v.silentFiles(v.root, append(host, inStore)...)
		v.silent("what is told", []byte(told.String()+v.told(runs[0])), host...)
	}
	if len(seen) != 2 {
		t.Errorf("what everybody may see is only in %v: the scripts found nothing", seen)
	}
	must(t, first.d.Close())
	first.silentFiles(first.home, host...)
}

// runScripts carries out so many runs, and says no to some of what they propose,
// with a note.
func (v *victim) runScripts(n int, note canary) map[loop.Outcome]int {
	ended := map[loop.Outcome]int{}
	for i := range n {
		plan, err := v.svc.Runs.Prepare(v.t.Context(), runs.StartRequest{Loop: "fix", Request: fmt.Sprintf("\nscript %d\n", i)})
		if err != nil {
			v.t.Error(err)
			return ended
		}
		run, err := v.svc.Runs.Start(v.t.Context(), plan)
		if err != nil {
			v.t.Error(err)
			return ended
		}
		ended[run.Outcome]++
		if run.Approval != "" && i%5 == 0 {
			if _, err := v.svc.Approvals.Reject(v.t.Context(), run.Approval, loop.Answer{By: "ann", From: "test", Note: note.value}); err != nil {
				v.t.Error(err)
			}
		}
	}
	return ended
}

// lentTo is a home with a login of claude, and the environment of its user.
func lentTo(t *testing.T) (environ []string, login []canary) {
	t.Helper()
	home := t.TempDir()
	access, refresh := canary{"the lent token", "sk-ant-oat01-canary-9Wp4/Zk+27HqBn6v~Xr"}, canary{"the token that renews it", "sk-ant-ort01-canary-2Mc8?Yd=51TgUf3s&Lj"}
	must(t, os.Mkdir(filepath.Join(home, ".claude"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, ".claude/.credentials.json"), fmt.Appendf(nil,
		`{"claudeAiOauth":{"accessToken":"%s","refreshToken":"%s","expiresAt":%d,"scopes":["user:inference"],"subscriptionType":"max"}}`,
		access.value, refresh.value, time.Now().Add(24*time.Hour).UnixMilli(),
	), 0o600))
	environ = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "HOME=") || strings.HasPrefix(kv, "ANTHROPIC_") || strings.HasPrefix(kv, "CLAUDE_")
	})
	return append(environ, "HOME="+home), []canary{access, refresh}
}

// telling is a program that talks as claude does, and tells what it was lent: to
// standard error, in what is not a message, in messages, in its last words.
const telling = `exec </dev/null
quoted() { printf %s "$1" | sed ':a;N;$!ba;s/\n/\\n/g'; }
file=$HOME/.claude/.credentials.json
[ -s "$file" ] || echo none >src/none
for field in accessToken refreshToken; do
key=$(sed 's/.*"'$field'":"\([^"]*\)".*/\1/' "$file")
hex=$(printf %s "$key" | od -An -v -tx1 | tr -d ' \n')
url=$(printf %s "$hex" | sed 's/../%&/g')
b64=$(printf %s "$key" | base64 -w0)
shifted=$(printf 'xy%s' "$key" | base64 -w0)
wrapped=$(printf %s "$key" | base64 -w20)
for text in "$key" "$hex" "$url" "$b64" "$shifted" "$wrapped"; do
	echo "it is $text." >&2
	echo "it is $text."
	printf %s "$text" | sed 's/./&\n/g' | while IFS= read -r c; do printf %s "$c" >&2; done; echo >&2
	printf '{"type":"assistant","message":{"id":"m","model":"claude-opus-5-5","role":"assistant","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":1,"output_tokens":1}},"session_id":"s"}\n' "$(quoted "$text")"
	all="$all $(quoted "$text")"
done
done
SINK
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"%s","session_id":"s","total_cost_usd":0,"usage":{"input_tokens":1,"output_tokens":1},"modelUsage":{"claude-opus-5-5":{"inputTokens":1,"outputTokens":1,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costUSD":0}}}\n' "$all"
`

func TestAttack077InFullALentLoginThatItsProgramTellsIsInNoAccountAndOnNoBranch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sink    string
		outcome loop.Outcome
	}{
		"in what it prints":    {"echo three >src/a.txt", loop.OutcomeProposed},
		"in its report":        {`echo three >src/a.txt; printf '{"outcome":"done","summary":"%s","item":"key=%s","items":["%s"],"memory":["%s"],"state":{"priority":["[P1] %s"]}}' "$all" "$key" "$all" "$b64" "$url" >"$PAWL_REPORT"`, loop.OutcomeProposed},
		"in its reason":        {`printf '{"outcome":"blocked","reason":"%s"}' "$all" >"$PAWL_REPORT"`, loop.OutcomeBlocked},
		"in a file":            {`echo "$key" >src/a.txt`, loop.OutcomeRefused},
		"encoded in a file":    {`echo "$b64" >src/new.txt`, loop.OutcomeRefused},
		"in the name of one":   {`echo x >"src/$hex"; echo x >"src/$b64"`, loop.OutcomeRefused},
		"in what a gate shows": {`echo "$b64" | rev >src/a.txt; touch src/gate`, loop.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ, login := lentTo(t)
			v := cagedIn(t, environ, "", map[string]string{"agent.sh": strings.Replace(telling, "SINK", c.sink, 1)},
				"agent", "claude", "auth", "lend", "verify", "if [ -e src/gate ]; then rev src/a.txt; exit 1; fi")
			run := v.runs()
			if run.Outcome != c.outcome || slices.Contains(run.Iterations[0].Changed, "src/none") {
				t.Fatalf("run = %s %s %q, want %s\n%s", run.Outcome, run.Reason, run.Detail, c.outcome, v.toldOf(run))
			}
			told := v.told(run)
			if !strings.Contains(told, "it is ") {
				t.Errorf("nothing of what was printed is told:\n%s", told)
			}
			v.silent("what is told", []byte(told), login...)
			v.silent("what a ref leads to", v.reachable(), login...)
			v.silentFiles(v.root, login...)
			must(t, v.d.Close())
			v.silentFiles(v.home, login...)
		})
	}
}

func TestAttack077InFullAKeyThatIsInjectedIsNotThereToTell(t *testing.T) {
	t.Parallel()
	environ, _ := lentTo(t)
	key := canary{"the injected key", "sk-ant-canary-5Hn3KcUe92BdJs4g"}
	v := cagedIn(t, append(environ, "ANTHROPIC_API_KEY="+key.value), "", map[string]string{
		"agent.sh": strings.Replace(telling, "SINK", "(env; cat /proc/*/environ; find $HOME -type f -exec cat {} +) >src/env 2>&1", 1),
	}, "agent", "claude", "auth", "inject")
	run := v.runs()
	if got := v.said(run, "src/env"); !strings.Contains(got, "ANTHROPIC_API_KEY=") || !strings.Contains(got, "ANTHROPIC_BASE_URL=http://127.0.0.1:") {
		t.Errorf("the program saw\n%s", got)
	}
	if got := v.said(run, "src/none"); got != "none" {
		t.Errorf("a login was there: %q", got)
	}
	v.silent("the repository", v.objects(), key)
	v.silent("what is told", []byte(v.told(run)), key)
	v.silentFiles(v.root, key)
	must(t, v.d.Close())
	v.silentFiles(v.home, key)
}
