package gate

import (
	"fmt"
	"strings"
	"testing"
)

func TestOfTooManyNamesOnlySoManyAreKept(t *testing.T) {
	var n named
	for i := range maxNames + 1 {
		n.addName(fmt.Sprint(i), false)
	}
	n.addName("0", false) // It is kept already.
	if len(n.ran) != maxNames || n.lines != maxNames+2 {
		t.Errorf("%d of %d names are kept, want %d of %d", len(n.ran), n.lines, maxNames, maxNames+2)
	}
}

func TestANameThatNobodyGaveIsCountedAndNotKept(t *testing.T) {
	var n named
	longest := strings.Repeat("x", maxName)
	for _, name := range []string{"", longest, longest + "x"} {
		n.addName(name, false)
	}
	if _, kept := n.ran[longest]; !kept || len(n.ran) != 1 || n.lines != 3 {
		t.Errorf("%d of %d names are kept, want the longest allowed one", len(n.ran), n.lines)
	}
	if got := n.prefixedNames("go", 3); len(got) != 1 || got[0] != "go "+longest {
		t.Errorf("all = %d names, want the one", len(got))
	}
	if got := n.prefixedNames("go", 4); got != nil {
		t.Errorf("%d names although a result had none", len(got))
	}
}

func TestWhatIsRememberedOfPackagesOfGoIsBounded(t *testing.T) {
	var g goCount
	for i := range maxPackages + 1 {
		g.addEvent(event{Action: "fail", Package: fmt.Sprint("p", i), Test: "TestX"})
	}
	if len(g.guilty) != maxPackages || g.failed != maxPackages+1 {
		t.Errorf("%d packages with a failed test are remembered, of %d, want %d", len(g.guilty), g.failed, maxPackages)
	}
	for i := range maxBroken + 2 {
		g.addEvent(event{Action: "fail", Package: fmt.Sprint("p", i)})
	}
	if len(g.broken) != maxBroken+1 || g.failed != maxPackages+1 {
		t.Errorf("%d broken packages are remembered, want one more than %d; %d failed, want %d", len(g.broken), maxBroken, g.failed, maxPackages+1)
	}
	g.addEvent(event{Action: "fail", Package: fmt.Sprint("p", maxPackages)}) // It was one too many, so its test counts twice.
	if g.failed != maxPackages+2 {
		t.Errorf("%d failed, want %d", g.failed, maxPackages+2)
	}
}

func TestTestsThatWaitForTheNameOfTheirPackageAreBounded(t *testing.T) {
	var g goCount
	g.addLine("=== RUN   TestX")
	for i := range maxNames + 1 {
		g.addLine(fmt.Sprintf("--- PASS: Test%d (0.00s)", i))
	}
	g.addLine("ok  \texample.test/p\t0.1s")
	if len(g.ran) != maxNames || g.passed != maxNames+1 {
		t.Errorf("%d of %d tests have a name, want %d", len(g.ran), g.passed, maxNames)
	}
}
