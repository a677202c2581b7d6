package compose_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// clone is another workspace of the same remote, with a store of its own.
func (s *fixture) clone(name string) *fixture {
	s.t.Helper()
	c := &fixture{t: s.t, root: filepath.Join(filepath.Dir(s.root), name), home: newHome(s.t), loop: s.loop}
	s.git("clone", "-q", s.git("remote", "get-url", "origin"), c.root)
	return c
}

// Two workspaces work on tasks of their own at once and push to one remote, while a person
// adds tasks and files to a third by hand. Nothing is lost, and all see the same in the end.
func TestTwoWorkspacesAndAPersonPushToOneRemoteAndLoseNothing(t *testing.T) {
	t.Parallel()
	rounds := sample.Size(2, 50)
	one := newBootFixture(t, "")
	two, person := one.clone("two"), one.clone("person")
	var all sync.WaitGroup
	said := make([][]*told, 2)
	for i, s := range []*fixture{one, two} {
		all.Go(func() {
			for n := range rounds {
				said[i] = append(said[i], s.asked(fmt.Sprintf("Write number %d of workspace %d", n, i)))
			}
		})
	}
	var byHand []error
	all.Go(func() {
		for n := range rounds {
			byHand = append(byHand, person.addByHand(fmt.Sprintf("hand-%d", n)))
		}
	})
	all.Wait()
	if err := errors.Join(byHand...); err != nil {
		t.Fatal(err)
	}
	unpushed := 0
	for i, list := range said {
		for n, v := range list {
			if v == nil || v.Run.Outcome != loop.OutcomeDone {
				t.Errorf("run %d of workspace %d = %+v, want it done", n, i, v)
				continue
			}
			if strings.Contains(v.Run.Detail, "not pushed: ") {
				unpushed++
				t.Logf("run %d of workspace %d: %s", n, i, v.Run.Detail)
			}
		}
	}
	for _, s := range []*fixture{one, two} {
		if v := s.pawl("run"); v.Run.Outcome != loop.OutcomeDone || v.Run.Detail != "" {
			t.Errorf("one more run = %s %s %q", v.Run.Outcome, v.Run.Reason, v.Run.Detail)
		}
		if here, there := s.git("rev-parse", "main"), s.git("ls-remote", "origin", "refs/heads/main"); !strings.HasPrefix(there, here) {
			t.Errorf("after one more run %s is at %s and the remote at %s", s.root, here, there)
		}
		s.checkBootCheckout()
		s.nothingLeft()
	}
	person.git("pull", "-q", "--rebase")
	person.checkBootHistory("main")
	tasks, _ := bootstate.FormatSchemas().ReadTodo([]byte(person.git("show", "main:"+bootlink.DefaultTasks)))
	for n := range rounds {
		for i := range 2 {
			id := bootstate.RequestID(fmt.Sprintf("Write number %d of workspace %d", n, i))
			if task, _ := tasks.Task(id); task.Status != bootstate.StatusDone {
				t.Errorf("the task of run %d of workspace %d is %q, want it done", n, i, task.Status)
			}
		}
		hand := fmt.Sprintf("hand-%d", n)
		if _, there := tasks.Task(hand); !there || person.git("show", "main:notes/"+hand+".txt") != hand {
			t.Errorf("%s is lost", hand)
		}
	}
	printTable(t, [][]string{{"rounds", "commits", "not pushed at once"}, {fmt.Sprint(rounds), person.git("rev-list", "--count", "main"), fmt.Sprint(unpushed)}})
}

// asked is a run with a request. It is nil if the run could not be made.
func (s *fixture) asked(request string) *told {
	v, stderr := s.try("run", requestEnv+"="+request)
	if stderr != "" {
		s.t.Errorf("%s: %s", request, stderr)
	}
	return v
}

// addByHand adds a task and a file and pushes them, as a person does with git alone.
func (s *fixture) addByHand(id string) error {
	var errs []error
	for range 50 {
		if _, err := gittest.Try(s.t.Context(), s.root, "fetch", "-q", "origin"); err != nil {
			return err
		}
		if _, err := gittest.Try(s.t.Context(), s.root, "reset", "-q", "--hard", "origin/main"); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(s.root, bootlink.DefaultTasks))
		if err != nil {
			return err
		}
		tasks, wrong := bootstate.FormatSchemas().ReadTodo(text)
		if len(wrong) > 0 {
			return fmt.Errorf("%s of the remote: %v", bootlink.DefaultTasks, wrong)
		}
		tasks.Add(bootstate.Task{ID: id, Title: "Write " + id, Status: bootstate.StatusPending, Priority: bootstate.PriorityLow}, time.Now())
		err = errors.Join(
			os.WriteFile(filepath.Join(s.root, bootlink.DefaultTasks), tasks.Encode(), 0o644), os.MkdirAll(filepath.Join(s.root, "notes"), 0o755),
			os.WriteFile(filepath.Join(s.root, "notes", id+".txt"), []byte(id+"\n"), 0o644))
		if err != nil {
			return err
		}
		for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "by hand: " + id}, {"push", "-q", "origin", "main"}} {
			if _, err = gittest.Try(s.t.Context(), s.root, args...); err != nil {
				break
			}
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%s was not pushed: %w", id, errors.Join(errs...))
}
