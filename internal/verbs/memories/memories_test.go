package memories_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/memories"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }

func add(t *testing.T, r *verbtest.Rig, a memories.Addition) memories.Explained {
	t.Helper()
	e, err := r.Memories.Add(t.Context(), verbtest.Ann, a)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func list(t *testing.T, r *verbtest.Rig, q memories.Query) (ns []int64) {
	t.Helper()
	found, err := r.Memories.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		ns = append(ns, v.N)
	}
	return ns
}

func TestAPersonAddsForgetsAndBringsBackAndTheChainHasIt(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		r.DefineLoop("ci", "true")
		first, second := add(t, r, memories.Addition{Text: "use tabs", Loop: "ci"}), add(t, r, memories.Addition{Text: "use tabs", Kind: "pitfall"})
		again := add(t, r, memories.Addition{Text: " Use  tabs. ", Kind: "fact"})
		if first.N != 1 || first.Loop != "ci" || second.N != 2 || second.Loop != "" || again.N != 2 || again.Kind != loop.MemoryFact || again.Text != "use tabs" {
			t.Errorf("added %+v, %+v and %+v", first, second, again)
		}
		if second.Confidence <= 50 || second.Word.By != verbtest.Ann || second.Created.IsZero() || second.Seen.IsZero() || second.Needs != 0 {
			t.Errorf("a person's entry is %+v", second)
		}
		gone, err := r.Memories.Forget(t.Context(), verbtest.Ann, "#2")
		if err != nil || gone.State != loop.MemoryForgotten || gone.Confidence != 0 {
			t.Errorf("forgotten: %+v, %v", gone, err)
		}
		if got := list(t, r, memories.Query{Limit: 9}); !slices.Equal(got, []int64{1}) {
			t.Errorf("listed after that: %v", got)
		}
		if got := list(t, r, memories.Query{Limit: 9, All: true}); !slices.Equal(got, []int64{2, 1}) {
			t.Errorf("all after that: %v", got)
		}
		back, err := r.Memories.Approve(t.Context(), verbtest.Ann, "2")
		if err != nil || back.State != loop.MemoryActive {
			t.Errorf("brought back: %+v, %v", back, err)
		}
		var links []string
		err = r.Store.View(t.Context(), func(rd *store.Reader) error {
			chain, err := rd.Chain(t.Context(), r.Workspace.ID)
			for _, l := range chain {
				if l.Kind == loop.LinkMemory {
					links = append(links, l.Body)
				}
			}
			return errors.Join(err, store.VerifyChain(chain))
		})
		if err != nil || len(links) != 5 {
			t.Fatalf("the chain has %q, %v", links, err)
		}
		for i, want := range []string{`"before":""`, `"before":""`, `"before":"active"`, `"after":"forgotten"`, `"before":"forgotten"`} {
			if !strings.Contains(links[i], want) || !strings.Contains(links[i], `"who":"Ann"`) || !strings.Contains(links[i], `"text":"use tabs"`) {
				t.Errorf("link %d is %s, want it to have %s", i, links[i], want)
			}
		}
	})
}

// A page is full although entries that it leaves out lie between those that it has.
func TestPagesLeaveOutWhatIsForgotten(t *testing.T) {
	r := verbtest.New(t)
	for _, text := range []string{"a", "b", "c", "d", "e", "f"} {
		add(t, r, memories.Addition{Text: text})
	}
	for _, n := range []string{"2", "4", "5"} {
		if _, err := r.Memories.Forget(t.Context(), verbtest.Ann, n); err != nil {
			t.Fatal(err)
		}
	}
	for size := 1; size <= 4; size++ {
		var got []int64
		for q := (memories.Query{Limit: size}); ; q.Before = got[len(got)-1] {
			page := list(t, r, q)
			if got = append(got, page...); len(page) < size {
				break
			}
		}
		if !slices.Equal(got, []int64{6, 3, 1}) {
			t.Errorf("in pages of %d: %v", size, got)
		}
	}
}

func TestWhatIsRefusedAddsNothing(t *testing.T) {
	t.Setenv("A_TOKEN", "hunter2hunter2")
	r := verbtest.NewOn(t, t.TempDir()+"/pawl.db")
	for name, a := range map[string]memories.Addition{
		"no text":                  {Text: " \n"},
		"a long text":              {Text: strings.Repeat("x", 1001)},
		"an unknown kind":          {Text: "x", Kind: "rumor"},
		"a loop that is not there": {Text: "x", Loop: "nobody"},
		"a secret":                 {Text: "curl -H hunter2hunter2", Kind: "command"},
	} {
		_, err := r.Memories.Add(t.Context(), verbtest.Ann, a)
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Fix == "" || strings.Contains(f.Error(), "hunter2") {
			t.Errorf("%s: %v, want a fault with a fix", name, err)
		}
	}
	if got := list(t, r, memories.Query{Limit: 9, All: true}); len(got) != 0 {
		t.Errorf("there are %v", got)
	}
}
