package policy

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// Rules of commands for which a human is asked.
const (
	RulePush    = "push"    // to a repository elsewhere
	RuleForge   = "forge"   // what others see of pull requests, issues, releases
	RulePublish = "publish" // packages and images
	RuleDeploy  = "deploy"  // machines and services elsewhere are changed
	RuleRemote  = "remote"  // a session or a copy on another host
	RuleUpload  = "upload"  // a request that writes, to a host that is not this one
)

// leaving is a kind of command that cannot be taken back or leaves the machine.
type leaving struct {
	rule    string
	does    string
	program string
	verb    string // one or more words that follow it; empty: whatever follows
}

// name is how a person calls it.
func (l leaving) name() string {
	return strings.TrimSpace(l.program + " " + l.verb)
}

const (
	doesPush    = "sends commits or mail out of this machine"
	doesForge   = "changes what others see"
	doesPublish = "publishes"
	doesDeploy  = "changes something that runs elsewhere"
	doesRemote  = "reaches another host"
	doesUpload  = "sends data to another host"
)

// leavings are looked up by program, then by verbs.
var leavings = byProgram(
	leavingsFor(RulePush, doesPush, map[string][]string{
		"git": {"push", "send-pack", "http-push", "send-email", "imap-send", "subtree push", "lfs push", "svn dcommit", "p4 submit", "annex sync"},
		"hg":  {"push", "email"}, "jj": {"git push"}, "svn": {"commit", "ci"}, "bzr": {"push"}, "fossil": {"push", "sync"},
		"mail": nil, "mailx": nil, "mutt": nil, "sendmail": nil, "msmtp": nil,
	}),
	leavingsFor(RulePublish, doesPublish, map[string][]string{
		"npm":  {"publish", "unpublish", "deprecate", "dist-tag add", "dist-tag rm", "owner add", "owner rm", "access"},
		"pnpm": {"publish", "-r publish"}, "yarn": {"publish", "npm publish"}, "bun": {"publish"}, "lerna": {"publish"}, "changeset": {"publish"},
		"deno": {"publish"}, "jsr": {"publish"}, "vsce": {"publish"}, "ovsx": {"publish"}, "cargo": {"publish", "yank", "owner"}, "twine": {"upload"},
		"poetry": {"publish"}, "uv": {"publish"}, "flit": {"publish"}, "hatch": {"publish"}, "pdm": {"publish"}, "gem": {"push", "yank"},
		"mvn": {"deploy"}, "mvnw": {"deploy"}, "gradle": {"publish"}, "gradlew": {"publish"}, "nuget": {"push"}, "dotnet": {"nuget push"},
		"docker": {"push", "image push", "compose push", "manifest push"}, "podman": {"push", "image push", "manifest push"},
		"nerdctl": {"push", "image push"}, "buildah": {"push"}, "skopeo": {"copy", "sync", "delete"}, "crane": {"push", "copy", "delete"},
		"oras": {"push", "copy"}, "goreleaser": {"release"}, "semantic-release": nil,
	}),
	leavingsFor(RuleDeploy, doesDeploy, map[string][]string{
		"terraform": {"apply", "destroy", "import", "state rm", "state push"}, "tofu": {"apply", "destroy", "import", "state rm", "state push"},
		"terragrunt": {"apply", "destroy", "run-all apply", "run-all destroy"}, "pulumi": {"up", "destroy", "import"},
		"kubectl": {"apply", "delete", "create", "replace", "patch", "edit", "scale", "set", "rollout", "drain", "cordon", "taint", "label", "annotate", "exec", "cp", "run"},
		"oc":      {"apply", "delete", "create"}, "helm": {"install", "upgrade", "uninstall", "delete", "rollback", "push"},
		"cdk": {"deploy", "destroy"}, "serverless": {"deploy", "remove"}, "sls": {"deploy", "remove"}, "sam": {"deploy", "delete"},
		"ansible": nil, "ansible-playbook": nil, "aws": nil, "gcloud": nil, "gsutil": nil, "az": nil, "doctl": nil, "eb": {"deploy", "terminate"},
		"vercel": nil, "netlify": {"deploy"}, "wrangler": {"deploy", "publish", "delete"}, "firebase": {"deploy"}, "fly": {"deploy", "destroy"},
		"flyctl": {"deploy", "destroy"}, "heroku": nil, "railway": {"up"}, "systemctl": {"poweroff", "reboot"},
	}),
	leavingsFor(RuleRemote, doesRemote, map[string][]string{
		"ssh": nil, "scp": nil, "sftp": nil, "mosh": nil, "ftp": nil, "lftp": nil, "telnet": nil, "autossh": nil, "ssh-copy-id": nil, "rsync": nil, "rclone": nil,
	}),
	leavingsFor(RuleForge, doesForge, map[string][]string{"gh": nil, "glab": nil, "hub": nil, "tea": nil}),
	leavingsFor(RuleUpload, doesUpload, map[string][]string{"curl": nil, "wget": nil, "http": nil, "https": nil, "xh": nil}),
)

func leavingsFor(rule, does string, verbs map[string][]string) []leaving {
	var all []leaving
	for program, list := range verbs {
		if list == nil {
			all = append(all, leaving{rule, does, program, ""})
		}
		for _, verb := range list {
			all = append(all, leaving{rule, does, program, verb})
		}
	}
	return all
}

func byProgram(groups ...[]leaving) map[string][]leaving {
	all := map[string][]leaving{}
	for _, l := range slices.Concat(groups...) {
		all[l.program] = append(all[l.program], l)
	}
	return all
}

// carriers run a command that is among their arguments, as words or as a line.
var carriers = setOf("sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "busybox", "eval", "env", "sudo", "doas", "su", "nohup", "nice", "ionice", "time", "timeout",
	"exec", "command", "builtin", "stdbuf", "setsid", "xargs", "parallel", "watch", "find", "fd", "npx", "pnpx", "bunx", "uvx", "pipx", "function", "trap",
	"chronic", "flock", "script", "unshare", "strace", "ltrace", "entr", "coproc", "runuser", "gosu", "tini", "mise", "direnv", "chroot", "systemd-run")

// shells read a line from standard input if they are given none.
var shells = setOf("sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "source", ".")

// interpreters run programs in languages of their own, which nobody reads here.
var interpreters = lazyregexp.New(`^(python|pypy|node|deno|bun|perl|ruby|php|lua|awk|gawk|osascript|pwsh|powershell|tclsh|expect)[0-9.]*$`)

// grammar are the words of the shell that may come before a command.
var grammar = setOf("{", "}", "!", "if", "then", "else", "elif", "while", "until", "do", "fi", "done", "in")

func setOf(words ...string) map[string]bool {
	all := make(map[string]bool, len(words))
	for _, w := range words {
		all[w] = true
	}
	return all
}
