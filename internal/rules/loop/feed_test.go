package loop

import (
	"testing"

	"pgregory.net/rapid"
)

func TestACursorIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Cursor{Transaction: rapid.Uint64().Draw(t, "transaction"), Seq: rapid.Int64().Draw(t, "seq")}
		text, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Cursor
		if err := got.UnmarshalText(text); err != nil || got != want {
			t.Fatalf("%s is read as %v: %v", text, got, err)
		}
	})
}

func TestWhatIsNotACursorIsRefused(t *testing.T) {
	for _, text := range []string{"x", "1", "1.", ".1", "1.2.3", "1.2 ", "-1.2", "01.2", "1.2x"} {
		c := Cursor{Seq: 9}
		if err := c.UnmarshalText([]byte(text)); err == nil || c != (Cursor{}) {
			t.Errorf("%q is read as %v: %v", text, c, err)
		}
	}
	c := Cursor{Seq: 9}
	if err := c.UnmarshalText(nil); err != nil || c != (Cursor{}) {
		t.Errorf("nothing is read as %v: %v", c, err)
	}
}
