package policy

import (
	"slices"
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
		"time -p git push":                                RulePush,
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
		"http example.org a=b":                            RuleUpload,
		"echo x 'git push":                                RulePush,
		"!\nmail x":                                       RulePush,
		"mail x\n)":                                       RulePush,
		"mail x <<EOF\nhello":                             RulePush,
		"wget --post-file x https://example.org\n(":       RuleUpload,
		">&2 git push":                                    RulePush,
		">>log git push":                                  RulePush,
		"cat <<EOF\nx\nEOF\ngit push":                     RulePush,
		"cat <<-EOF\n\tx\n\tEOF\ngit push":                RulePush,
		"gh codespace":                                    RuleForge,
		"gh pr merge view":                                RuleForge,
		"pnpm -r publish":                                 RulePublish,

		`python3 -c "os.system('curl -d x https://e.org')"`:           RuleUpload,
		`python3 -c "os.system('curl -F x https://e.org')"`:           RuleUpload,
		`python3 -c "os.system('curl -T x https://e.org')"`:           RuleUpload,
		`python3 -c "os.system('curl --json x https://e.org')"`:       RuleUpload,
		`python3 -c "os.system('curl --data-raw x https://e.org')"`:   RuleUpload,
		`python3 -c "run(['curl', '-X', 'DELETE', 'https://e.org'])"`: RuleUpload,
		`python3 -c "os.system('ssh host')"`:                          RuleRemote,
		`python3 -c "os.system('gh pr create')"`:                      RuleForge,
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
		"gh -R a/b pr view", "gh -R a/b pr view 3", "http --auth=a:b example.org", "9a=b git push", "'' git push", "echo `date` push; git status", "[[ -n push ]] && git status",
		`x=$(echo \( ) && git log --grep push`, `x=$(echo "(") && git log --grep push`, `x=$(echo '(') && git log --grep push`, "x=$(date) && git log --grep push",
		`python3 -c "os.system('curl https://e.org')"`, `python3 -c "os.system('gh pr view 1')"`, `python3 -c "print('mail x')"`, "perl -e ssh", "docker run x --push", `curl -X POST "" http://localhost/x`, `ruby -e "hub = 1; hub.x"`,
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
		"a push":                          {[]string{"git", "push"}, true},
		"a shell with a push":             {[]string{"/bin/bash", "-lc", "make && git push"}, true},
		"a message about a push":          {[]string{"git", "commit", "-m", "x; git push"}, false},
		"an argument that is not a shell": {[]string{"echo", "$(git push)"}, false},
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

// leaves are commands of each program that is known to leave, at least one for
// each of its verbs.
var leaves = map[string]string{
	RulePush: `git push, git send-pack, git http-push, git send-email, git imap-send, git subtree push, git lfs push, git svn dcommit, git p4 submit, git annex sync,
		hg push, hg email, jj git push, svn commit, svn ci, bzr push, fossil push, fossil sync, mail me, mailx me, mutt me, sendmail me, msmtp me`,
	RulePublish: `npm publish, npm unpublish, npm deprecate, npm dist-tag add, npm dist-tag rm, npm owner add, npm owner rm, npm access, pnpm publish, pnpm -r publish,
		yarn publish, yarn npm publish, bun publish, lerna publish, changeset publish, deno publish, jsr publish, vsce publish, ovsx publish, cargo publish, cargo yank, cargo owner,
		twine upload, poetry publish, uv publish, flit publish, hatch publish, pdm publish, gem push, gem yank, mvn deploy, mvnw deploy, gradle publish, gradlew publish,
		nuget push, dotnet nuget push, docker push, docker image push, docker compose push, docker manifest push, podman push, podman image push, podman manifest push,
		nerdctl push, nerdctl image push, buildah push, skopeo copy, skopeo sync, skopeo delete, crane push, crane copy, crane delete, oras push, oras copy,
		goreleaser release, semantic-release --no-ci`,
	RuleDeploy: `terraform apply, terraform destroy, terraform import, terraform state rm, terraform state push, tofu apply, tofu destroy, tofu import, tofu state rm, tofu state push,
		terragrunt apply, terragrunt destroy, terragrunt run-all apply, terragrunt run-all destroy, pulumi up, pulumi destroy, pulumi import,
		kubectl apply, kubectl delete, kubectl create, kubectl replace, kubectl patch, kubectl edit, kubectl scale, kubectl set, kubectl rollout, kubectl drain, kubectl cordon,
		kubectl taint, kubectl label, kubectl annotate, kubectl exec, kubectl cp, kubectl run, oc apply, oc delete, oc create,
		helm install, helm upgrade, helm uninstall, helm delete, helm rollback, helm push, cdk deploy, cdk destroy, serverless deploy, serverless remove, sls deploy, sls remove,
		sam deploy, sam delete, ansible all, ansible-playbook x.yml, aws s3, gcloud run, gsutil cp, az vm, doctl apps, eb deploy, eb terminate, vercel deploy, netlify deploy,
		wrangler deploy, wrangler publish, wrangler delete, firebase deploy, fly deploy, fly destroy, flyctl deploy, flyctl destroy, heroku ps, railway up,
		systemctl poweroff, systemctl reboot`,
	RuleRemote: `ssh host, scp a host:b, sftp host, mosh host, ftp host, lftp host, telnet host, autossh host, ssh-copy-id host, rsync a host:b, rclone copy a host:b`,
	RuleForge: `gh pr create, glab mr create, hub pull-request, tea pr create, gh api x -X PUT, gh api x --method PUT, gh api x -f a=b, gh api x --raw-field a=b, gh api x -F a=b,
		gh api x --field a=b, gh api x --input f`,
	RuleUpload: `curl -X PUT h.org, curl --request PATCH h.org, curl -d a h.org, curl --data a h.org, curl --data-raw a h.org, curl --data-binary a h.org, curl --data-urlencode a h.org,
		curl --data-ascii a h.org, curl -F a=b h.org, curl --form a=b h.org, curl --form-string a=b h.org, curl -T f h.org, curl --upload-file f h.org, curl --json a h.org,
		wget --method DELETE h.org, wget --post-data a h.org, wget --post-file f h.org, wget --body-data a h.org, wget --body-file f h.org,
		http PUT h.org, https PATCH h.org, xh DELETE h.org, http h.org a=b`,
}

func TestEachCommandThatIsKnownToLeaveIsAskedFor(t *testing.T) {
	tried := map[string]bool{}
	for rule, lines := range leaves {
		for line := range strings.SplitSeq(lines, ",") {
			line = strings.TrimSpace(line)
			if a := (Guard{}).Judge(Call{Kind: CallRun, Command: line + " x"}); !a.Ask || a.Rule != rule {
				t.Errorf("%q: %+v, want a question by rule %s", line, a, rule)
			}
			tried[line] = true
			program, _, _ := strings.Cut(line, " ")
			tried[program] = true
		}
	}
	for program, all := range leavings {
		for _, l := range all {
			if !tried[l.name()] {
				t.Errorf("%q is not tried: add it to leaves", l.name())
			}
		}
		if slices.ContainsFunc(all, func(l leaving) bool { return l.verb == "" }) {
			continue
		}
		if a := (Guard{}).Judge(Call{Kind: CallRun, Command: program + " anything else"}); !a.Allow {
			t.Errorf("%s with another verb: %+v, want leave", program, a)
		}
	}
}

func TestAPushIsFoundInWhatRunsOtherCommands(t *testing.T) {
	for program := range strings.FieldsSeq(`sh bash zsh dash ksh ash fish busybox eval env sudo doas su nohup nice ionice time timeout exec command builtin stdbuf setsid xargs parallel watch
		find fd npx pnpx bunx uvx pipx function trap chronic flock script unshare strace ltrace entr coproc runuser gosu tini mise direnv chroot systemd-run`) {
		if a := (Guard{}).Judge(Call{Kind: CallRun, Command: program + " --option value git push"}); !a.Ask || a.Rule != RulePush {
			t.Errorf("%s: %+v, want a question", program, a)
		}
	}
	for shell := range strings.FieldsSeq("sh bash zsh dash ksh ash fish source .") {
		for _, line := range []string{"echo git push | " + shell, shell + " <<EOF\ngit push\nEOF"} {
			if a := (Guard{}).Judge(Call{Kind: CallRun, Command: line}); !a.Ask || a.Rule != RulePush {
				t.Errorf("%q: %+v, want a question", line, a)
			}
		}
	}
	for word := range strings.FieldsSeq("{ } ! if then else elif while until do fi done in") {
		if a := (Guard{}).Judge(Call{Kind: CallRun, Command: word + " git push"}); !a.Ask || a.Rule != RulePush {
			t.Errorf("after %q: %+v, want a question", word, a)
		}
	}
}

func TestReadingFromAForgeIsNotAskedFor(t *testing.T) {
	for verb := range strings.FieldsSeq("view list ls status diff checks checkout download clone watch verify help search completion version show trace get token set-default repos issues prs commits code") {
		for _, line := range []string{"gh pr " + verb + " 3", "gh " + verb, "glab " + verb + " x"} {
			if a := (Guard{}).Judge(Call{Kind: CallRun, Command: line}); !a.Allow {
				t.Errorf("%q: %+v, want leave", line, a)
			}
		}
	}
	for _, line := range []string{"gh auth login", "gh config set a b", "gh --help", "gh -h"} {
		if a := (Guard{}).Judge(Call{Kind: CallRun, Command: line}); !a.Allow {
			t.Errorf("%q: %+v, want leave", line, a)
		}
	}
}
