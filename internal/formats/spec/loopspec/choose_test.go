package loopspec

import "testing"

func TestTheTemplateIsChosenByTheWordsOfTheTask(t *testing.T) {
	for task, want := range map[string]string{
		"Keep the tests green.":                "keep-tests-green",
		"fix whatever is red":                  "keep-tests-green",
		"GREEN, always":                        "keep-tests-green",
		"Watch the tests and fix them":         "keep-tests-green",
		"Raise the test coverage of pkg/queue": "coverage-ratchet",
		"fix the lint findings":                "lint-debt",
		"Run golangci-lint until it is quiet":  "lint-debt",
		"Get rid of type errors":               "type-check-debt",
		"the type-checker is happy":            "type-check-debt",
		"make mypy pass":                       "type-check-debt",
		"Watch the release notes of Go":        "research-monitor",
		"monitor the queue":                    "research-monitor",
		"Research what others do":              "research-monitor",
		"Write a page about a prefix":          Skeleton,
		"a contest of types' names":            "type-check-debt",
		"the latest protest":                   Skeleton,
		"":                                     Skeleton,
	} {
		got, word := ChooseTemplate(task)
		if got != want || (word == "") != (want == Skeleton) {
			t.Errorf("%q: %s by %q, want %s", task, got, word, want)
		}
	}
}

func TestEachWordOfATemplateIsOfOneThatIsThere(t *testing.T) {
	for _, row := range templateWords {
		if _, err := FromTemplate(row.template, task()); err != nil {
			t.Error(err)
		}
		for _, w := range row.words {
			if got, _ := ChooseTemplate(w); got != row.template {
				t.Errorf("%q alone chooses %s, want %s", w, got, row.template)
			}
		}
	}
}

func TestWhatACommandIsGoodFor(t *testing.T) {
	for line, want := range map[string]Use{
		"go test ./...": UseTest, "npm test": UseTest, "make test": UseTest, "python -m pytest -q": UseTest, "npx tsc --noEmit": UseTypeCheck, "go vet ./...": UseTypeCheck,
		"npm run type-check": UseTypeCheck, "golangci-lint run": UseLint, "npm run lint": UseLint,
		"go test ./... && go vet ./...": UseNone, "make": UseNone, "echo latest": UseNone, "": UseNone, "go test -cover ./...": UseTest,
		"found=$(golangci-lint run 2>&1); echo": UseNone,
	} {
		if got := CommandUse(line, "verify"); got != want {
			t.Errorf("%q is for %q, want %q", line, got, want)
		}
	}
	if got := CommandUse("./cov.sh", "verify", "coverage"); got != UseCoverage {
		t.Errorf("what passed as the gate coverage is for %q", got)
	}
	for _, id := range []string{"lint-debt", "type-check-debt"} {
		for _, g := range fill(t, id, task()).Gates[1:2] {
			if got := CommandUse(GateText(g.Check), g.Name); got != UseNone {
				t.Errorf("the count of %s is for %q: it would be counted again", id, got)
			}
		}
	}
}
