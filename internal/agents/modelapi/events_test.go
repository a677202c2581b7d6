package modelapi

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func data(t *testing.T, text string) []string {
	t.Helper()
	all, err := dataOf(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func dataOf(in io.Reader) (all []string, err error) {
	for e := NewEventReader(&unread{in, nil}); ; {
		_, data, err := e.Next()
		if len(data) > 0 {
			all = append(all, string(data))
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// unread holds that nobody reads on behind the end of a stream, which would never end.
type unread struct {
	io.Reader
	err error
}

func (u *unread) Read(p []byte) (n int, err error) {
	if u.err != nil {
		panic("read again after " + u.err.Error())
	}
	n, u.err = u.Reader.Read(p)
	return n, u.err
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one after the other":        {"event: a\ndata: 1\n\ndata: 2\n\n", []string{"1", "2"}},
		"without a space":            {"data:1\n\n", []string{"1"}},
		"more than one line":         {"data: 1\ndata: 2\n\n", []string{"1\n2"}},
		"ends of lines of Windows":   {"data: 1\r\n\r\ndata: 2\r\n\r\n", []string{"1", "2"}},
		"comments and other fields":  {": ping\nid: 7\nretry: 5\ndata: 1\n\n: ping\n\n", []string{"1"}},
		"a last one without its end": {"data: 1", []string{"1"}},
		"nothing":                    {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, data(t, c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// slow gives a few bytes at a time.
type slow struct{ r io.Reader }

func (s slow) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 1+rand.IntN(7))]) }

func TestEventsDoNotDependOnHowTheyArrive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"data: a\n", "data:b\r\n", "\n", ": c\n", "event: d\n", "data: ü"})).Draw(rt, "lines"), "")
		whole, err1 := dataOf(strings.NewReader(text))
		pieces, err2 := dataOf(slow{strings.NewReader(text)})
		if err1 != nil || err2 != nil || !cmp.Equal(whole, pieces) {
			rt.Fatalf("whole %q %v, in pieces %q %v", whole, err1, pieces, err2)
		}
	})
}

func TestAnEventThatIsTooLongIsAnError(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), io.LimitReader(zeros{}, mostEvent+64<<10))
	if _, err := dataOf(endless); !errors.Is(err, ErrHugeEvent) {
		t.Errorf("it is %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
