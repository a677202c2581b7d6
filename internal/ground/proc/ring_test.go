package proc

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestARingKeepsTheFirstAndTheLastBytesOfWhateverIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(0, 20).Draw(t, "first")
		last := rapid.IntRange(0, 20).Draw(t, "last")
		chunks := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 50)).Draw(t, "chunks")
		r := NewRing(first, last)
		var all []byte
		for _, c := range chunks {
			if n, err := r.Write(c); n != len(c) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			all = append(all, c...)
		}
		want := all
		if len(all) > first+last {
			want = append(bytes.Clone(all[:first]), all[len(all)-last:]...)
		}
		if got := r.Bytes(); !bytes.Equal(got, want) {
			t.Errorf("kept %q, want %q", got, want)
		}
		if r.Total() != int64(len(all)) || r.droppedBytes() != int64(len(all)-len(want)) {
			t.Errorf("total %d, dropped %d of %d", r.Total(), r.droppedBytes(), len(all))
		}
		if s := r.String(); !utf8.ValidString(s) {
			t.Errorf("String = %q", s)
		}
	})
}

func TestARingPrintsValidText(t *testing.T) {
	cases := map[string]struct {
		first, last int
		in, want    string
	}{
		"nothing":                               {4, 4, "", ""},
		"what fits stays as it is":              {4, 4, "héllo!", "héllo!"},
		"a character across the seam is whole":  {1, 4, "é!", "é!"},
		"bytes that are no character":           {9, 9, "a\xff\xfeb", "a\uFFFDb"},
		"a gap says how much is missing":        {2, 2, "abcdefg", "ab\n[3 bytes dropped]\nfg"},
		"a character that the gap cuts in two":  {2, 2, "aéxxé!", "a\uFFFD\n[4 bytes dropped]\n\uFFFD!"},
		"a ring that keeps nothing still knows": {0, 0, "abc", "\n[3 bytes dropped]\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := NewRing(c.first, c.last)
			fmt.Fprint(r, c.in)
			if got := r.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheZeroRingKeepsNothing(t *testing.T) {
	var r Ring
	fmt.Fprint(&r, "abc")
	if r.Total() != 3 || r.droppedBytes() != 3 || len(r.Bytes()) != 0 {
		t.Errorf("total %d, dropped %d, kept %q", r.Total(), r.droppedBytes(), r.Bytes())
	}
}

func TestARingMayBeSharedByWritersAndReaders(t *testing.T) {
	r := NewRing(100, 100)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				fmt.Fprint(r, "0123456789")
				_ = r.String()
			}
		})
	}
	all.Wait()
	if r.Total() != 16000 || r.droppedBytes() != 15800 {
		t.Errorf("total %d, dropped %d", r.Total(), r.droppedBytes())
	}
}
