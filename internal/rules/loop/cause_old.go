package loop

import "strings"

// This file reads what pawl wrote before the cause of an outcome was stored: rows of runs
// without one. Nothing else may take a text apart that is about a run; internal/arch holds
// that.

// CauseOf returns the cause of a run that was stored without one. It reads the run's reason,
// its detail and the stored subject.
func CauseOf(r Run, subject string) (c Cause) {
	address, opened := strings.CutPrefix(subject, pullRequestKey)
	branch, unpushed := strings.CutPrefix(subject, unpushedKey)
	to, ungated := strings.CutPrefix(subject, ungatedKey)
	switch {
	case opened && r.Outcome == OutcomeProposed && r.Reason == ReasonApproved:
		c.PullRequest = address
	case unpushed:
		c.Unpushed = branch
	case ungated:
		c.Ungated = to
	default:
		c.Item = subject
	}
	if r.Reason == ReasonKillSwitch {
		c.Switch = switchNamed(r.Detail)
	}
	if r.Reason == ReasonUnfilled {
		_, c.Fetch, _ = strings.Cut(r.Detail, FetchMark)
	}
	c.GitChange = r.Reason == ReasonGitConfig && strings.HasPrefix(r.Detail, GitChanged)
	return c
}

// switchNamed returns the switch that the detail of a paused run names, or the zero KillSwitch.
func switchNamed(text string) (k KillSwitch) {
	_, text = cutPast(text, "the kill switch is set: ")
	late, text := cutPast(text, "the kill switch was set: ")
	_, text = cutPast(text, ErrPaused.Error()+": ")
	for _, scope := range []SwitchScope{SwitchStore, SwitchWorkspace, SwitchLoop} {
		if strings.Contains(text, scope.Command()) || scope == SwitchLoop && strings.HasPrefix(strings.TrimPrefix(text, "`"), "pawl pause") {
			k.Scope = scope
			return k
		}
	}
	if on, labeled := strings.CutPrefix(text, labelWords+" is on "); labeled {
		k.Label = on
		return k
	}
	if why, unread := strings.CutPrefix(text, labelWords+unreadLabel); unread {
		k.Unread = why
		return k
	}
	file, why, unread := strings.Cut(text, unreadFile)
	if !unread && late {
		file, _, _ = strings.Cut(text, ": ")
	}
	if strings.Contains(file, "/") && !strings.ContainsAny(file, " `") {
		k.Path, k.Unread = file, strings.TrimSuffix(why, ")")
	}
	return k
}

// cutPast returns what follows a mark, and text itself if it has none.
func cutPast(text, mark string) (found bool, rest string) {
	_, after, found := strings.Cut(text, mark)
	if !found {
		return false, text
	}
	return true, after
}
