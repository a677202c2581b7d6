// Package cli is the command line: it turns flags into the options of one verb,
// calls it, prints what came back, and maps every error to one exit status and
// one explanation.
//
// It decides nothing about loops and never prints text of an agent, a gate or a
// file to a terminal before whatever a terminal would obey is taken out of it.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pawl-run/pawl/internal/agent/api"
	"github.com/pawl-run/pawl/internal/waiting"
)

// version is set by the linker when a release is built.
var version = "dev"

// Env is what a command may touch of the process that it runs in. The zero
// value has no streams and cannot be used.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Args     []string // without the name of the program
	Environ  []string // NAME=VALUE each
	Dir      string   // working directory
	Program  string   // how this pawl is called: by its name, or by its path if PATH means another or none
	Terminal bool     // Out is a terminal
	Answers  bool     // In is a terminal: somebody may answer
	Width    func() int
	Now      func() time.Time
	// Exit ends the process at once, for the second interrupt.
	Exit func(status int)
}

// Main runs the command that the process was started with and returns its exit
// status.
func Main() int {
	if len(os.Args) == 2 && os.Args[1] == api.Argument {
		return api.Main(context.Background(), os.Stdin, os.Stdout) // The built-in agent, in its sandbox.
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	out := int(os.Stdout.Fd())
	return Run(context.Background(), Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Args: os.Args[1:], Environ: os.Environ(), Dir: dir, Program: program(),
		Terminal: term.IsTerminal(out), Answers: term.IsTerminal(int(os.Stdin.Fd())), Width: func() int { return width(out) }, Now: time.Now, Exit: os.Exit,
	})
}

// program is how people call this binary.
func program() string {
	self, err := os.Executable()
	if err != nil {
		return "pawl"
	}
	own, err := os.Stat(self)
	if err != nil {
		return self
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if found, err := os.Stat(filepath.Join(dir, "pawl")); err == nil {
			if os.SameFile(own, found) {
				return "pawl"
			}
			return self
		}
	}
	return self
}

// width is that of the terminal in columns, or a usual one where there is none.
func width(fd int) int {
	w, _, err := term.GetSize(fd)
	if err != nil || w < 20 {
		return 80
	}
	return w
}

// Run runs one command to its end and returns its exit status.
func Run(ctx context.Context, env Env) int {
	a := &app{Env: env}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	ctx = waiting.With(ctx, a.tellWait)
	root := a.root() //nolint:contextcheck // cobra hands the context to each command.
	root.SetArgs(env.Args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	err := root.ExecuteContext(ctx)
	status := exitStatus(ctx, err)
	_, quiet := errors.AsType[quietError](err)
	// Who interrupts a command knows why it ended.
	if err != nil && !quiet && !errors.Is(err, errInterrupted) {
		a.explain(err, status)
	}
	return status
}

// tellWait prints what the command waits for. On a terminal a live line may stand
// there, which is drawn again.
func (a *app) tellWait(line string) {
	if a.Terminal {
		_, _ = fmt.Fprint(a.Err, "\r\x1b[K")
	}
	_, _ = fmt.Fprintln(a.Err, "pawl: "+cleanLine(line))
}

// app is one invocation: the process and the flags that all commands share.
type app struct {
	Env
	json      bool
	jq        string
	workspace string
	home      string
	color     string

	running atomic.Bool // a run of this process is live
	typed   *bufio.Reader
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pawl",
		Short: "Run coding agents in loops that can be trusted",
		Long: `pawl runs coding agents in loops. Every turn is one bounded step by an agent, and gates that pawl
runs itself decide whether it counts.

See it work, without a key and without a network:  pawl demo`,
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
		Args:              cobra.ArbitraryArgs,
		RunE:              a.noCommand,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkFlags() },
	}
	flags := cmd.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.StringVar(&a.jq, "jq", "", "filter the JSON with a jq `expression` (implies --json)")
	flags.StringVar(&a.workspace, "workspace", "", "work in the repository that contains `dir` (default: this one)")
	flags.StringVar(&a.home, "home", "", "keep store and copies in `dir` (default: $PAWL_HOME)")
	flags.StringVar(&a.color, "color", "auto", "auto, always or never")
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return badFlag(c, err.Error()) })
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Begin", []*cobra.Command{a.cmdDemo(), a.cmdInit(), a.cmdNew(), a.cmdConfig(), a.cmdCheck(), a.cmdDoctor(), a.cmdEstimate()}},
		{"Run and stop", []*cobra.Command{a.cmdRun(), a.cmdPause(), a.cmdResume(), a.cmdKill(), a.cmdStop(), a.cmdRm()}},
		{"Look", []*cobra.Command{a.cmdLs(), a.cmdShow(), a.cmdRuns(), a.cmdTrace(), a.cmdLogs(), a.cmdDiff(), a.cmdWhy()}},
		{"Answer and land", []*cobra.Command{a.cmdApprovals(), a.cmdApprove(), a.cmdReject(), a.cmdLand()}},
		{"Keep and prove", []*cobra.Command{a.cmdRecover(), a.cmdAudit()}},
		{"Agents and money", []*cobra.Command{a.cmdAgent(), a.cmdBudget(), a.cmdPrices()}},
		{"Help", []*cobra.Command{a.cmdExplain(), a.cmdSchema(), a.cmdVersion()}},
	} {
		cmd.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, c := range group.commands {
			c.GroupID = group.title
		}
		cmd.AddCommand(group.commands...)
	}
	cmd.SetHelpCommandGroupID("Help")
	cmd.SetCompletionCommandGroupID("Help")
	cmd.AddCommand(helpExitStatus())
	return cmd
}

// noCommand stands in for a missing or unknown command.
func (a *app) noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	f := usage(cmd, "there is no command "+quote(args[0]))
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		f.Fix = "did you mean `pawl " + near[0] + "`?"
	}
	return f
}
