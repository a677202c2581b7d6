package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// flow is commands that meet every verb, in an order in which each has something to do.
// Arguments are separated by spaces; _ is a space within one. A daemon plans a new file as soon as it has read it, and
// without one init does: so init comes before a list.
var flow = strings.Fields(`
init,--yes,--no-loop
init,--yes,--no-loop,--agents-md
ls
next
next,tidy
next,york
next,nobody
show,tidy
runs
run,tidy,--dry-run
run,tidy,--dry-run,--json
run,tidy
ls
runs
runs,tidy,--json
show,tidy
show,tidy#1
show,tidy#1,--json
show,tidy#7
trace,tidy
trace,tidy,--json
logs,tidy
logs,-f,tidy,--json
logs,nobody
why,tidy
why,tidy#1,--json
diff,tidy
diff,nobody
approvals
approvals,--json
approvals,tidy#1
approvals,ap_nothing
approve,tidy
reject,tidy,--note,not_now,--by,Ada
reject,tidy#1
approve,tidy#1,--yes
run,tidy,--request,once_more
approve,tidy,--yes,--json
approve,tidy#2,--yes
rerun,tidy#2,--hint,louder_please
rerun,nobody
run,tidy,--request,and_again
land,tidy
land,tidy,--yes,--merge,--by,Ada
land,tidy,--yes
run,tidy,--iterations,0
run,broken
run,nobody
run,--until,false,--scope,src/**,--agent-command,true,--sandbox,none,--iterations,1,--name,until-false
run,--until,true,--agent-command,true,--sandbox,none
pause,tidy,--why,holidays
pause,tidy
run,tidy
approve,tidy,--yes
resume,tidy
resume,tidy
pause,--all
resume,--all,--json
kill,tidy
resume,--all
pause,--everywhere,--why,all_of_it
ls
run,tidy
resume,--everywhere
stop,tidy
stop,nobody
recover
recover,--json
recover,show,nothing
recover,restore,nothing,--branch,x,--yes
recover,prune,--yes,--dry-run
recover,prune,--yes,--older-than,0s,--json
budget,show
budget,set,tidy,--usd,5,--by,Ada
budget,set,tidy,--usd,much
budget,show,tidy,--json
audit,verify
audit,log,tidy
audit,log,tidy,--rewrite,--yes
audit,log,nobody
nodes
nodes,--json
nodes,set,--name,here,--label,gpu
nodes,set,--label,no_label
nodes,forget,nobody,--yes
nodes,accept
nodes,accept,--json
nodes,accept,channel-nothing,--yes
notify,add,command,true,--name,bell
notify,add,command,true,--name,bell
notify,list
notify,list,--json
notify,test
notify,rm,bell
notify,rm,bell
memory,list
memory,list,--json
memory,add,use_tabs,--by,Ada
memory,add,use_tabs,--kind,rumor
memory,add,ask_first,--loop,tidy,--json
memory,add,ask_first,--loop,nobody
memory,list,--loop,tidy
memory,why,1
memory,why,#1,--json
memory,why,99
memory,approve,1
memory,approve,nothing
memory,forget,1,--json
memory,forget,99
memory,list
memory,list,--all
agent,create,@maker,--driver,command,--agent-command,true
agent,create,@maker,--driver,command
agent,set,@maker,--role,makes_things
agent,list
agent,show,@maker,--json
agent,show,@nobody
budget,show,--agent,maker
board,list
board,create,Crew,--scope,src/**,--waive,--wip,review=1
board,create,Crew
board,set,crew,--verify,true
board,set,crew
board,list,--json
board,import,boards.json
board,import,boards.json,--yes
board,import,boards.json,--yes,--json
board,import,nothing.json
board,show,crew
board,show,shop
board,show,shop,--json
board,show,nowhere
board,activity,shop
board,activity,shop,--json
board,errors,shop
board,errors,nowhere
board,export,shop
board,export,nowhere
agent,create,@worker,--board,crew,--layer,lead,--dormant
agent,create,@worker,--board,crew
agent,set,@worker,--interval,10m,--capability,go_test
agent,show,@worker
agent,show,@worker,--json
agent,list
agent,list,--json
task,create,--board,crew,--title,mend_it
task,create,--board,crew,--title,mend_it,--priority,asap
task,create,--board,crew
task,list
task,list,--board,shop,--json
task,show,t1
task,show,t1,--json
task,show,nothing
task,set,t1,--priority,urgent
task,set,t1,--due,soon
task,comment,t1,--by,Ada,@buyer_look
task,comment,nothing,look
task,move,t1,review
task,move,t1,doing
task,assign,t1,@buyer
task,assign,t1,@nobody
task,why,t1
task,why,t1,--json
task,why,nothing
msg,send,--to,@buyer,--kind,order,--content,first
msg,send,--to,@nobody,--kind,order,--content,first
msg,list
msg,list,--json
msg,show,m1
msg,show,nothing
resource,create,--board,shop,--title,how,--content,so
resource,create,--board,shop,--title,how,--content,so,--category,credential
resource,list
resource,list,--json
resource,show,r1
resource,show,nothing
resource,set,r1,--content,otherwise
resource,set,nothing,--content,otherwise
gate,try,tidy
gate,try,nobody
spec,list
spec,create,--file,bad.json
spec,create,--template,skeleton,--agent,maker,--goal,be_good,--dry-run
spec,generate,--task,be_good
spec,generate,--task,keep_the_tests_green,--test,true,--json
spec,generate,--task,be_good,--by,@nobody
spec,import,--file,spec.json
spec,import,--file,spec.json,--json
spec,list
spec,get,lp-1234567
spec,get,lp-1234567,--json
spec,step,lp-1234567
spec,step,lp-nothing
spec,stop,lp-1234567
spec,flag,lp-1234567,it_was_missed
spec,spawn,lp-1234567
spec,export,lp-1234567
spec,edit,lp-1234567,--file,spec.json
spec,edit,lp-1234567,--file,spec.json,--revision,1
spec,delete,lp-1234567,--yes
spec,delete,lp-1234567,--yes
boot,check
boot,init
boot,init,--new-boot,../rules
boot,status
boot,init,--new-boot,../rules,--yes
boot,init,--boot,../rules@v1.0.0,--yes
boot,check
boot,check,--json
boot,status
boot,status,--request,be_good,--json
boot,log
boot,log,--json
boot,migrate
boot,migrate,--json
org,check
org,show
org,init,--department,engineering=lead,dev
org,init,--department,engineering=lead,dev,--yes
org,init,--member,qa,--yes
org,check
org,check,--json
org,show
org,show,--json
org,import,.
org,import,nowhere
init,--yes,--no-loop
ls
show,boot
rm,tidy,--yes
rm,nobody,--yes
init,--yes,--no-loop
ls
runs
`)

// asideFromDaemon are the commands that no daemon is asked for, and why.
var asideFromDaemon = map[string]string{
	"check": "it looks at a file", "config edit": "it edits a file", "demo": "it has a home of its own", "doctor": "it looks at this machine",
	"estimate": "it looks at a file", "new": "it makes a file", "mcp": "it lasts as long as its client, and asks the daemon with each call", "up": "it is the daemon", "worker": "it is the daemon", "down": "it ends the daemon", "reload": "it signals the daemon",
	"audit export": "it proves what the store says", "store migrate": "it is for the store itself", "store backup": "it is for the store itself", "store restore": "it is for the store itself", "store copy": "it is for the store itself", "store prune": "it is for the store itself", "sim": "it has a store of its own, in memory",
	"notify log": "a daemon tells people what happens", "agent drivers": "it looks at this machine", "agent login": "it looks at files of this user", "shell": "it works on this terminal", "service install": "it is for the system", "service remove": "it is for the system", "mcp install": "it edits a file of this user", "prices": "it looks at a file", "prices update": "it writes a file",
	"agent login list": "it looks at files of this user", "agent login swap": "it moves files of this user",
	"completion": "it prints a text", "explain": "it prints a text", "schema": "it prints a text", "version": "it prints a text", "help": "it prints a text",
}

// differs is what is different in each run of the flow.
var differs = []struct {
	find *lazyregexp.Regexp
	put  string
}{
	{waitNotice, ""},
	{lazyregexp.New(`\b(run|ap|ws|lp|rb|node|ag|st|it|bd|tk|cm|ac|sb|ms|rs|er)_[0-9a-z]{7,}`), "${1}_ID"},
	{lazyregexp.New(`\b[0-9a-f]{12,64}\b`), "HASH"},
	{lazyregexp.New(`\([0-9a-f]{7}\)`), "(HASH)"},
	{lazyregexp.New(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?( UTC|Z|[+-]\d\d:\d\d)?`), "WHEN"},
	{lazyregexp.New(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{lazyregexp.New(`\b\d+(\.\d+)? (ms|s)\b`), "SPAN"},
	{lazyregexp.New(`\b\d+(\.\d+)?(ms|s)\b`), "SPAN"},
	{lazyregexp.New(`\b\d+[dhm]\b`), "SPAN"},
	{lazyregexp.New(`("(ms|total|agent|gates|overhead)":)[0-9.e-]+`), "${1}N"},
	{lazyregexp.New(`("(pid|start|skew_ms|seq|cursor|notices|feed)":)"?[0-9.]+"?`), "${1}N"},
	{lazyregexp.New(`process \d+`), "process N"},
	{lazyregexp.New(`\b\d+ B in `), "N B in "},
	{lazyregexp.New(` {2,}`), "  "},
	{lazyregexp.New(`(?m)^pawl up is not at work on this machine: .*\n`), ""},
}

func newWayPlace(t *testing.T, dir string) *place {
	t.Helper()
	p := newPlace(t, dir)
	withLoop("kill_switch", ".loops/PAUSED exists")(p)
	p.write("repo/boards.json", `{"boards": [{"id": "b1", "name": "Shop", "createdAt": 1}], "agents": [{"handle": "buyer", "boardIds": ["shop"], "dormant": true, "createdAt": 1}],
		"tasks": [{"id": "t1", "boardId": "shop", "title": "Buy", "createdAt": 1}], "resources": [{"id": "r1", "boardId": "shop", "title": "How", "content": "So", "category": "sop", "createdAt": 1}],
		"agentMessages": [{"id": "m1", "fromAgentId": "human", "toAgentId": "buyer", "messageType": "order", "content": "Buy", "sentAt": 1}]}`)
	p.write("repo/bad.json", `{"goal": 1}`)
	p.write("repo/spec.json", `{"id": "lp_1234567", "agentId": "@maker", "goal": "be good", "loopType": "deterministic", "trigger": {"type": "manual"}, "stateSource": "diff",
		"gates": [{"name": "g", "kind": "command", "check": "false"}], "budget": {"maxIterations": 3, "maxTokens": 9000, "maxWallClockMs": 60000}, "giveUp": "", "errorPolicy": "pause + log",
		"guardrails": ["edits limited to /src"], "humanGate": "", "createdAt": 1, "updatedAt": 1}`)
	p.write("repo/.loops/broken/loop.config.yaml", loopDefinition("name", "broken", "tier", "L9"))
	p.write("repo/.loops/york/loop.config.yaml", loopDefinition("name", "york", "cadence", "0 4 29 2 *", "timezone", "America/New_York"))
	return p
}

// startUp starts a daemon for the place, and ends it after the test.
func (p *place) startUp() *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command("pawl", "up")
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), p.env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("pawl up: %v\n%s", err, said.String())
		}
	})
	for range 1200 { // A minute, after which a hanging test is given up.
		locks, _ := filepath.Glob(filepath.Join(p.dir, "home", "daemon*.lock"))
		var running struct{ Socket string }
		if len(locks) > 0 {
			if body, err := os.ReadFile(locks[0]); err == nil && json.Unmarshal(body, &running) == nil && running.Socket != "" {
				return cmd
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatal("pawl up does not answer")
	return nil
}

func (p *place) transcript(args []string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "pawl", args...)
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), p.env
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	status := 0
	if err := cmd.Run(); err != nil {
		status = cmd.ProcessState.ExitCode()
	}
	return p.same(fmt.Sprintf("$ pawl %q\n%s--- stderr\n%s--- exit status %d\n", args, out.String(), errs.String(), status))
}

// same takes out of a text what is different in each place.
func (p *place) same(text string) string {
	text = strings.ReplaceAll(text, p.dir, "DIR")
	for _, d := range differs {
		text = d.find.ReplaceAllString(text, d.put)
	}
	return text
}

func TestEveryCommandSaysTheSameWithAndWithoutADaemon(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	alone, asked := newWayPlace(t, filepath.Join(root, "a")), newWayPlace(t, filepath.Join(root, "b"))
	alone.pawl("ls")
	daemon := asked.startUp()
	commands := []string{}
	for _, line := range flow {
		args := strings.Split(line, ",")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
			args[i] = strings.ReplaceAll(args[i], "lp-", "lp_")
			if strings.HasPrefix(args[i], "ap ") {
				args[i] = "ap_nothing"
			}
		}
		commands = append(commands, strings.Join(args, " "))
		if diff := cmp.Diff(alone.transcript(args), asked.transcript(args)); diff != "" {
			t.Errorf("pawl %s (-without a daemon +with one):\n%s", strings.Join(args, " "), diff)
		}
	}
	for _, name := range asked.commands() {
		_, aside := asideFromDaemon[name]
		for deeper := range asideFromDaemon { // A group of commands does nothing itself.
			aside = aside || strings.HasPrefix(deeper, name+" ")
		}
		tried := slices.ContainsFunc(commands, func(c string) bool { return c == name || strings.HasPrefix(c, name+" ") })
		if !aside && !tried {
			t.Errorf("pawl %s is neither tried nor set aside", name)
		}
	}

	// That all of it went to the daemon is seen when it does not answer: nothing is
	// written any more, but what reads and what stops works.
	if err := daemon.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{"run other": 16, "budget set other --usd 1": 16, "ls": 0, "pause other": 0} {
		asked.write("repo/.loops/other/loop.config.yaml", loopDefinition("name", "other"))
		if text := asked.transcript(strings.Fields(line)); !strings.HasSuffix(text, fmt.Sprintf("exit status %d\n", want)) {
			t.Errorf("while the daemon is stopped, want %d:\n%s", want, text)
		}
	}
}

// commands lists all commands, as the help does.
func (p *place) commands() (names []string) {
	p.t.Helper()
	var help func(args ...string)
	help = func(args ...string) {
		out := helpOf(p.t, args)
		if len(args) > 0 {
			names = append(names, strings.Join(args, " "))
		}
		if len(args) > 0 && !strings.Contains(out, "[command]") || len(args) > 0 && args[0] == "completion" {
			return
		}
		for _, m := range subcommand.FindAllStringSubmatch(out, -1) {
			help(append(args[:len(args):len(args)], m[1])...)
		}
	}
	help()
	return names
}

func TestAnInterruptEndsARunWithAndWithoutADaemon(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var said []string
	for _, name := range []string{"a", "b"} {
		p := newPlace(t, filepath.Join(root, name))
		begun := filepath.Join(p.dir, "begun")
		withLoop("agent_command", "touch "+begun+"; exec sleep 60")(p)
		if name == "b" {
			p.startUp()
		}
		cmd := exec.Command("pawl", "run", "tidy")
		cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), p.env
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 600 { // Half a minute, after which a hanging test is given up.
			if _, err := os.Stat(begun); err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		text := p.same(fmt.Sprintf("%s--- exit status %d\n", out.String(), cmd.ProcessState.ExitCode()))
		said = append(said, text+p.transcript([]string{"why", "tidy"}))
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		t.Errorf("an interrupted run (-without a daemon +with one):\n%s", diff)
	}
	if !strings.Contains(said[0], "exit status 130") || !strings.Contains(said[0], "interrupted") {
		t.Errorf("an interrupted run says:\n%s", said[0])
	}
}
