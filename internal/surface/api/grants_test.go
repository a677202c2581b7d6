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
		if !v.Writes && v.Reaches(read) != v.Reaches(post) {
			t.Errorf("%s reads, and is granted to one of read and post only", v.Name)
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
		if v.Reaches(g) != (v.SubjectOf != nil) {
			t.Errorf("%s is reached: %t", v.Name, v.Reaches(g))
		}
		if v.SubjectOf == nil {
			continue
		}
		s := v.SubjectOf(v.Request())
		if s.Loop != "" || s.Run != "" {
			t.Errorf("an empty request of %s is about %+v", v.Name, s)
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
