package git

import (
	"testing"

	"github.com/pawl-run/pawl/internal/git/object"
)

// The next process looks for what this one left, and may be of a newer version.
func TestTheTemporaryNameOfAFileIsAlwaysTheSame(t *testing.T) {
	one := changedPath{path: "a/b.txt"}
	one.now.ID = "0123456789abcdef0123456789abcdef01234567"
	if got, want := temporaryName(one), "a/.pawl-0123456789abcdef"; got != want {
		t.Errorf("temporaryName = %s, want %s", got, want)
	}
	one.now, one.old = object.Entry{}, one.now
	if got, want := temporaryName(one), "a/.pawl-0123456789abcdef"; got != want {
		t.Errorf("of a file that goes it is %s, want %s", got, want)
	}
}
