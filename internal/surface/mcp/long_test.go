package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/mcp/frame"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// daemon fires runs, each of which lasts for a while.
type daemon struct {
	lasts time.Duration
	fired atomic.Int64
	began sync.Map // when, by id
}

// Call answers the verbs of calls that last.
func (d *daemon) Call(_ context.Context, v verb.Info, in, out any) error {
	switch v.Name {
	case api.FireRun.Name:
		id := fmt.Sprintf("run%d", d.fired.Add(1))
		d.began.Store(id, time.Now())
		*out.(*verb.Fired) = verb.Fired{ID: id, Loop: "slow"}
	case api.ShowRun.Name:
		id := in.(api.RunRef).Run
		began, _ := d.began.Load(id)
		view := runs.View{ID: id, Loop: "slow", State: "running"}
		if time.Since(began.(time.Time)) >= d.lasts {
			view.State = "ended"
		}
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(view))
	default:
		return fmt.Errorf("nobody may ask for %s", v.Name)
	}
	return nil
}

func TestAClientIsToldOfProgressTwiceASecondHoweverManyCallsItMakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, seconds = frame.AtOnce, 20
		var mu sync.Mutex
		told := map[any][]time.Time{}
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				told[r.Params.ProgressToken] = append(told[r.Params.ProgressToken], time.Now())
			},
		})
		d := &daemon{lasts: seconds * time.Second}
		s := New(Options{Version: "1", By: loop.Actor{Role: loop.RoleAgent}, Dir: "/repo", Log: slog.New(slog.DiscardHandler), Open: func(Request) verb.Caller { return d }})
		here, there := sdk.NewInMemoryTransports()
		if _, err := s.server.Connect(t.Context(), there, nil); err != nil {
			t.Fatal(err)
		}
		session, err := client.Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() {
				params := &sdk.CallToolParams{Name: "loop_run", Arguments: map[string]any{"loop": "slow"}}
				params.SetProgressToken(fmt.Sprint(i))
				if r, err := session.CallTool(t.Context(), params); err != nil || r.IsError {
					t.Errorf("%v, %+v", err, r)
				}
			})
		}
		all.Wait()
		if len(told) != calls {
			t.Errorf("%d calls of %d were told of", len(told), calls)
		}
		for token, times := range told {
			if len(times) < seconds || len(times) > 2*seconds+1 {
				t.Errorf("call %v was told %d times in %d s", token, len(times), seconds)
			}
			for i := range times {
				if i >= 2 && times[i].Sub(times[i-2]) < time.Second {
					t.Errorf("call %v was told three times in %v", token, times[i].Sub(times[i-2]))
				}
			}
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		s.Close()
	})
}

// inProcess has no daemon: it carries out a run itself, until it is released.
type inProcess struct {
	say     func(verb.Progress)
	release <-chan struct{}
	ended   chan<- error // whether the run was interrupted
}

// Call carries out a run.
func (p inProcess) Call(ctx context.Context, v verb.Info, _, out any) error {
	switch v.Name {
	case api.FireRun.Name:
		return verb.ErrNoDaemon
	case api.ShowRun.Name:
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(runs.View{ID: "run1", Loop: "slow", State: "running"}))
	case api.StartRun.Name:
		p.say(verb.Progress{Event: &loop.Event{RunID: "run1"}})
		<-p.release
		p.ended <- ctx.Err()
	}
	return nil
}

// TestAClientThatStopsReadingIsCutOffAndItsRunIsNot uses pipes as between processes, which hold
// some of what nobody reads.
func TestAClientThatStopsReadingIsCutOffAndItsRunIsNot(t *testing.T) {
	t.Parallel()
	release, ended := make(chan struct{}), make(chan error, 1)
	s := New(Options{
		Version: "1", By: loop.Actor{Role: loop.RoleAgent}, Dir: "/repo", Log: slog.New(slog.DiscardHandler),
		Open: func(r Request) verb.Caller { return inProcess{r.Say, release, ended} },
	})
	in, client, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(client.Close(), answers.Close()) })
	served := make(chan error, 1)
	go func() {
		served <- s.serve(context.Background(), &frame.Transport{Reader: in, Writer: out, Stall: 300 * time.Millisecond})
	}()

	say := func(line string) error {
		_, err := io.WriteString(client, line+"\n")
		return err
	}
	if err := say(hello); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(answers).ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
		t.Fatalf("%v: %s", err, line)
	}
	run, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": "run", "method": "tools/call", "params": map[string]any{"name": "loop_run", "arguments": map[string]any{"loop": "slow", "wait": true}},
	})
	err = errors.Join(say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), say(string(run)))
	for i := 0; err == nil; i++ { // From here on nothing is read, until the server reads nothing either.
		err = say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i))
	}
	if err := say(""); err == nil {
		t.Error("the server still reads")
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the run was interrupted: %v", err)
	}
	if err := <-served; !errors.Is(err, frame.ErrStalled) {
		t.Errorf("the session ended with %v", err)
	}
}
