package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/httpguard"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Headers of a request.
const (
	HeaderWho     = "Pawl-Who"     // who asks; missing: Server.User
	HeaderRole    = "Pawl-Role"    // a loop.Role; missing: human
	HeaderFrom    = "Pawl-From"    // the surface; missing: api
	HeaderLoops   = "Pawl-Loops"   // the loops of a grant, as loop.ParseGrant reads them; missing: no grant
	HeaderKey     = "Pawl-Key"     // Call.Key
	HeaderRequest = "Pawl-Request" // an id that the caller chose, for cancel
)

// Names of the events with which a verb is answered that is followed.
const (
	EventProgress = "progress"
	EventResult   = "result"
	EventProblem  = "problem"
)

const (
	maxBody  = 1 << 20          // bytes of a request
	aliveGap = 15 * time.Second // between signs of life on a stream
)

// Status is how a daemon is, schema pawl.status/v1.
type Status struct {
	Schema     string    `json:"schema"`
	Version    string    `json:"version"`
	PID        int       `json:"pid"`
	Since      time.Time `json:"since"`
	Node       string    `json:"node"` // id
	Workspaces int       `json:"workspaces"`
	Loops      int       `json:"loops"`
	Broken     int       `json:"broken"`  // loops whose definition cannot run
	Working    int       `json:"working"` // runs that it executes
	Ending     bool      `json:"ending"`  // it takes no new work
	Hangs      bool      `json:"hangs"`   // it has stopped looking for loops that are due
	Now        time.Time `json:"now"`     // by which rows are dated
}

// Server serves the verbs of one store. All fields but Patience are required.
type Server struct {
	// Open opens the workspace that contains a folder of this host, and registers it if it is
	// told to.
	Open   func(ctx context.Context, dir string, register bool) (*Workspace, error)
	Store  *Store
	Feed   event.Feed
	User   string // who asks if a request does not say it
	Status func() Status
	// Do carries work out that a caller waits for. It ends the work's context when the
	// daemon has no more time; if it takes no new work but what is brief, its error is a
	// *loop.Fault.
	Do func(ctx context.Context, brief bool, work func(context.Context) error) error
	// Carried is called with a verb that was carried out.
	Carried func(v verb.Info)
	// Metrics writes the metrics of the daemon as Prometheus reads them.
	Metrics func(ctx context.Context, w io.Writer) error
	Log     *slog.Logger
	// Patience is for how long a reader may not read before it is given up; 0: 10 s.
	Patience time.Duration

	asked sync.Map // by the id of a request: what cancels it
	tails tails
}

// socketName is the name by which clients of the socket ask for it.
const socketName = "pawl"

// Handler returns what answers requests. It does not ask who may connect.
func (s *Server) Handler() http.Handler {
	s.tails.feed = s.Feed
	mux := http.NewServeMux()
	for path, methods := range s.routes() {
		for method, serve := range methods {
			mux.HandleFunc(method+" "+path, serve)
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.refuseMethod(w, r, methods) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, &loop.Fault{Exit: loop.ExitNotFound, What: fmt.Sprintf("there is no %s %s", r.Method, r.URL.Path), Fix: "/openapi.json lists what there is"}, nil)
	})
	return httpguard.Handler(mux, httpguard.Options{
		Names: []string{socketName}, Patience: s.Patience, Refuse: func(w http.ResponseWriter, f *loop.Fault) { s.fail(w, f, nil) },
	})
}

// routes are all that is served, by path and method. GET is HEAD as well.
func (s *Server) routes() map[string]map[string]http.HandlerFunc {
	text := func(said string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, said+"\n") }
	}
	all := map[string]map[string]http.HandlerFunc{
		"/healthz":            {http.MethodGet: text("ok")},
		"/readyz":             {http.MethodGet: s.serveReady},
		"/version":            {http.MethodGet: func(w http.ResponseWriter, _ *http.Request) { s.write(w, http.StatusOK, s.Status()) }},
		"/metrics":            {http.MethodGet: s.serveMetrics},
		"/openapi.json":       {http.MethodGet: func(w http.ResponseWriter, _ *http.Request) { s.write(w, http.StatusOK, OpenAPI(s.Status().Version)) }},
		"/v1/events":          {http.MethodGet: s.serveEvents},
		"/v1/requests/cancel": {http.MethodPost: s.serveCancel},
	}
	for _, v := range Verbs() {
		all[v.Path()] = map[string]http.HandlerFunc{http.MethodPost: func(w http.ResponseWriter, r *http.Request) { s.serveVerb(w, r, v, decodeBody) }}
		if takesQuery(v) {
			all[v.Path()][http.MethodGet] = func(w http.ResponseWriter, r *http.Request) { s.serveVerb(w, r, v, decodeQuery) }
		}
	}
	return all
}

// refuseMethod answers a request with a method that its path does not have.
func (s *Server) refuseMethod(w http.ResponseWriter, r *http.Request, has map[string]http.HandlerFunc) {
	methods := slices.Sorted(maps.Keys(has))
	w.Header().Set("Allow", strings.Join(methods, ", "))
	p := verb.ProblemOf(&loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("there is no %s %s", r.Method, r.URL.Path), Fix: "send " + strings.Join(methods, " or ")})
	p.Status = http.StatusMethodNotAllowed
	s.writeProblem(w, p)
}

func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	switch st := s.Status(); {
	case st.Ending:
		s.fail(w, &loop.Fault{Exit: loop.ExitInterrupted, What: "pawl is ending"}, nil)
		return
	case st.Hangs:
		s.fail(w, &loop.Fault{
			Exit: loop.ExitInterrupted, What: "the daemon hangs", Why: "it has stopped looking for loops that are due",
			Fix: "start it anew: {1}, then {2}", Actions: []loop.Command{loop.PawlCommand("down"), loop.PawlCommand("up")},
		}, nil)
		return
	}
	if _, err := s.Feed.Head(r.Context()); err != nil {
		s.fail(w, err, nil)
		return
	}
	_, _ = io.WriteString(w, "ready\n")
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if err := s.Metrics(r.Context(), w); err != nil {
		s.Log.WarnContext(r.Context(), "metrics", slog.String("error", err.Error()))
	}
}

// serveCancel cancels a request that is being carried out. It is answered as always.
func (s *Server) serveCancel(w http.ResponseWriter, r *http.Request) {
	cancel, ok := s.asked.Load(r.Header.Get(HeaderRequest))
	if !ok {
		s.fail(w, &loop.Fault{Exit: loop.ExitNotFound, What: "no such request is being carried out", Fix: "pass its " + HeaderRequest}, nil)
		return
	}
	cancel.(context.CancelFunc)()
	w.WriteHeader(http.StatusNoContent)
}

// Local carries verbs out for somebody as a request on the socket would.
func (s *Server) Local(dir string, by loop.Actor, key string, say func(verb.Progress)) verb.Caller {
	return served{s, dir, verb.Call{Store: s.Store, By: by, Key: key, Say: say}}
}

type served struct {
	s       *Server
	dir     string
	request verb.Call
}

// Call carries a verb out.
func (c served) Call(ctx context.Context, v verb.Info, in, out any) error {
	c.request.Open = c.s.openFolder(c.dir)
	err := c.s.Do(ctx, v.Brief, func(ctx context.Context) error { return verb.Local{Request: c.request}.Call(ctx, v, in, out) })
	if err == nil {
		c.s.Carried(v)
	}
	return err
}

// serveVerb carries one verb out.
func (s *Server) serveVerb(w http.ResponseWriter, r *http.Request, v verb.Info, decode func(*http.Request, any) error) {
	in := reflect.New(v.In)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := decode(r, in.Interface()); err != nil {
		s.fail(w, err, nil)
		return
	}
	answer := s.answerTo(w, r, v)
	var result any
	err := s.Do(r.Context(), v.Brief, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if id := r.Header.Get(HeaderRequest); id != "" {
			s.asked.Store(id, cancel)
			defer s.asked.Delete(id)
		}
		call, err := s.call(r, answer.progress)
		if err == nil {
			result, err = v.Do(ctx, call, in.Elem().Interface())
		}
		return err
	})
	if err != nil {
		answer.fail(err, result)
		return
	}
	s.Carried(v)
	answer.result(result)
}

// call is the request of a caller.
func (s *Server) call(r *http.Request, say func(verb.Progress)) (verb.Call, error) {
	c := verb.Call{Store: s.Store, Say: say, By: loop.Actor{Who: s.User, Role: loop.RoleHuman, From: "api"}}
	for name, field := range map[string]*string{HeaderWho: &c.By.Who, HeaderFrom: &c.By.From, HeaderKey: &c.Key, HeaderRole: (*string)(&c.By.Role)} {
		if given := r.Header.Get(name); given != "" {
			*field = given
		}
	}
	switch c.By.Role {
	case loop.RoleHuman, loop.RoleAgent, loop.RoleTrigger, loop.RoleViewer:
	default:
		return c, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid %s %q", HeaderRole, c.By.Role), Fix: "write human, agent, trigger or viewer"}
	}
	if granted := r.Header.Get(HeaderLoops); granted != "" {
		g, err := loop.ParseGrant(granted)
		if err != nil {
			return c, err
		}
		c.By.Grant = g
	}
	given, err := parameters(r)
	if err != nil {
		return c, err
	}
	c.Open = s.openFolder(given.Get("workspace"))
	return c, nil
}

// openFolder opens the workspace that a request names.
func (s *Server) openFolder(dir string) func(ctx context.Context, register bool) (verb.Workspace, error) {
	return func(ctx context.Context, register bool) (verb.Workspace, error) {
		if err := checkFolder(dir); err != nil {
			return nil, err
		}
		return s.Open(ctx, dir, register)
	}
}

// answer is how one request is answered.
type answer struct {
	progress func(verb.Progress)
	result   func(any)
	fail     func(err error, result any)
}

// answerTo answers with JSON, or with a stream of events for a caller that follows.
func (s *Server) answerTo(w http.ResponseWriter, r *http.Request, v verb.Info) answer {
	if !v.Writes || !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return answer{
			progress: func(verb.Progress) {}, result: func(result any) { s.write(w, http.StatusOK, result) }, fail: func(err error, result any) { s.fail(w, err, result) },
		}
	}
	out := newStream(w)
	return answer{
		progress: func(p verb.Progress) { out.send("", EventProgress, p) },
		result: func(result any) {
			out.send("", EventResult, result)
			out.close()
		},
		fail: func(err error, result any) {
			p := verb.ProblemOf(err)
			p.Result = result
			out.send("", EventProblem, p)
			out.close()
		},
	}
}

func (s *Server) write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		s.Log.Error("a result does not marshal", slog.String("error", err.Error()))
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func (s *Server) fail(w http.ResponseWriter, err error, result any) {
	p := verb.ProblemOf(err)
	p.Result = result
	s.writeProblem(w, p)
}

func (s *Server) writeProblem(w http.ResponseWriter, p *verb.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	body, marshalErr := json.Marshal(p)
	if marshalErr != nil {
		s.Log.Error("a problem does not marshal", slog.String("error", marshalErr.Error()))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}

// bounds are those of a request, which every program has to read as the same.
var bounds = jsontree.Bounds{Bytes: maxBody, Depth: 100, Values: 100_000}

// decodeBody reads a request from the body, which may be empty.
func decodeBody(r *http.Request, in any) error {
	body, err := io.ReadAll(r.Body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &loop.Fault{Exit: loop.ExitUsage, What: "the request is larger than 1 MB", Fix: "send less"}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &loop.Fault{Exit: loop.ExitUsage, What: "the request did not arrive in time", Fix: "send it at once"}
	}
	if len(bytes.TrimSpace(body)) == 0 && err == nil {
		return nil
	}
	if err == nil {
		if _, problem := jsontree.Parse(body, bounds); problem != nil {
			err = errors.New(problem.String())
		} else {
			d := json.NewDecoder(bytes.NewReader(body))
			d.DisallowUnknownFields()
			err = d.Decode(in)
		}
	}
	if err != nil {
		return &loop.Fault{Exit: loop.ExitUsage, What: "the request cannot be read", Why: err.Error(), Fix: "send one JSON object, as /openapi.json describes it"}
	}
	return nil
}
