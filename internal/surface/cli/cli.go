// Package cli is the command line: it turns flags into the options of one verb,
// calls it, prints what came back, and maps every error to one exit status and
// one explanation.
//
// It decides nothing about loops, and it prints no text of an agent, a gate or a
// file without first removing whatever a terminal would act on.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/output"
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
	Program  string   // how people call this pawl: its name, or its path if PATH does not find it
	Terminal bool     // Out is a terminal
	Answers  bool     // In is a terminal: somebody may answer
	Width    func() int
	Now      func() time.Time
	// Setenv sets a variable of the process, for what is not given Environ: libraries read some.
	Setenv func(name, value string) error
	// Exit ends the process at once, for the second interrupt.
	Exit func(status int)
}

// Main runs the command that the process was started with and returns its exit
// status.
func Main() int {
	if status, ran := compose.RunBuiltInAgent(context.Background(), os.Args[1:], os.Stdin, os.Stdout); ran {
		return status
	}
	if status, ran := compose.RunToolRelay(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); ran {
		return status
	}
	collectLater()
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	out := int(os.Stdout.Fd())
	width := func() int {
		columns, _, err := term.GetSize(out)
		if err != nil || columns < 20 {
			return 80 // The usual width.
		}
		return columns
	}
	return Run(context.Background(), Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Args: os.Args[1:], Environ: os.Environ(), Dir: dir, Program: programName(),
		Terminal: term.IsTerminal(out), Answers: term.IsTerminal(int(os.Stdin.Fd())), Width: width, Now: time.Now, Setenv: os.Setenv, Exit: os.Exit,
	})
}

// collectLater lets the heap grow to 16 MB before garbage is collected for the first time,
// instead of to 4 MB: most commands end before that. GOGC decides if it is set.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(400)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual) // The first collection finds it.
}

// programName is how people call this binary: pawl if that is what PATH finds,
// else its path.
func programName() string {
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

// Run runs one command to its end and returns its exit status.
func Run(ctx context.Context, env Env) int {
	a := &app{Env: env}
	ctx, stop := a.cancelOnInterrupt(ctx)
	defer stop()
	ctx = waiting.With(ctx, func(line string) {
		if env.Terminal { // A live line may be there. It is drawn again.
			_, _ = fmt.Fprint(env.Err, "\r\x1b[K")
		}
		_, _ = fmt.Fprintln(env.Err, "pawl: "+output.CleanLine(line))
	})
	root := newRootCommand(a) //nolint:contextcheck // ExecuteContext hands ctx to the commands below; they read cmd.Context().
	root.SetArgs(env.Args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	err := root.ExecuteContext(ctx)
	status := exitStatus(ctx, err)
	_, quiet := errors.AsType[quietError](err)
	// Who interrupts a command knows why it ended.
	if err != nil && !quiet && !errors.Is(err, errInterrupted) {
		printError(env.Err, err, status)
	}
	return status
}

// app is what every command gets: the process, the flags that all commands
// share, and how to open pawl's parts.
type app struct {
	Env
	json      bool
	jq        string
	workspace string
	database  string // instead of the one that the environment names
	home      string
	color     string

	running   atomic.Bool                   // this process carries out a run
	opened    atomic.Pointer[compose.Parts] // whose store knows the time of the rows; nil: none was opened
	clockLead atomic.Int64                  // by how many nanoseconds the time of a daemon that was asked is ahead
	input     *bufio.Reader                 // In, once somebody was asked
}

func newRootCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pawl",
		Short: "Run coding agents in loops that can be trusted",
		Long: `pawl runs coding agents in loops. Every turn is one bounded step by an agent, and gates that pawl
runs itself decide whether it counts.

See it work, without a key and without a network:  pawl demo`,
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			unknown := usageError(cmd, "there is no command "+quoteArg(args[0]))
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				unknown.Fix = "did you mean `pawl " + near[0] + "`?"
			}
			return unknown
		},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			a.json = a.json || a.jq != ""
			switch a.color {
			case "auto", "always", "never":
				return nil
			}
			return &loop.Fault{Exit: loop.ExitUsage, What: "invalid --color " + quoteArg(a.color), Fix: "write auto, always or never"}
		},
	}
	flags := cmd.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.StringVar(&a.jq, "jq", "", "filter the JSON with a jq `expression` (implies --json)")
	flags.StringVar(&a.workspace, "workspace", "", "work in the repository that contains `dir` (default: this one)")
	flags.StringVar(&a.home, "home", "", "keep store and copies in `dir` (default: $PAWL_HOME)")
	flags.StringVar(&a.color, "color", "auto", "auto, always or never")
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c, err.Error()) })
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Begin", []*cobra.Command{
			newDemoCommand(a), newInitCommand(a), newNewCommand(a), newConfigCommand(a), newCheckCommand(a), newDoctorCommand(a), newEstimateCommand(a), newSimCommand(a), newSpecCommand(a), newBootCommand(a), newOrgCommand(a), newGateCommand(a),
		}},
		{"Run and stop", []*cobra.Command{
			newRunCommand(a), newRerunCommand(a), newShellCommand(a), newUpCommand(a), newWorkerCommand(a), newDownCommand(a), newReloadCommand(a), newServiceCommand(a), newMCPCommand(a), newPauseCommand(a), newResumeCommand(a), newKillCommand(a), newStopCommand(a), newRmCommand(a),
		}},
		{"Look", []*cobra.Command{
			newLsCommand(a), newNextCommand(a), newShowCommand(a), newRunsCommand(a), newTraceCommand(a), newLogsCommand(a), newDiffCommand(a), newWhyCommand(a),
		}},
		{"Answer and land", []*cobra.Command{newApprovalsCommand(a), newApproveCommand(a), newRejectCommand(a), newLandCommand(a)}},
		{"Keep and prove", []*cobra.Command{newRecoverCommand(a), newAuditCommand(a), newNodesCommand(a), newNotifyCommand(a), newMemoryCommand(a), newStoreCommand(a)}},
		{"Boards", []*cobra.Command{newBoardCommand(a), newTaskCommand(a), newMsgCommand(a), newResourceCommand(a)}},
		{"Agents and money", []*cobra.Command{newAgentCommand(a), newBudgetCommand(a), newPricesCommand(a)}},
		{"Help", []*cobra.Command{newExplainCommand(a), newSchemaCommand(a), newVersionCommand(a)}},
	} {
		cmd.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, c := range group.commands {
			c.GroupID = group.title
		}
		cmd.AddCommand(group.commands...)
	}
	cmd.SetHelpCommandGroupID("Help")
	cmd.SetCompletionCommandGroupID("Help")
	cmd.AddCommand(newExitStatusHelp())
	return cmd
}
