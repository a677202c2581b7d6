package frame_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/surface/mcp/frame"
)

func TestAFewCallsRunAtOnceTheNextWaitAndTheOthersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		const all = 10_000
		for i := range all {
			s.write(call(fmt.Sprint(i), "wait", "w"))
		}
		synctest.Wait()
		if got := s.begun.Load(); got != frame.AtOnce {
			t.Errorf("%d calls run at once, want %d", got, frame.AtOnce)
		}
		answered := map[string]int{}
		refused := 0
		for range all - frame.AtOnce - frame.MaxWaiting {
			a := s.read()
			answered[string(a.ID)]++
			if a.Error != nil && a.Error.Code == busy {
				refused++
			}
		}
		if refused != all-frame.AtOnce-frame.MaxWaiting {
			t.Errorf("%d calls are refused, want all but %d", refused, frame.AtOnce+frame.MaxWaiting)
		}
		s.ping() // is not kept waiting
		close(s.release)
		for range frame.AtOnce + frame.MaxWaiting {
			a := s.read()
			answered[string(a.ID)]++
			if a.Error != nil {
				t.Errorf("a call that waited is answered %s", a.line)
			}
		}
		if len(answered) != all {
			t.Errorf("%d calls of %d are answered", len(answered), all)
		}
		if got := s.begun.Load(); got != frame.AtOnce+frame.MaxWaiting {
			t.Errorf("%d calls ran, want %d", got, frame.AtOnce+frame.MaxWaiting)
		}
		s.end()
	})
}

func TestTheBytesOfCallsWithoutAnAnswerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, client := io.Pipe()
		var out bytes.Buffer
		c, err := (&frame.Transport{Reader: in, Writer: &out}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		big := call("?", "wait", strings.Repeat("b", 4_000_000)) + "\n"
		for i := range 6 {
			if _, err := io.WriteString(client, strings.Replace(big, "?", fmt.Sprint(i), 1)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		// 4 of them are 16 MB.
		if got := strings.Count(out.String(), "the server is busy"); got != 6-4 {
			t.Errorf("%d calls of 6 are refused, want all but 4", got)
		}
	})
}

func TestACallMayNotHaveTheIDOfOneThatIsStillOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		s.write(call("1", "wait", "first"))
		for _, same := range []string{"1", "1.0", "10e-1"} {
			s.write(call(same, "echo", "second"))
			if a := s.read(); a.Error == nil || a.Error.Code != invalid || string(a.ID) != "null" || !strings.Contains(a.Error.Message, "id 1 ") {
				t.Errorf("the id %s is answered %s", same, a.line)
			}
		}
		// A line that is wrong in another way must not be taken for its answer either.
		s.write(`{"jsonrpc":"1.0","id":1,"method":"ping"}`)
		if a := s.read(); a.Error == nil || string(a.ID) != "null" {
			t.Errorf("a wrong line with the id of an open call is answered %s", a.line)
		}
		s.write(call(`"1"`, "echo", "a string is another id"))
		if a := s.read(); a.Error != nil || string(a.ID) != `"1"` {
			t.Errorf("the id \"1\" is answered %s", a.line)
		}
		s.release <- struct{}{}
		if a := s.read(); string(a.ID) != "1" || !strings.Contains(a.line, "first") {
			t.Errorf("the first call is answered %s", a.line)
		}
		s.write(call("1", "echo", "again"))
		if a := s.read(); string(a.ID) != "1" || !strings.Contains(a.line, "again") {
			t.Errorf("an id that is free again is answered %s", a.line)
		}
		s.end()
	})
}

func TestACallThatIsCancelledInTheQueueNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		for i := range frame.AtOnce + 2 {
			s.write(call(fmt.Sprint(i), "wait", "w"))
		}
		synctest.Wait()
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`
		s.write(fmt.Sprintf(cancel, frame.AtOnce)) // the first in the queue
		if a := s.read(); string(a.ID) != fmt.Sprint(frame.AtOnce) || a.Error == nil {
			t.Errorf("the cancelled call is answered %s", a.line)
		}
		s.write(fmt.Sprintf(cancel, 0)) // one that runs: the server hears of it
		if a := s.read(); string(a.ID) != "0" {
			t.Errorf("the cancelled call that ran is answered %s", a.line)
		}
		close(s.release)
		if rest, err := s.close(); len(rest) != frame.AtOnce || err != nil {
			t.Errorf("%d more calls are answered (%v), want %d", len(rest), err, frame.AtOnce)
		}
		if got := s.begun.Load(); got != frame.AtOnce+1 {
			t.Errorf("%d calls ran, want %d", got, frame.AtOnce+1)
		}
	})
}

func TestCallsAreAnsweredAfterTheEndOfTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{})
		s.initialize("2025-11-25")
		for i := range frame.AtOnce + 5 {
			s.write(call(fmt.Sprint(i), "wait", "w"))
		}
		go func() {
			time.Sleep(9 * time.Second)
			close(s.release)
		}()
		start := time.Now()
		rest, err := s.close()
		if len(rest) != frame.AtOnce+5 || err != nil {
			t.Errorf("%d calls are answered after the end of the input (%v), want all", len(rest), err)
		}
		for _, a := range rest {
			if a.Error != nil || strings.Contains(a.line, "isError") {
				t.Errorf("a call is answered %s", a.line)
			}
		}
		if got := time.Since(start); got != 9*time.Second {
			t.Errorf("the session ended after %v", got)
		}
	})
}

func TestCallsAreGivenUpSomeTimeAfterTheEndOfTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, frame.Transport{Drain: 4 * time.Second})
		s.initialize("2025-11-25")
		s.write(call("1", "wait", "w"))
		start := time.Now()
		if rest, err := s.close(); len(rest) != 0 || err != nil {
			t.Errorf("%d calls are answered (%v)", len(rest), err)
		}
		if got := time.Since(start); got != 4*time.Second {
			t.Errorf("the session ended after %v, want 4s", got)
		}
	})
}
