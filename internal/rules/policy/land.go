package policy

import (
	"fmt"
	"slices"
	"strings"
)

// The classes of changes that a definition may let land without a human, as
// its key autoland names them.
const (
	ClassGreenPR       Code = "green-pr"       // gates and guard passed, on a feature branch
	ClassLockfilePatch Code = "lockfile-patch" // nothing but patch-level versions, gates and guard passed
	ClassDraft         Code = "draft"          // opened as a draft on a feature branch
	ClassLabel         Code = "label"
	ClassComment       Code = "comment"
)

// The classes that never land without a human, whatever the definition allows.
const (
	ClassForcePush     Code = "force_push"
	ClassMainPush      Code = "main_push"
	ClassMassDeletion  Code = "mass_deletion"
	ClassDeletesOlder  Code = "deletes_older" // a file that the base has
	ClassAgentSettings Code = "agent_settings"
	ClassDeploy        Code = "deploy"
	ClassMigration     Code = "migration"
	ClassPermissions   Code = "permissions"
	ClassCI            Code = "ci"
	ClassPipesDownload Code = "pipes_download"
	ClassUnread        Code = "unread" // content that the caller did not read could be anything
)

// MassDeletion is how many deleted or emptied files are many. More than half
// of the base's files are many, too.
const MassDeletion = 10

// ManyFiles is from how many files of the base on MassDeletion is less than
// half of them: a caller need not count any further.
const ManyFiles = 2 * MassDeletion

// Action is what would be done with a change.
type Action string

// The actions. Every other one is in no class.
const (
	ActionLand    Action = "land"    // move a local branch
	ActionPush    Action = "push"    // move a branch of a remote
	ActionOpenPR  Action = "open_pr" // push a branch and ask for review
	ActionDraftPR Action = "draft_pr"
	ActionLabel   Action = "label"
	ActionComment Action = "comment"
)

// ChangeSet is one change and what is to be done with it.
type ChangeSet struct {
	Changes []Change
	Files   int // in the base, or ManyFiles if there are more; 0 if that is not known
	Action  Action
	Branch  string // that the action moves, with or without refs/heads/
	Main    string // the branch that the workspace's runs start from
	Force   bool   // the branch's tip is not an ancestor of what it is moved to
	Green   bool   // gates and guard passed on exactly this tree
}

// Classes are what a ChangeSet is. Each verdict's code is the class, and its
// path the first one that decided, empty if the action did.
type Classes struct {
	May   []Verdict // may land without a human if the definition names one of them
	Never []Verdict // one of them is enough to need a human
}

// Classify says which classes a change is in. What is uncertain is in no class
// of May: a lockfile that is not understood is not a lockfile-patch.
func Classify(c ChangeSet) Classes {
	var all Classes
	all.Never = append(all.Never, neverByAction(c)...)
	all.Never = append(all.Never, neverByDeletion(c)...)
	all.Never = append(all.Never, neverByPath(c.Changes)...)
	all.Never = append(all.Never, neverByContent(c.Changes)...)
	all.May = mayLand(c)
	return all
}

// Auto answers whether a change may land without a human, for a definition's
// autoland list. Never goes first, and the zero Classes may not.
func (c Classes) Auto(autoland []string) Verdict {
	if len(c.Never) > 0 {
		v := c.Never[0]
		v.Allowed = false
		return v
	}
	for _, v := range c.May {
		if slices.Contains(autoland, string(v.Code)) {
			return v
		}
	}
	var is []string
	for _, v := range c.May {
		is = append(is, string(v.Code))
	}
	return Verdict{Code: CodeScope, Rule: fmt.Sprintf("autoland allows [%s], and the change is [%s]", strings.Join(autoland, " "), strings.Join(is, " "))}
}

func mayLand(c ChangeSet) []Verdict {
	is := func(class Code, rule string) Verdict { return Verdict{Allowed: true, Code: class, Rule: rule} }
	switch c.Action {
	case ActionLabel, ActionComment:
		if len(c.Changes) > 0 {
			return nil
		}
		return []Verdict{is(Code(c.Action), "it changes no file")}
	case ActionDraftPR:
		if mainBranch(c) != "" {
			return nil
		}
		return []Verdict{is(ClassDraft, "a draft on "+c.Branch)}
	case ActionLand, ActionPush, ActionOpenPR:
	default:
		return nil
	}
	if !c.Green || len(c.Changes) == 0 {
		return nil
	}
	var may []Verdict
	if c.Action != ActionLand && mainBranch(c) == "" {
		may = append(may, is(ClassGreenPR, "gates and guard passed on "+c.Branch))
	}
	if v := lockfilePatch(c.Changes); v.Allowed {
		may = append(may, v)
	}
	return may
}

// LockfilePatch says whether nothing but lockfiles and their manifests changed,
// and every version by its patch level only; if not, with the path and the
// reason.
func LockfilePatch(changes []Change) Verdict { return lockfilePatch(changes) }

// mainNames are branches that others build on or deploy from, whatever a
// workspace calls its own.
var mainNames = []string{
	"main", "master", "trunk", "mainline", "default", "develop", "development", "production", "prod", "live", "stable", "staging",
	"release", "release/**", "releases/**", "release-*", "deploy", "deploy/**", "gh-pages",
}

// mainBranch says why the branch is not one of the loop's own; empty if it is.
func mainBranch(c ChangeSet) string {
	short := func(ref string) string { return foldName(strings.TrimPrefix(ref, "refs/heads/")) }
	name := short(c.Branch)
	switch {
	case name == "":
		return "the branch is not known"
	case name == short(c.Main):
		return c.Branch + " is the branch that runs start from"
	}
	if glob := firstMatch(mainNames, name); glob != "" {
		return c.Branch + " is a branch that others build on"
	}
	return ""
}

func neverByAction(c ChangeSet) []Verdict {
	var never []Verdict
	if c.Force {
		never = append(never, Verdict{Code: ClassForcePush, Rule: "commits of " + c.Branch + " would be lost"})
	}
	moves := c.Action != ActionLabel && c.Action != ActionComment
	if why := mainBranch(c); moves && why != "" {
		never = append(never, Verdict{Code: ClassMainPush, Rule: why})
	}
	return never
}

func neverByDeletion(c ChangeSet) []Verdict {
	gone, first := 0, ""
	for _, change := range c.Changes {
		if change.Old.exists() && isEmptied(change) {
			if gone++; gone == 1 {
				first = change.Path
			}
		}
	}
	if gone == 0 {
		return nil
	}
	never := []Verdict{{Path: first, Code: ClassDeletesOlder, Rule: "it was there before the run"}}
	if gone >= MassDeletion || c.Files > 0 && 2*gone > c.Files {
		rule := fmt.Sprintf("%d files are deleted or emptied; %d, or more than half of all, are many", gone, MassDeletion)
		never = append([]Verdict{{Path: first, Code: ClassMassDeletion, Rule: rule}}, never...)
	}
	return never
}

// isEmptied reports whether a change deletes a file or leaves nothing in it.
func isEmptied(c Change) bool {
	blank := c.New.Size == 0 || c.New.read() && strings.TrimSpace(c.New.Text) == ""
	return !c.New.exists() || blank && c.Old.Size > 0
}

// high are paths with a blast radius beyond the repository.
var high = []struct {
	class Code
	globs []string
}{
	{ClassDeploy, []string{
		"**/deploy/**", "**/deployment/**", "**/deployments/**", "**/deploy.*", "**/deploy-*", "**/deploy_*", "**/release.sh", "**/k8s/**", "**/kubernetes/**",
		"**/kube/**", "**/helm/**", "**/charts/**", "**/chart.yaml", "**/helmfile*", "**/kustomization.y*ml", "**/kustomize/**", "**/argocd/**", "**/argo/**",
		"**/flux/**", "**/fluxcd/**", "**/manifests/**", "**/terraform/**", "**/*.tf", "**/*.tf.json", "**/*.tfvars*", "**/*.tofu", "**/*.hcl", "**/pulumi*.y*ml",
		"**/pulumi/**", "**/cdk.json", "**/cdk/**", "**/serverless.*", "**/cloudformation/**", "**/*.bicep", "**/ansible/**", "**/playbooks/**", "**/infra/**",
		"**/infrastructure/**", "**/dockerfile*", "**/*.dockerfile", "**/containerfile*", "**/docker-compose*", "**/compose*.y*ml", "**/procfile*", "**/app.yaml",
		"**/app.yml", "**/fly*.toml", "**/vercel.json", "**/netlify.toml", "**/render.yaml", "**/railway.*", "**/wrangler.*", "**/skaffold.y*ml", "**/capfile",
		"**/.goreleaser.y*ml", "**/.releaserc*", "**/nomad/**", "**/*.nomad*", "**/systemd/**", "**/*.service", "**/nginx*.conf", "**/crontab*", "**/firebase.json",
	}},
	{ClassMigration, []string{
		"**/migrations/**", "**/migration/**", "**/migrate/**", "**/alembic/**", "**/flyway/**", "**/liquibase/**", "**/changelog-master.*", "**/db/schema.*",
		"**/schema.sql", "**/structure.sql", "**/schema.prisma", "**/*migration*.sql", "**/*migrate*.sql",
	}},
	{ClassPermissions, []string{
		"**/iam/**", "**/iam.*", "**/iam-*", "**/iam_*", "**/*-iam.*", "**/*_iam.*", "**/*-iam-*", "**/*_iam_*", "**/rbac/**", "**/*rbac*", "**/permissions/**",
		"**/permissions.*", "**/*rolebinding*", "**/*role-binding*", "**/*role_binding*", "**/*serviceaccount*", "**/codeowners", "**/owners", "**/owners_aliases",
		"**/.github/settings.y*ml", "**/sudoers*", "**/authorized_keys*", "**/firestore.rules", "**/storage.rules", "**/*.rego", "**/*bucket-policy*", "**/*.pem",
	}},
}

func neverByPath(changes []Change) []Verdict {
	var never []Verdict
	for _, c := range changes {
		for _, spelling := range spellings(c.Path) {
			if g := firstMatch([]string{".loops/**"}, spelling); g != "" {
				never = append(never, Verdict{Path: c.Path, Code: ClassAgentSettings, Rule: g})
			}
			for _, kind := range high {
				if i := slices.IndexFunc(kind.globs, func(g string) bool { return match(g, spelling) }); i >= 0 {
					never = append(never, Verdict{Path: c.Path, Code: kind.class, Rule: kind.globs[i]})
				}
			}
		}
		for _, g := range guardsOf(c.Path) {
			switch g.group {
			case "agent":
				never = append(never, Verdict{Path: c.Path, Code: ClassAgentSettings, Rule: g.glob})
			case "ci":
				never = append(never, Verdict{Path: c.Path, Code: ClassCI, Rule: g.glob})
			}
		}
	}
	return never
}

func neverByContent(changes []Change) []Verdict {
	var never []Verdict
	for _, c := range changes {
		switch {
		case !c.New.exists():
		case !c.New.read() || !c.Old.read():
			never = append(never, Verdict{Path: c.Path, Code: ClassUnread, Rule: "its content was not read"})
		default:
			if line := pipedDownload(c.Old.Text, c.New.Text); line != "" {
				never = append(never, Verdict{Path: c.Path, Code: ClassPipesDownload, Rule: fmt.Sprintf("what is downloaded is run: %.80q", line)})
			}
		}
	}
	return never
}
