package runs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/confine/probe/toolchain"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// StartRequest says what to run. Exactly one of Loop and Until is set.
type StartRequest struct {
	Loop      string           `json:"loop,omitempty"`
	Until     string           `json:"until,omitempty"` // a command: repair until it passes
	Name      string           `json:"name,omitempty"`  // with Until: of the loop; empty: made from Until and Scope
	Scope     []string         `json:"scope,omitempty"` // with Until; empty: everything that is not protected
	Flags     definition.Flags `json:"flags,omitzero"`  // with Until: further keys
	Request   string           `json:"request,omitempty"`
	Overrides loop.Overrides   `json:"overrides,omitzero"`
	Wait      bool             `json:"wait,omitempty"` // until no run is in its way

	Repeats bool `json:"-"` // the overrides are those of a row, and were not said now

	Anywhere bool `json:"-"` // any machine of the store may execute it: what this one lacks does not matter

	Key  string           `json:"-"` // a second run with the same key is loop.ErrDuplicateKey; empty: none
	By   loop.Actor       `json:"-"`
	Live func(loop.Event) `json:"-"` // sees every event of the run; may be nil
}

const triggerManual = "manual"

// Prepared is a run that has been checked and not started.
type Prepared struct {
	Target   engine.Target
	Firing   engine.Firing
	Warnings []string
}

// Tiers are the words for how strongly a run is confined, as the key sandbox of
// a definition takes them. The caller owns the list.
func Tiers() []string {
	f, _ := definition.LookupField("sandbox")
	return slices.Clone(f.Values)
}

// Prepare finds and checks what a request would run, and starts nothing.
func (s *Service) Prepare(ctx context.Context, r StartRequest) (Prepared, error) {
	if !r.Repeats {
		r.Overrides.RequestBy = "" // Only a row says who wrote a request; whoever asks does not.
	}
	p := Prepared{Firing: engine.Firing{Trigger: triggerManual, Request: r.Request, Overrides: r.Overrides, By: r.By, Key: r.Key, Wait: r.Wait, Live: r.Live}}
	if tier := r.Overrides.Sandbox; tier != "" && !slices.Contains(Tiers(), tier) {
		return p, &loop.Fault{
			Exit: loop.ExitUsage, What: fmt.Sprintf("there is no sandbox %q", tier), Fix: "use one of: " + strings.Join(Tiers(), ", "),
		}
	}
	e, err := s.loopFor(ctx, r)
	p.Warnings = e.Warnings
	if err != nil {
		return p, err
	}
	def := e.Definition
	effective := r.Overrides.Apply(def).WithDefaults()
	if r.By.Role == loop.RoleAgent {
		if err := s.checkAccepted(ctx, r.By, e); err != nil {
			return p, err
		}
	}
	if r.Anywhere && !s.ws.Node.HasLabels(effective.NodeLabels) {
		err = s.checkServed(ctx, effective)
	} else {
		err = s.checkRunnable(ctx, effective)
	}
	if err != nil {
		return p, err
	}
	if _, err := s.ws.Repo.Base(ctx, effective.Base); err != nil {
		return p, err
	}
	if effective.AgentCommand != def.AgentCommand { // What is written there is known already.
		if advice := definition.CommandAdvice(effective); advice != "" {
			p.Warnings = append(p.Warnings, "agent_command: "+advice)
		}
	}
	p.Target = s.ws.Target(def)
	if err := s.checkStep(ctx, p.Target.Loop, r.Overrides.Step); err != nil {
		return p, err
	}
	p.Target.Said = (e.File != "" || r.Until != "") && !r.Repeats
	if e.File != "" {
		p.Target.Register = s.ws.Loops.Registration(e)
	}
	return p, nil
}

// checkStep is the error for a step that a run of the loop cannot work on: the loop has none
// with that key, and no task of a board of the workspace has it as its id.
func (s *Service) checkStep(ctx context.Context, l loop.Loop, key string) error {
	if key == "" {
		return nil
	}
	err := s.ws.View(ctx, func(r *store.Reader) error {
		steps, err := r.Steps(ctx, l.ID)
		if err != nil || slices.ContainsFunc(steps, func(st loop.Step) bool { return st.Key == key }) {
			return err
		}
		if has := s.ws.Formats.Of(l.Protocol).HasStep; has != nil {
			return has(ctx, r, s.ws.ID, key)
		}
		return loop.ErrNotFound
	})
	if !lookup.Absent(err) {
		return err
	}
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("loop %s has no step with the key %q", l.Name, key), Err: loop.ErrNotFound,
		Fix: "{1} has its steps", Actions: []loop.Command{loop.PawlCommand("show", l.Name)},
	}
}

// loopFor returns the loop that a request names, or only the definition that it makes.
func (s *Service) loopFor(ctx context.Context, r StartRequest) (e catalog.Entry, err error) {
	if r.Until != "" {
		e.Definition, err = s.untilDefinition(ctx, r)
		return e, err
	}
	return s.ws.RunnableLoop(ctx, r.Loop)
}

// checkNewName is an error if a loop that needs no file cannot have this name.
func (s *Service) checkNewName(ctx context.Context, name string) error {
	if !definition.IsKebab(name) {
		return &loop.Fault{
			Exit: loop.ExitUsage, What: fmt.Sprintf("the name %q cannot be used", name),
			Why: "a name is lower-case words and digits joined by single hyphens", Fix: "write it like keep-tests-green",
		}
	}
	there, err := s.ws.Loops.FindNamed(ctx, name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(there, func(e catalog.Entry) bool { return e.Protocol != s.ws.Formats.Goals().Name }) {
		return &loop.Fault{
			Exit: loop.ExitMissing, What: "there is a loop " + name + " already", Why: "it has a definition of its own",
			Fix: "run it: {1}; or choose another --name", Actions: []loop.Command{loop.PawlCommand("run", name)},
		}
	}
	return nil
}

// untilDefinition makes the definition of a loop that needs no file.
func (s *Service) untilDefinition(ctx context.Context, r StartRequest) (loop.Definition, error) {
	scope, name := r.Scope, r.Name
	if len(scope) == 0 {
		scope = []string{"**/*"}
	}
	if name == "" {
		name = untilName(r.Until, scope)
	} else if err := s.checkNewName(ctx, name); err != nil {
		return loop.Definition{}, err
	}
	def := s.ws.Formats.Goals().Goals.Until(r.Until, name, scope)
	def.Agent = r.Overrides.Agent // Otherwise it would be another one than that of the base URL.
	return def, r.Flags.Apply(&def)
}

// untilName gives the same command in the same workspace the same loop, so
// that its runs are numbered and learn from each other.
func untilName(command string, scope []string) string {
	sum := sha256.Sum256([]byte(command + "\x00" + strings.Join(scope, "\x00")))
	return "until-" + new(big.Int).SetBytes(sum[:4]).Text(36)
}

// checkRunnable refuses what this version cannot run honestly.
func (s *Service) checkRunnable(ctx context.Context, d loop.Definition) error {
	switch {
	case s.ws.Formats.Protocol(d.Protocol) == nil:
		return &loop.Fault{
			Exit: loop.ExitMissing, What: d.Name + " cannot run", Why: fmt.Sprintf("protocol %q is not part of this version", d.Protocol),
			Fix: "use protocol spine",
		}
	case git.CheckRef("refs/heads/pawl/"+d.Name+"/1") != nil:
		return &loop.Fault{
			Exit: loop.ExitNotReady, What: fmt.Sprintf("run %q", d.Name), Why: "its name cannot be part of a branch's name",
			Fix: "name the loop and its folder in lower-case words, digits and hyphens",
		}
	case d.Tier == loop.TierUnattended && d.Sandbox == "none":
		return &loop.Fault{
			Exit: loop.ExitRefused, What: d.Name + " cannot run", Why: "tier L3 acts without a human, and sandbox: none confines nothing",
			Fix: "set sandbox: full; or set tier: L2, whose proposals are for people to land",
		}
	}
	if err := s.checkLabels(ctx, d); err != nil {
		return err
	}
	actor, err := s.ws.Actor(ctx, d)
	if err != nil {
		return err
	}
	if _, err := actor.FindCredential(s.Environ, proc.LookupVariable(s.Environ, "HOME"), s.ws.Now()); err != nil {
		return s.addMissingProgram(ctx, actor, err)
	}
	if _, err := policy.NewScope(d.Scope, d.Protect); err != nil {
		return &loop.Fault{Exit: loop.ExitNotReady, What: d.Name + " cannot run", Why: "scope: " + err.Error(), Fix: "correct the glob"}
	}
	if err := s.checkNetwork(d); err != nil {
		return err
	}
	if s.Engine == nil || !sandbox.Tier(d.Sandbox).HasOwnRoot() {
		if err := s.checkPrograms(ctx, d, actor); err != nil || s.Engine == nil {
			return err
		}
		return sandbox.Check(ctx, s.Engine.Home, sandbox.Tier(d.Sandbox))
	}
	if err := sandbox.Check(ctx, s.Engine.Home, sandbox.Full); err != nil {
		return err
	}
	return s.checkToolset(ctx, d, actor)
}

// checkToolset refuses a run whose programs cannot be shown in a root of their own.
// Those that a set-up prepares are not there yet.
func (s *Service) checkToolset(ctx context.Context, d loop.Definition, actor turn.Actor) error {
	tools, err := s.Engine.Toolset(ctx, s.ws.Target(d))
	if err != nil {
		return err
	}
	if file := toolchain.HiddenFile(actor.Command, proc.LookupVariable(s.Environ, "HOME"), s.ws.Root, tools.Toolchains); file != "" {
		return &loop.Fault{
			Exit: loop.ExitNotReady, What: "agent_command: the sandbox hides " + file,
			Why: "the file is outside of the repository, and sandbox: full shows only the repository, the system's programs and toolchains",
			Fix: "commit it to the repository and name it by its path there; or use sandbox: none, or sandbox: external in a container",
		}
	}
	setup, err := tools.PlanSetup(os.DirFS(s.ws.Root), d.Setup)
	if err != nil {
		return err
	}
	if len(setup.PathDirs) > 0 {
		d.Verify, d.Guard = "", ""
	}
	return s.checkPrograms(ctx, d, actor)
}

// checkNetwork refuses hosts that the proxy would not know.
func (s *Service) checkNetwork(d loop.Definition) error {
	_, err := meter.ParseHosts(d.Network)
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return &loop.Fault{Exit: loop.ExitNotReady, What: d.Name + " cannot run", Why: "network: " + f.Why, Fix: f.Fix, Actions: f.Actions, Err: err}
	}
	return err
}

// checkPrograms refuses a run whose agent or gates name programs that are not
// there, before a token is spent.
func (s *Service) checkPrograms(ctx context.Context, d loop.Definition, actor turn.Actor) error {
	keys := []string{"agent " + actor.Handle, "verify", "guard"}
	program := actor.Profile.Program
	if actor.Command != "" {
		program = firstWord(actor.Command)
	}
	words := []string{program, firstWord(d.Verify), firstWord(d.Guard)}
	if d.AgentCommand != "" {
		keys[0] = "agent_command"
	}
	if goals := s.ws.Formats.Of(d.Protocol).Goals; goals != nil {
		keys[1] = "--until"
	}
	path := s.pathVariable()
	unknown := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		if w == "" || strings.ContainsRune(w, '/') {
			return w == ""
		}
		_, err := proc.SearchPath(w, proc.LookupVariable(path, "PATH"))
		return err == nil
	})
	if len(unknown) == 0 {
		return nil
	}
	// Only a shell knows what is a part of it.
	const script = `for w; do command -v "$w" >/dev/null 2>&1 || { [ -n "$w" ] && printf '%s\n' "$w"; }; done; :`
	out := proc.NewRing(4<<10, 0)
	defer waiting.For(ctx, "the shell to look for programs on PATH", nil)()
	_, err := s.Plain.Run(ctx, proc.Spec{
		Argv: append([]string{"/bin/sh", "-c", script, "sh"}, unknown...), Dir: s.ws.Root, Env: path, Stdout: out, Stderr: out,
	})
	if err != nil {
		return fmt.Errorf("look for programs: %w", err)
	}
	missing := strings.Fields(out.String())
	for i, w := range words {
		if w != "" && slices.Contains(missing, w) {
			f := &loop.Fault{Exit: loop.ExitMissing, What: fmt.Sprintf("%s: program %q is not found", keys[i], w), Why: "it is not on PATH"}
			return f.WithAdvice(installFix(i, actor, keys[i]))
		}
	}
	return nil
}

// addMissingProgram adds to what keeps an agent from its model that its program is not
// there either: it has to be installed before it can be signed in with.
func (s *Service) addMissingProgram(ctx context.Context, actor turn.Actor, cause error) error {
	f, ok := errors.AsType[*loop.Fault](cause)
	missing, gone := errors.AsType[*loop.Fault](s.checkPrograms(ctx, loop.Definition{}, actor))
	if !ok || !gone {
		return cause
	}
	both := &loop.Fault{Exit: loop.ExitMissing, What: missing.What, Why: joinedBy("; ", missing.Why, f.Why), Err: cause}
	return both.WithAdvice(missing.Advice().Then("\n", f.Advice()))
}

// installFix says how to get a program: a driver knows how its own is installed.
func installFix(i int, actor turn.Actor, key string) loop.Advice {
	if i == 0 && actor.Command == "" && actor.Profile.Install != "" {
		return loop.Advise(actor.Profile.Install+"   ({1} shows what is there)", loop.PawlCommand("agent drivers"))
	}
	return loop.Advise("install it, or correct " + key)
}

func (s *Service) pathVariable() []string {
	for _, kv := range s.Environ {
		if strings.HasPrefix(kv, "PATH=") {
			return []string{kv}
		}
	}
	return []string{"PATH=" + os.Getenv("PATH")}
}

// firstWord is the program of a command line as far as it can be told without
// a shell: nothing for lines that begin with anything but a plain word.
func firstWord(line string) string {
	words := strings.Fields(line)
	for i, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok && isWord(name) {
			if strings.ContainsAny(value, "'\"\\`$(") {
				return "" // The value may hold spaces, so that the next word is a part of it.
			}
			continue // CI=1 npm test
		}
		if !isWord(w) || i+1 < len(words) && words[i+1][0] == '(' {
			return ""
		}
		return w
	}
	return ""
}

func isWord(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+."
	return s != "" && strings.Trim(s, letters) == ""
}

// checkServed is an error if no machine that is there has the labels that the loop asks
// for. What else it needs is known on the machine that executes it.
func (s *Service) checkServed(ctx context.Context, d loop.Definition) error {
	unserved, err := s.ws.UnservedLabels(ctx, d.NodeLabels)
	if err != nil || unserved == "" {
		return err
	}
	f := &loop.Fault{Exit: loop.ExitNotReady, What: d.Name + " would not be executed", Why: unserved}
	return f.WithAdvice(lookup.ServeLabels)
}

// checkLabels is an error if this machine lacks labels that the loop asks for.
func (s *Service) checkLabels(ctx context.Context, d loop.Definition) error {
	if s.ws.Node.HasLabels(d.NodeLabels) {
		return nil
	}
	f := &loop.Fault{
		Exit: loop.ExitNotReady, What: d.Name + " does not run on this machine",
		Why:     "it asks for machines with the labels " + strings.Join(d.NodeLabels, ", ") + ", and this one has " + cmp.Or(strings.Join(s.ws.Node.Labels, ", "), "none"),
		Fix:     "run it on a machine that has them ({1}), or give them to this one: {2}",
		Actions: []loop.Command{loop.PawlCommand("nodes"), loop.PawlCommand("nodes set").WithFlag("label", "LABEL").WithBlanks("LABEL")},
	}
	unserved, err := s.ws.UnservedLabels(ctx, d.NodeLabels)
	if err != nil {
		return err
	}
	if unserved != "" {
		f.Why += "; " + unserved
	}
	return f
}
