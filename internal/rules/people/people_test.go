package people_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/people"
)

// example is an organisation with a chief, a lead, two members, and one who is nowhere.
func example(change ...func([]people.Person)) people.Team {
	list := []people.Person{
		{ID: "chief", Tier: 1},
		{ID: "lead", Tier: 2, Lead: true, Department: "engineering"},
		{ID: "dev", Tier: 2, Department: "engineering"},
		{ID: "qa", Tier: 2, Department: "engineering", ReportsTo: "dev"},
		{ID: "free", Tier: 2},
	}
	for _, c := range change {
		c(list)
	}
	return people.New(list, "chief", "Ada", map[string]string{"code": "dev", "lost": "nobody"})
}

func TestASuperiorIsWhoIsNamedElseTheLeadElseTheChiefElseTheOwner(t *testing.T) {
	with := func(i int, reportsTo string) people.Team {
		return example(func(l []people.Person) { l[i].ReportsTo = reportsTo })
	}
	alone := people.New([]people.Person{{ID: "dev", Department: "engineering"}}, "", "", nil)
	for name, c := range map[string]struct {
		team     people.Team
		id, want string
	}{
		"who is named":                                {example(), "qa", "dev"},
		"the lead of the department":                  {example(), "dev", "lead"},
		"a lead reports to the chief":                 {example(), "lead", "chief"},
		"without a department it is the chief":        {example(), "free", "chief"},
		"the chief reports to the owner":              {example(), "chief", ""},
		"without a chief it is the owner":             {alone, "dev", ""},
		"a name that nobody has counts as none":       {with(2, "nobody"), "dev", "lead"},
		"the owner by name":                           {with(2, "Ada"), "dev", ""},
		"the owner by the word":                       {with(2, "owner"), "dev", ""},
		"somebody who is not there reports to nobody": {example(), "nobody", ""},
	} {
		if got := c.team.Superior(c.id); got != c.want {
			t.Errorf("%s: the superior of %s is %q, want %q", name, c.id, got, c.want)
		}
	}
}

func TestAChainGoesUpToTheChiefAndReportsGoDown(t *testing.T) {
	team := example()
	if got, want := team.Chain("qa"), []string{"dev", "lead", "chief"}; !slices.Equal(got, want) {
		t.Errorf("chain of qa = %v, want %v", got, want)
	}
	if got, want := team.Reports("chief"), []string{"free", "lead"}; !slices.Equal(got, want) {
		t.Errorf("reports of the chief = %v, want %v", got, want)
	}
}

func TestATagGoesToItsAgentAndElseToTheChief(t *testing.T) {
	for name, c := range map[string]struct {
		tags []string
		want string
	}{
		"the first tag that has an agent": {[]string{"other", "code"}, "dev"},
		"an agent that is not there":      {[]string{"lost"}, "chief"},
		"no tag":                          {nil, "chief"},
	} {
		if got := example().Route(c.tags...); got != c.want {
			t.Errorf("%s: %v goes to %q, want %q", name, c.tags, got, c.want)
		}
	}
	if got := (people.Team{}).Route("code"); got != "" {
		t.Errorf("without anybody, code goes to %q", got)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	type problem = people.Problem
	for name, c := range map[string]struct {
		team people.Team
		want problem
	}{
		"a cycle, with its path": {
			example(func(l []people.Person) { l[1].ReportsTo = "qa" }),
			problem{Kind: people.ProblemCycle, Person: "dev", Named: "lead", Message: "reports_to goes around in a cycle: dev → lead → qa → dev"},
		},
		"who reports to themselves": {
			example(func(l []people.Person) { l[4].ReportsTo = "free" }),
			problem{Kind: people.ProblemCycle, Person: "free", Named: "free", Message: "reports_to goes around in a cycle: free → free"},
		},
		"an unknown superior": {
			example(func(l []people.Person) { l[4].ReportsTo = "boss" }),
			problem{Kind: people.ProblemUnknown, Person: "free", Named: "boss", Message: "free reports to boss, which is not an agent; name one, or owner"},
		},
		"two chiefs": {
			example(func(l []people.Person) { l[4].Tier = 1 }),
			problem{Kind: people.ProblemTwoChiefs, Person: "free", Named: "free", Message: "more than one agent is of tier 1, which only the chief is: chief, free"},
		},
		"one id twice": {
			example(func(l []people.Person) { l[4].ID = "dev" }),
			problem{Kind: people.ProblemSameID, Person: "dev", Named: "dev", Message: "two agents have the id dev; rename one of them"},
		},
		"hours of no day": {
			example(func(l []people.Person) { l[4].Hours = people.Hours{From: 9, Until: 25} }),
			problem{Kind: people.ProblemHours, Person: "free", Message: "the hours of free are not hours of a day from 0 to 24 in a known time zone"},
		},
		"a zone that is unknown": {
			example(func(l []people.Person) { l[4].Hours = people.Hours{From: 9, Until: 17, Zone: "Mars/North"} }),
			problem{Kind: people.ProblemHours, Person: "free", Message: "the hours of free are not hours of a day from 0 to 24 in a known time zone"},
		},
	} {
		found := slices.DeleteFunc(c.team.Check(), func(p problem) bool { return p.Named == "lost" })
		if diff := cmp.Diff([]problem{c.want}, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	lost := problem{Kind: people.ProblemUnknown, Named: "lost", Message: "the tag lost goes to nobody, which is not an agent; the chief gets what has it"}
	if diff := cmp.Diff([]problem{lost}, example().Check()); diff != "" {
		t.Errorf("a route to nobody (-want +got):\n%s", diff)
	}
	gone := people.New(nil, "chief", "", nil).Check()
	if len(gone) != 1 || gone[0].Kind != people.ProblemUnknown || gone[0].Named != "chief" {
		t.Errorf("a chief who is not there: %v", gone)
	}
}

func TestAChainEndsAndACycleIsFoundIfAndOnlyIfThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]people.Person, rapid.IntRange(1, 12).Draw(t, "people"))
		for i := range list {
			list[i] = people.Person{ID: strconv.Itoa(i), Lead: rapid.Bool().Draw(t, "lead"), Department: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "department")}
			if rapid.Bool().Draw(t, "named") {
				list[i].ReportsTo = strconv.Itoa(rapid.IntRange(0, len(list)).Draw(t, "to"))
			}
		}
		team := people.New(list, strconv.Itoa(rapid.IntRange(0, len(list)).Draw(t, "chief")), "", nil)
		circles := false
		for _, p := range list {
			at := p.ID
			for range list {
				at = team.Superior(at)
			}
			circles = circles || at != ""
			if len(team.Chain(p.ID)) > len(list) {
				t.Fatalf("the chain of %s is %v", p.ID, team.Chain(p.ID))
			}
		}
		found := slices.ContainsFunc(team.Check(), func(p people.Problem) bool { return p.Kind == people.ProblemCycle })
		if found != circles {
			t.Fatalf("a cycle is found: %v, want %v", found, circles)
		}
	})
}

func TestHoursBeginAtTheFirstAndEndBeforeTheLast(t *testing.T) {
	for name, c := range map[string]struct {
		hours people.Hours
		hour  int // in UTC
		want  bool
	}{
		"the first":               {people.Hours{From: 9, Until: 17}, 9, true},
		"before the first":        {people.Hours{From: 9, Until: 17}, 8, false},
		"the last is not in them": {people.Hours{From: 9, Until: 17}, 17, false},
		"none are all day":        {people.Hours{}, 3, true},
		"past midnight":           {people.Hours{From: 22, Until: 6}, 5, true},
		"in the day of a night":   {people.Hours{From: 22, Until: 6}, 12, false},
		"in a zone":               {people.Hours{From: 9, Until: 17, Zone: "Asia/Tokyo"}, 0, true},
	} {
		got, err := c.hours.Contain(time.Date(2026, 5, 4, c.hour, 0, 0, 0, time.UTC))
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}
