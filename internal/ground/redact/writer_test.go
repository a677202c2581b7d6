package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// streamed is text through a Writer in chunks of one size.
func streamed(tb testing.TB, r *Redactor, text string, size int) string {
	tb.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	for chunk := range chunks([]byte(text), size) {
		if n, err := w.Write(chunk); n != len(chunk) || err != nil {
			tb.Fatalf("Write = %d, %v", n, err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

func TestAStreamInChunksReadsLikeTheWhole(t *testing.T) {
	r := New(Secret{"KEY", "hunter2 \"hunter3\" hunter4"}, Secret{"HEX", "abababab12"}, Secret{"LONG", "hunter5 " + body40 + " hunter6"})
	texts := append([]string{
		"abababababababab1212 ababab", strings.Repeat("AKIA ", 50), "://a:b0b0b0b0b0@",
		shaped[0] + " hunter5 " + body40 + " hunter7", // what is found waits behind what may begin
		encoders["base64 in short lines"]("hunter2 \"hunter3\" hunter4") + "==",
	}, shaped...)
	for _, encode := range encoders {
		texts = append(texts, "a"+encode("hunter2 \"hunter3\" hunter4")+"b")
	}
	for _, text := range texts {
		for size := range 40 {
			if got, want := streamed(t, r, text, size+1), r.String(text); got != want {
				t.Errorf("%q in chunks of %d: got %q, want %q", text, size+1, got, want)
			}
		}
	}
}

func FuzzChunks(f *testing.F) {
	for i, text := range shaped {
		f.Add("hunter2hunter2", text+"hunter2hunter2", uint8(i))
	}
	for _, encode := range encoders {
		f.Add(`p4ss "w\rd'`, encode(`p4ss "w\rd'`), uint8(3))
	}
	f.Add("ababab1", "abababab1abababab", uint8(1))
	f.Add("]]]hunter[[[", "]]]hunter[[[]]]", uint8(2))
	f.Fuzz(func(t *testing.T, value, text string, size uint8) {
		r := New(Secret{"KEY", value})
		whole := r.String(text)
		if got := streamed(t, r, text, int(size)+1); got != whole {
			t.Fatalf("value %q in %q, chunks of %d: got %q, whole %q", value, text, int(size)+1, got, whole)
		}
		if twice := r.String(whole); twice != whole {
			t.Fatalf("value %q in %q: %q, twice %q", value, text, whole, twice)
		}
		if len(r.Refused()) == 0 && strings.Contains(whole, strings.TrimSpace(value)) {
			t.Fatalf("value %q passed: %q", value, whole)
		}
	})
}

func TestTextThatBeginsNoSecretIsNotHeldBack(t *testing.T) {
	r := New(append(someSecrets(50), Secret{"KEY", "hunter2hunter2"})...)
	for name, text := range map[string]string{
		"a line":         "the tests passed, all of them\n",
		"a record":       `{"type":"text","text":"go"}` + "\n",
		"a line of base": "c29tZXRoaW5nIGVsc2U=\n",
		"a question":     "Continue? [y/n] ",
		"a whole value":  "hunter2hunter2",
	} {
		var out bytes.Buffer
		w := r.Writer(&out)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), r.String(text); got != want {
			t.Errorf("%s: %q was passed on of %q", name, got, want)
		}
	}
}

func TestNoMoreIsHeldBackThanTheLongestSecret(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 64) + "!"
	r := New(Secret{"LONG", long})
	tests := map[string]struct {
		text string
		most int
	}{
		"the beginning of a value, again and again": {strings.Repeat(long[:1000], 40), len(long)},
		"a value without its end":                   {strings.Repeat(long[:1024], 40), len(long)},
		"a token that never ends":                   {"eyJ" + strings.Repeat("hbGci0J9", 1<<13), Window},
		"segments that never end":                   {jwtText + strings.Repeat("hbGci0J9", 1<<13), Window},
		"a key without a body":                      {strings.Repeat(pem("", "short\n"), 2000), Window},
		"a key that never ends":                     {"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(pemBody, 200), Window},
		"a password that never ends":                {"https://u:" + strings.Repeat("p4ssw0rd", 1<<13), Window},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := r.Writer(io.Discard)
			for chunk := range chunks([]byte(test.text), 100) {
				if _, err := w.Write(chunk); err != nil {
					t.Fatal(err)
				}
				if held := len(w.scan.buf) - w.scan.at; held > test.most+100 {
					t.Fatalf("%d bytes are held back, at most %d should be", held, test.most+100)
				}
				if kept := w.scan.at; kept > lookback {
					t.Fatalf("%d bytes that are decided are kept", kept)
				}
			}
		})
	}
}

func TestCloseRedactsWhatWasHeldBack(t *testing.T) {
	r := New(Secret{"KEY", "hunter2hunter2"})
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, chunk := range []string{"a hunter2", "hunter2 and gh", "p_" + body36, ""} {
		if _, err := io.WriteString(w, chunk); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "a [redacted:KEY] and [redacted:github-token]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := w.Write([]byte("more")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write after Close = %v", err)
	}
}

func TestCloseReportsThatWhatWasHeldBackIsLost(t *testing.T) {
	full := errors.New("the disk is full")
	w := New(Secret{"KEY", "hunter2hunter2"}).Writer(&broken{err: full})
	if _, err := io.WriteString(w, "hunter2"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); !errors.Is(err, full) {
			t.Errorf("Close = %v, want %v", err, full)
		}
	}
}

// broken takes some bytes and then no more.
type broken struct {
	bytes.Buffer
	left int
	err  error
}

func (b *broken) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	if n < len(p) {
		return n, b.err
	}
	return n, nil
}

func TestNothingIsPassedOnAfterAnError(t *testing.T) {
	full := errors.New("the disk is full")
	for name, test := range map[string]struct{ err, want error }{
		"an error":                   {full, full},
		"a short count and no error": {nil, io.ErrShortWrite},
	} {
		t.Run(name, func(t *testing.T) {
			to := &broken{left: 4, err: test.err}
			w := New().Writer(to)
			if _, err := io.WriteString(w, "one line\n"); !errors.Is(err, test.want) {
				t.Errorf("Write = %v, want %v", err, test.want)
			}
			to.left = 100
			if _, err := io.WriteString(w, "another\n"); !errors.Is(err, test.want) {
				t.Errorf("second Write = %v, want %v", err, test.want)
			}
			if err := w.Close(); !errors.Is(err, test.want) {
				t.Errorf("Close = %v, want %v", err, test.want)
			}
			if got := to.String(); got != "one " {
				t.Errorf("passed on: %q", got)
			}
		})
	}
}

func TestOneRedactorServesManyStreams(t *testing.T) {
	r := New(someSecrets(20)...)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			value := someSecrets(20)[i].Value
			for size := 1; size < 60; size += 7 {
				text := fmt.Sprintf("%d %s %x %s.", i, value, value, shaped[i%len(shaped)])
				if got, want := streamed(t, r, text, size), r.String(text); got != want || strings.Contains(got, value) {
					t.Errorf("got %q, want %q", got, want)
				}
				if found := r.Find([]byte(text)); len(found) < 3 {
					t.Errorf("found %v in %q", found, text)
				}
			}
		})
	}
	group.Wait()
}
