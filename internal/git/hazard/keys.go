package hazard

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitconfig"
)

// executing are the keys whose values some git command starts, as section and
// name: what stands between the two plays no part.
var executing = wordSet(`
	core.fsmonitor core.hookspath core.sshcommand core.gitproxy core.pager core.editor core.askpass
	core.alternaterefscommand sequence.editor interactive.difffilter
	filter.clean filter.smudge filter.process diff.command diff.textconv diff.external merge.driver
	gpg.program gpg.defaultkeycommand credential.helper
	remote.uploadpack remote.receivepack remote.vcs uploadpack.packobjectshook receive.procreceiverefs
	gc.recentobjectshook hook.command trailer.command trailer.cmd tar.command
	difftool.cmd difftool.path mergetool.cmd mergetool.path guitool.cmd
	browser.cmd browser.path man.cmd man.path web.browser help.browser instaweb.browser instaweb.httpd
	sendemail.smtpserver sendemail.sendmailcmd sendemail.tocmd sendemail.cccmd sendemail.headercmd imap.tunnel
	lfs.path lfs.clean lfs.smudge lfs.standalonetransferagent`)

// leading are the keys whose values lead a git command to another place.
var leading = wordSet(`
	core.worktree core.attributesfile init.templatedir remote.proxy remote.promisor url.insteadof
	url.pushinsteadof http.proxy http.sslverify http.cookiefile fetch.bundleuri bundle.uri
	trace2.eventtarget trace2.normaltarget trace2.perftarget`)

// extensions that change nothing of what is read here.
var knownExtensions = wordSet(`noop noop-v1 objectformat compatobjectformat relativeworktrees preciousobjects`)

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// keyHazard returns the kind of hazard that a setting is and why, or nothing.
// Includes are judged by where they lead, elsewhere.
func keyHazard(s gitconfig.Setting) (kind, why string) {
	section, _, name := s.Split()
	key := section + "." + name
	switch {
	case section == "alias", section == "pager":
		return Executes, "git starts it in place of, or beside, one of its commands"
	case executing[key]:
		return Executes, "git starts it as a program"
	case key == "submodule.update" && strings.HasPrefix(s.Value, "!"):
		return Executes, "git starts it as a program"
	case (key == "remote.url" || key == "remote.pushurl") && isHelperURL(s.Value):
		return Executes, "the address names a transport program"
	case section == "protocol" && name == "allow":
		return Leads, "it allows transports that git does not allow by itself"
	case section == "extensions" && !knownExtensions[name]:
		return Extension, "the repository format is not the plain one"
	case leading[key]:
		return Leads, "it leads git to another place"
	}
	return "", ""
}

// isHelperURL reports whether git would start git-remote-NAME for an address,
// or read it as an option.
func isHelperURL(s string) bool {
	scheme, _, helper := strings.Cut(s, "::")
	return strings.HasPrefix(s, "-") || helper && !strings.ContainsAny(scheme, "/:")
}

// isInclude reports whether a setting names another file.
func isInclude(s gitconfig.Setting) bool {
	section, _, name := s.Split()
	return name == "path" && slices.Contains([]string{"include", "includeif"}, section)
}
