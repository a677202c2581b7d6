package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// mayInside are the verbs with which an agent inside of a run may change something. Whoever adds one
// says so here.
var mayInside = []string{
	"specs.create", "specs.flag", "specs.step", "specs.queue", "specs.stop", "runs.start", "runs.fire", "runs.stop", "runs.recover", "loops.pause",
	"messages.send", "tasks.create", "tasks.comment", "tasks.set", "tasks.move", "tasks.assign", "tasks.claim",
}

// seenInside are the verbs by which an agent inside of a run may read: they tell of its own workspace, and of
// nothing that may contain secrets.
var seenInside = []string{
	"runs.list", "runs.show", "runs.why", "runs.diff", "runs.events", "runs.head", "runs.await", "runs.live", "loops.list", "loops.show",
	"loops.next", "loops.plans", "loops.check", "loops.estimate", "specs.list", "specs.get", "specs.export", "boots.status", "boots.log",
	"orgs.show", "boards.list", "boards.show", "boards.activity", "boards.errors", "tasks.list", "tasks.show", "tasks.why",
	"members.list", "members.show", "messages.list", "messages.show", "resources.list", "resources.show", "approvals.list",
	"approvals.show", "budgets.show", "logs.show", "memory.list", "memory.why", "agents.list", "agents.show",
}

// reachedByGrants are the verbs that a caller with a grant of loops may ask for.
var reachedByGrants = []string{
	"runs.list", "runs.show", "runs.why", "runs.diff", "runs.events", "runs.head", "runs.await", "runs.live", "runs.plan", "runs.start",
	"runs.fire", "runs.recover", "runs.stop", "loops.list", "loops.show", "loops.next", "loops.plans", "loops.pause", "loops.resume",
	"loops.check", "loops.doctor", "loops.estimate", "specs.list", "specs.get", "specs.flag", "specs.export", "specs.step",
	"specs.queue", "specs.stop", "approvals.list", "approvals.show", "budgets.show", "logs.show", "agents.list", "agents.show",
}

// tellsOfNoLoop are those of them whose result has nothing to cut: it says nothing of a loop that is not granted.
var tellsOfNoLoop = []string{
	"runs.head", "runs.live", "agents.list", "agents.show",
}

// TestAttack101InsideOfARunNoVerbDoesWhatOnlyAPersonMay holds each verb against what is granted.
func TestAttack101InsideOfARunNoVerbDoesWhatOnlyAPersonMay(t *testing.T) {
	t.Parallel()
	read := &loop.Grant{Inside: &loop.Inside{Tools: loop.PawlToolsRead}}
	post := &loop.Grant{Inside: &loop.Inside{Tools: loop.PawlToolsPost}}
	for _, v := range Verbs() {
		may := slices.Contains(mayInside, v.Name)
		if v.Writes && v.Reaches(read) {
			t.Errorf("with read it may %s", v.Does)
		}
		if v.Writes && v.Reaches(post) != may {
			t.Errorf("with post %s is %t, want %t", v.Name, v.Reaches(post), may)
		}
		if v.Writes && v.Reaches(post) && v.RefusesAgents() != "" {
			t.Errorf("%s is granted, and no agent may do it", v.Name)
		}
		seen := slices.Contains(seenInside, v.Name)
		if !v.Writes && (v.Reaches(read) != seen || v.Reaches(post) != seen) {
			t.Errorf("%s is seen with read: %t, and with post: %t; want %t", v.Name, v.Reaches(read), v.Reaches(post), seen)
		}
		for _, hidden := range []string{"notices.", "nodes.", "snapshots."} {
			if strings.HasPrefix(v.Name, hidden) && v.Reaches(post) {
				t.Errorf("%s is granted", v.Name)
			}
		}
		if may && v.PostLimit == "" && v.Name != verb.RecoverRuns.Name {
			t.Errorf("nobody says what %s is limited to", v.Name)
		}
	}
}

// TestAGrantOfLoopsReachesNoVerbThatIsAboutMore holds that each verb that it reaches says what it is
// about.
func TestAGrantOfLoopsReachesNoVerbThatIsAboutMore(t *testing.T) {
	t.Parallel()
	g := &loop.Grant{Loops: []loop.GrantedLoop{{Workspace: "ws_1", Loop: "a"}}}
	for _, v := range Verbs() {
		if want := slices.Contains(reachedByGrants, v.Name); v.Reaches(g) != want {
			t.Errorf("%s is reached: %t, want %t", v.Name, v.Reaches(g), want)
		}
		if v.SubjectOf == nil {
			continue
		}
		s := v.SubjectOf(v.Request())
		if s.Loop != "" || s.Run != "" {
			t.Errorf("an empty request of %s is about %+v", v.Name, s)
		}
		if s.All && !v.Writes && v.IsCut() == slices.Contains(tellsOfNoLoop, v.Name) {
			t.Errorf("the result of %s is cut to a grant: %t", v.Name, v.IsCut())
		}
		if s.All && v.Writes && v.Name != verb.RecoverRuns.Name {
			t.Errorf("%s changes all loops at once, and is reached", v.Name)
		}
	}
	for _, name := range []string{"specs.create", "tasks.create", "messages.send", "boards.list", "nodes.list", "memory.list"} {
		for _, v := range Verbs() {
			if v.Name == name && v.Reaches(g) {
				t.Errorf("%s is reached, and is about more than the loops of the grant", name)
			}
		}
	}
}
