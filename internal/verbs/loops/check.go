package loops

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Checked is a definition that was read and judged.
type Checked struct {
	Found
	Source  []byte // of the file
	Notice  string // why the file was not read as YAML; usually empty
	Config  readiness.Config
	Verdict readiness.Verdict
	More    []readiness.Finding // outside the score

	Definition loop.Definition // as far as it is valid
	Switches   []string        // paths whose existence stops the loop
	Setup      string          // the key setup as written: the command that prepares dependencies

	Capped  readiness.Value // budget_usd_day, as written
	Labeled readiness.Value // node_labels, as written: the first

	On       []readiness.Value // the items of the key on, as written
	Unserved string            // why no machine has node_labels; set by CheckLabels
}

// Check reads and judges a definition. The error is a *loop.Fault with exit
// status 3 or 4.
func Check(f Found) (Checked, error) {
	doc, source, err := f.load()
	if err != nil {
		return Checked{}, err
	}
	c := Checked{Found: f, Source: source, Notice: strings.Replace(doc.Notice, f.Path, f.Shown, 1), Config: doc.Config()}
	c.Verdict, c.More = doc.Check()
	c.Definition, _ = doc.Definition(f.Name)
	c.More = append(c.More, c.rewritableGates()...)
	if problem := f.formats.Elsewhere(c.Definition.Protocol); c.Definition.Protocol != f.source.Format && problem != "" {
		at, _ := doc.Scalar("protocol")
		c.More = append(c.More, readiness.Finding{
			Kind: readiness.KindOwn, Severity: readiness.SeverityError, Key: "protocol", Line: at.Line, Column: at.Column, Message: problem + "; remove the key",
		})
	}
	c.Switches = []string{path.Join(".loops", loop.PausedFile), path.Join(definition.Dir(f.Name), loop.PausedFile)}
	for _, name := range c.Definition.SwitchPaths() {
		if !slices.Contains(c.Switches, name) {
			c.Switches = append(c.Switches, name)
		}
	}
	setup, _ := doc.Scalar("setup")
	c.Setup = setup.Text
	c.Capped, _ = doc.Scalar("budget_usd_day")
	if labels := doc.List("node_labels"); len(labels) > 0 {
		c.Labeled = labels[0]
	}
	c.On = doc.List("on")
	return c, nil
}

// load reads the definition, and the text in which findings have their places. The text at
// Path may be a copy that a person edits.
func (f Found) load() (*definition.Document, []byte, error) {
	if f.root == "" {
		return definition.Load(f.Path)
	}
	text, err := f.formats.Of(f.source.Format).Files.Read(f.root, f.source)
	if err == nil && f.Path != filepath.Join(f.root, f.source.Edited()) {
		text.Body, err = definition.Read(f.Path)
	}
	if err != nil {
		return nil, nil, err
	}
	doc, err := text.Document(f.Shown, text.Body)
	return doc, text.Body, err
}

// CheckEvents adds an error for each event of the key on that cannot fire the loop here: a
// webhook whose secret is missing on this machine, and the end of a loop that would make
// loops fire each other in a cycle. It adds a warning for the end of a loop that no file
// defines yet.
func (c *Checked) CheckEvents(secrets listen.Secrets) {
	add := func(kind readiness.Kind, severity string, at readiness.Value, problem string) {
		c.More = append(c.More, readiness.Finding{
			Kind: kind, Severity: severity, Key: "on", Line: max(1, at.Line), Column: max(1, at.Column),
			Message: "on: " + readiness.Quote(at.Text) + ": " + problem,
		})
	}
	report := func(at readiness.Value, problem string) { add(readiness.KindOwn, readiness.SeverityError, at, problem) }
	for _, item := range c.On {
		s, err := loop.ParseEventSource(item.Text)
		if err != nil || !slices.Contains(c.Definition.On, s.String()) {
			continue
		}
		switch s.Kind {
		case loop.OnWebhook:
			_, err := secrets.Key(s.What)
			if f, ok := errors.AsType[*loop.Fault](err); ok {
				report(item, f.Why+"; "+f.Fix)
			}
		case loop.OnLoop:
			root := c.Root(filepath.Dir(filepath.Dir(filepath.Dir(c.Path))))
			if cycle := catalog.Cycle(c.formats, root, c.Name, []string{s.String()}); cycle != nil {
				report(item, cycle.Error())
			} else if files, err := c.formats.FindNamed(root, s.What); err == nil && len(files) == 0 {
				add(readiness.KindNote, readiness.SeverityWarning, item, "no file of this repository defines a loop "+s.What+"; until one does, this event never happens")
			}
		case loop.OnFile, loop.OnRef, loop.OnCommand:
		}
	}
}

// CheckSwitches adds an error for each path of the kill switch that git tracks, or that
// contains the loop's own files: it would stop the loop for ever.
func (c *Checked) CheckSwitches(ctx context.Context) {
	repo, err := git.Open(ctx, filepath.Dir(c.Path))
	for _, name := range c.Switches {
		tracked := strings.HasPrefix(definition.Dir(c.Name)+"/", name+"/") || name == "."
		if err == nil && !tracked {
			tracked, _ = repo.Tracked(name) // If the index cannot be read, nothing is reported.
		}
		if !tracked {
			continue
		}
		at := c.Config.KillSwitch
		c.More = append(c.More, readiness.Finding{
			Kind: readiness.KindOwn, Severity: readiness.SeverityError, Key: "kill_switch", Line: max(1, at.Line), Column: max(1, at.Column),
			Message: fmt.Sprintf("kill_switch: %s is part of the repository, and stops the loop as long as it is there; name a path that git does not track", readiness.Quote(name)),
		})
	}
}

// Findings returns the findings of the checks, and then the errors outside of the
// score.
func (c Checked) Findings() []readiness.Finding {
	return slices.Concat(c.Verdict.Findings, c.OwnErrors())
}

// OwnErrors returns the errors outside of the score, like those in pawl's own keys.
func (c Checked) OwnErrors() []readiness.Finding { return c.ofKind(readiness.KindOwn) }

// UnknownKeys returns a finding for each unknown key.
func (c Checked) UnknownKeys() []readiness.Finding { return c.ofKind(readiness.KindUnknown) }

// Notes returns the findings that do not change readiness.
func (c Checked) Notes() []readiness.Finding { return c.ofKind(readiness.KindNote) }

func (c Checked) ofKind(kind readiness.Kind) []readiness.Finding {
	var list []readiness.Finding
	for _, f := range c.More {
		if f.Kind == kind {
			list = append(list, f)
		}
	}
	return list
}

// Errors counts the errors in the score and outside of it.
func (c Checked) Errors() int { return c.Verdict.Errors + len(c.OwnErrors()) }

// Ready reports whether the loop may be started: no error anywhere, a score of
// at least least and, if strict, no warning and no unknown key.
func (c Checked) Ready(least int, strict bool) bool {
	blocks := func(f readiness.Finding) bool { return f.Kind.Blocks(strict) }
	return c.Verdict.Ready(least, strict) && !slices.ContainsFunc(c.More, blocks)
}

// UnpricedFix is the fix for a cap in money with a model that has no price.
var UnpricedFix = loop.Advise("{1} adds a price (0 is one, for a model of your own); model: NAME asks another model; budget_tokens_day caps tokens instead", AddPrice)

// AddPrice is the command that gives models a price.
var AddPrice = loop.PawlCommand("prices update").WithFlag("file", "F").WithBlanks("F")

// UnpricedSentence says that there is a cap in money, and that the model has no price.
func UnpricedSentence(capped, model string) string {
	return fmt.Sprintf("%s and the model %q has no price, and is of no family of which one is assumed: a run would end %s before its agent starts", capped, model, loop.ReasonPriceUnknown)
}

// OwnCap names the cap of the definition itself.
const OwnCap = "budget_usd_day is set"

// AssumedSentence says that the price of a model is assumed, and of what.
func AssumedSentence(m price.Model) string {
	return fmt.Sprintf("the price of %s is assumed, because it has none: twice the dearest of the family %s, %g USD for a million tokens of input, %g of output", m.ID, m.Assumed, m.Input, m.Output)
}

// CheckPrice adds an error if there is a cap in money and the model that the loop's
// agent uses has no price: a run would fail. It adds a note if the price is assumed.
func (c *Checked) CheckPrice(model string, t price.Table) {
	m, ok := t.PriceOf(model)
	if model == "" || c.Definition.BudgetUSDDay == 0 || ok && m.Assumed == "" {
		return
	}
	f := readiness.Finding{
		Kind: readiness.KindOwn, Severity: readiness.SeverityError, Key: "budget_usd_day", Reason: loop.ReasonPriceUnknown,
		Message: UnpricedSentence(OwnCap, model) + "; " + UnpricedFix.String(), Line: max(c.Capped.Line, 1), Column: max(c.Capped.Column, 1),
	}
	if ok {
		f.Kind, f.Severity, f.Reason, f.Message = readiness.KindNote, readiness.SeverityWarning, "", AssumedSentence(m)+"; "+AssumedFix.String()
	}
	c.More = append(c.More, f)
}

// AssumedFix is what can be done about an assumed price.
var AssumedFix = loop.Advise("{1} adds the true one", AddPrice)

// CheckLabels adds an error if no machine can execute runs of the loop.
func (c *Checked) CheckLabels(ctx context.Context, s *Service) error {
	var err error
	if c.Unserved, err = s.ws.UnservedLabels(ctx, c.Definition.NodeLabels); err != nil || c.Unserved == "" {
		return err
	}
	c.More = append(c.More, readiness.Finding{
		Kind: readiness.KindOwn, Severity: readiness.SeverityError, Key: "node_labels", Line: max(c.Labeled.Line, 1), Column: max(c.Labeled.Column, 1),
		Message: "node_labels: " + c.Unserved + "; " + lookup.ServeLabels.String(),
	})
	return nil
}
