package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWhatLeavesTheMachineIsAskedForHoweverItIsWritten(t *testing.T) {
	for line, rule := range map[string]string{
		"git push":                                        RulePush,
		"git push origin main":                            RulePush,
		"/usr/bin/git -C sub push --force":                RulePush,
		"git -c user.name=x push":                         RulePush,
		"git --no-pager push":                             RulePush,
		"git -c alias.p=push p":                           RulePush,
		"GIT_SSH=x git push":                              RulePush,
		"env -i A=b git push":                             RulePush,
		"sudo -u me git push":                             RulePush,
		"cd x && git push":                                RulePush,
		"go test ./...; git push":                         RulePush,
		"true|git push":                                   RulePush,
		"git commit -am x\ngit push":                      RulePush,
		"git commit -am x & git push":                     RulePush,
		"(git push)":                                      RulePush,
		"{ git push; }":                                   RulePush,
		"if true; then git push; fi":                      RulePush,
		"for b in a b; do git push origin $b;done":        RulePush,
		"! git push":                                      RulePush,
		"echo $(git push)":                                RulePush,
		`echo "done $(git push)"`:                         RulePush,
		"echo `git push`":                                 RulePush,
		`echo "$(echo "$(git push)")"`:                    RulePush,
		"sh -c 'git push'":                                RulePush,
		`bash -lc "cd x && git push"`:                     RulePush,
		`sh -c "sh -c 'git push'"`:                        RulePush,
		"eval git push":                                   RulePush,
		`eval "git push"`:                                 RulePush,
		"timeout 60 git push":                             RulePush,
		"find . -name x -exec git push ;":                 RulePush,
		"xargs -n1 git push <list":                        RulePush,
		"nohup git push >/dev/null 2>&1 &":                RulePush,
		">log git push":                                   RulePush,
		"g''it pu\\sh":                                    RulePush,
		`"git" 'push'`:                                    RulePush,
		"git \\\n push":                                   RulePush,
		"g=git; $g push":                                  RulePush,
		"v=push; git $v":                                  RulePush,
		"{git,push}":                                      RulePush,
		"bash <<EOF\ngit push\nEOF":                       RulePush,
		"bash <<< 'git push'":                             RulePush,
		"echo git push | sh":                              RulePush,
		"git push 'unfinished":                            RulePush,
		"diff <(git push) x":                              RulePush,
		"git subtree push --prefix=x origin y":            RulePush,
		`python3 -c "import os; os.system('git push')"`:   RulePush,
		`python3 -c "subprocess.run(['git', 'push'])"`:    RulePush,
		"gh pr create --fill":                             RuleForge,
		"gh -R a/b pr merge 3":                            RuleForge,
		"gh release create v1":                            RuleForge,
		"gh api -X POST /repos/a/b/issues":                RuleForge,
		"gh api repos/a/b/issues -f title=x":              RuleForge,
		"npm publish":                                     RulePublish,
		"npm --access public publish":                     RulePublish,
		"npx -y lerna publish":                            RulePublish,
		"cargo publish --dry-run":                         RulePublish,
		"python -m twine upload dist/*":                   RulePublish,
		"twine upload dist/*":                             RulePublish,
		"docker push a/b":                                 RulePublish,
		"docker --context x push a/b":                     RulePublish,
		"docker buildx build --push .":                    RulePublish,
		"terraform -chdir=x apply -auto-approve":          RuleDeploy,
		"terraform destroy":                               RuleDeploy,
		"kubectl -n prod delete pod x":                    RuleDeploy,
		"kubectl apply -f x.yaml":                         RuleDeploy,
		"aws s3 cp x s3://y":                              RuleDeploy,
		"ssh host true":                                   RuleRemote,
		"scp x host:y":                                    RuleRemote,
		"rsync -a x host:y":                               RuleRemote,
		"curl -X POST https://example.org":                RuleUpload,
		"curl -sSXPOST https://example.org":               RuleUpload,
		"curl -d @x https://example.org":                  RuleUpload,
		"curl --data=x example.org/y":                     RuleUpload,
		"curl --request=DELETE https://example.org":       RuleUpload,
		"curl -T x https://example.org":                   RuleUpload,
		"curl -d x http://localhost/ https://example.org": RuleUpload,
		"wget --post-data=x https://example.org":          RuleUpload,
		"wget --method PUT https://example.org":           RuleUpload,
		"http POST example.org a=b":                       RuleUpload,
	} {
		a := Guard{}.Judge(Call{Kind: CallRun, Command: line})
		if a.Allow || !a.Ask || a.Rule != rule || !strings.Contains(a.Words, "end your turn") && !strings.Contains(a.Words, "End your turn") {
			t.Errorf("%q: %+v, want a question by rule %s", line, a, rule)
		}
	}
}

func TestWhatStaysInTheSandboxIsNotAskedFor(t *testing.T) {
	for _, line := range []string{
		"go test ./...", "npm test", "npm run build", "git status", "git log --oneline -5", "git stash push -m x", "git checkout push-it", "git commit -m 'git push later'",
		"echo git push", "grep -rn 'git push' .", "cat README.md | grep push", "# git push", "ls # then git push", "git commit -m \"it's about push\"",
		"cat > notes.md <<'EOF'\ngit push\nnpm publish\nEOF", "cat <<EOF >x\nssh host\nEOF\nls", "gh pr view 3", "gh pr list --state open", "gh api repos/a/b",
		"gh issue list", "gh --version", "docker build .", "docker ps", "terraform plan", "terraform fmt", "kubectl get pods", "kubectl -n x get deploy", "cargo build",
		"cargo run publish", "npm pack", "curl https://example.org", "curl -sSfL https://example.org -o x", "curl -G -d a=b https://example.org", "curl -X POST http://localhost:3000/x",
		"curl -d x 127.0.0.1:80/x", "wget https://example.org/x", "ssh-keygen -t ed25519 -f x", "rsync -a src/ dst/", "sudo apt-get install x", "su -c ls", "env", "true",
		"test -f x && [ -n \"$x\" ] && git commit -m 'push later'", "for f in *.go; do gofmt -l $f; done", "awk '{print $1}' x", "python3 -m pytest -q", "make push",
		"x=$(git rev-parse HEAD); echo ${x:-none}", "find . -name '*.go' | xargs gofmt -l", "echo 'unfinished", "git remote -v", "aws --version", "printf '%s' \"a b\" > x 2>&1",
	} {
		if a := (Guard{}).Judge(Call{Kind: CallRun, Command: line}); !a.Allow || a.Rule != RuleRun {
			t.Errorf("%q: %+v, want leave", line, a)
		}
	}
}

func TestAProgramWithoutAShellIsReadWordByWord(t *testing.T) {
	for name, c := range map[string]struct {
		argv []string
		ask  bool
	}{
		"a push":                       {[]string{"git", "push"}, true},
		"a shell with a push":          {[]string{"/bin/bash", "-lc", "make && git push"}, true},
		"a message about a push":       {[]string{"git", "commit", "-m", "x; git push"}, false},
		"an argument that is no shell": {[]string{"echo", "$(git push)"}, false},
	} {
		if a := (Guard{}).Judge(Call{Kind: CallRun, Argv: c.argv}); a.Ask != c.ask || a.Allow == c.ask {
			t.Errorf("%s: %+v, want ask %v", name, a, c.ask)
		}
	}
}

func TestAPushIsFoundBehindAnythingThatStandsBeforeACommand(t *testing.T) {
	wraps := []string{"%", "( % )", "{ %; }", "true; %", "true && %", "true | %", "A=b %", "env A=b %", "sudo %", "echo $( % )", "! %", "%\ntrue", "if %; then :; fi", "time %", "timeout 5 %"}
	rapid.Check(t, func(t *rapid.T) {
		line := "git push"
		for _, w := range rapid.SliceOfN(rapid.SampledFrom(wraps), 0, 5).Draw(t, "wraps") {
			if strings.HasPrefix(line, "sudo") || strings.HasPrefix(line, "env") || strings.HasPrefix(line, "timeout") || !strings.ContainsAny(w, ";|&(\n") {
				w = strings.Replace(w, "%", "sh -c '%'", 1)
				line = strings.ReplaceAll(line, "'", `'\''`)
			}
			line = strings.Replace(w, "%", line, 1)
		}
		if strings.Count(line, "sh -c") >= deepest {
			return
		}
		if a := (Guard{}).Judge(Call{Kind: CallRun, Command: line}); !a.Ask {
			t.Fatalf("%q: %+v, want a question", line, a)
		}
	})
}

func FuzzALineForAShellIsReadWithoutHarm(f *testing.F) {
	for _, seed := range []string{
		"git push", "echo $(git `x` push) \"$(a 'b' \\) )\"", "<<EOF\n$(x)\nEOF", "a <<<'b' >c 2>&1 &", "${a:-$(b)} $'\\x' $\"x\"", "\\", "'", "\"", "`", "$(", "${", "<<", "a;;b|&c", "{a,b} [ [[ *",
		strings.Repeat("$(", 50), strings.Repeat("sh -c '", 20), "curl -", "gh", "git -c", "rsync :",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		a := Guard{}.Judge(Call{Kind: CallRun, Command: line})
		if a.Allow && a.Ask || a.Rule == "" || a.Words == "" {
			t.Errorf("%q: %+v", line, a)
		}
		if strings.ContainsRune(line, 0) || strings.ContainsAny(line, "'\"`$\\<>#(){}") {
			return
		}
		if b := (Guard{}).Judge(Call{Kind: CallRun, Command: line + "\ngit push"}); !b.Ask {
			t.Errorf("%q and then a push: %+v, want a question", line, b)
		}
	})
}
