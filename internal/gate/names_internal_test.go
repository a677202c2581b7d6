package gate

import (
	"fmt"
	"strings"
	"testing"
)

func TestOfTooManyNamesOnlySoManyAreKept(t *testing.T) {
	var n named
	for i := range maxNames + 1 {
		n.saw(fmt.Sprint(i))
	}
	n.saw("0") // It is kept already.
	if len(n.ran) != maxNames || n.lines != maxNames+2 {
		t.Errorf("%d of %d names are kept, want %d of %d", len(n.ran), n.lines, maxNames, maxNames+2)
	}
}

func TestANameThatNobodyGaveIsCountedAndNotKept(t *testing.T) {
	var n named
	longest := strings.Repeat("x", maxName)
	for _, name := range []string{"", longest, longest + "x"} {
		n.saw(name)
	}
	if _, kept := n.ran[longest]; !kept || len(n.ran) != 1 || n.lines != 3 {
		t.Errorf("%d of %d names are kept, want the longest allowed one", len(n.ran), n.lines)
	}
	if got := n.all("go", 3); len(got) != 1 || got[0] != "go "+longest {
		t.Errorf("all = %d names, want the one", len(got))
	}
	if got := n.all("go", 4); got != nil {
		t.Errorf("%d names although a result had none", len(got))
	}
}
