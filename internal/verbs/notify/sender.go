package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

// Runner starts a program and waits for its end.
type Runner interface {
	Run(ctx context.Context, s proc.Spec) (proc.Result, error)
}

// Sender sends notices, each in one try. Its methods may be called concurrently.
type Sender struct {
	Environ []string // of the process: secrets, proxies, and what commands get
	Dir     string   // where commands run
	System  string   // the operating system, as runtime.GOOS
	Exec    Runner
	Now     func() time.Time
	Proxy   func(*http.Request) (*url.URL, error) // nil: none

	Accepted *accepted.Folder // what a person has accepted on this machine; nil: all
}

const (
	timeout    = 30 * time.Second // of one try
	mostAnswer = 4 << 10          // bytes of an answer, or of what a command prints, that are read
	mostError  = 500              // characters of the error that is kept
	mostSecret = 64 << 10         // bytes
)

// Send tries to deliver a notice once. It blocks for at most half a minute. The error
// holds no secret. A channel that asks for something of this machine is used only if a
// person has accepted it here.
func (s *Sender) Send(ctx context.Context, c loop.Channel, n loop.Notice) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	if item, asks := accepted.Channel(c); asks {
		if err := s.Accepted.Check(item); err != nil {
			return err
		}
	}
	secret, err := s.secret(c)
	if err == nil {
		switch c.Kind {
		case loop.ChannelWebhook:
			err = s.sendWebhook(ctx, c, n, secret)
		case loop.ChannelNtfy:
			err = s.sendNtfy(ctx, c, n, secret)
		case loop.ChannelCommand:
			err = s.sendCommand(ctx, c, n)
		case loop.ChannelDesktop:
			err = s.sendDesktop(ctx, n)
		default:
			err = fmt.Errorf("%q is not a kind of channel that this pawl knows", c.Kind)
		}
	}
	return s.hide(err, secret)
}

// hide takes secrets out of an error, and bounds it. The error of a fault stays one.
func (s *Sender) hide(err error, secret string) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return f // It names variables and files, and nothing that was read.
	}
	known := redact.FromEnviron(s.Environ)
	if secret != "" {
		known = append(known, redact.Secret{Name: "secret", Value: secret})
	}
	return errors.New(excerpt(output.CleanLine(redact.New(known...).String(err.Error())), mostError))
}

// Check refuses a channel that cannot work on this machine, as a *loop.Fault that
// names the place and the fix.
func (s *Sender) Check(c loop.Channel) error {
	if c.Click != "" {
		if _, err := parseURL("--click", c.Click); err != nil {
			return err
		}
	}
	var err error
	switch c.Kind {
	case loop.ChannelWebhook:
		if c.SecretEnv == "" && c.SecretFile == "" {
			return &loop.Fault{
				Exit: loop.ExitUsage, What: "a webhook needs a secret", Why: "its receiver could not tell a notice of pawl from any other request",
				Fix: "make one, give it to the receiver, and name where it is: --secret-env NAME or --secret-file FILE; for example (umask 077; { printf whsec_; openssl rand -base64 32; } > hook.key)",
			}
		}
		_, err = parseURL("the URL of the webhook", c.Target)
	case loop.ChannelNtfy:
		err = checkTopic(c.Target)
	case loop.ChannelCommand:
		if strings.TrimSpace(c.Target) == "" {
			err = &loop.Fault{Exit: loop.ExitUsage, What: "the command is empty", Fix: "write the line for the shell that gets the notice"}
		}
	case loop.ChannelDesktop:
		_, err = s.desktopCommand(loop.Notice{})
	default:
		var kinds []string
		for _, k := range loop.ChannelKinds {
			kinds = append(kinds, string(k))
		}
		return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("%q is not a kind of channel", c.Kind), Fix: "write one of: " + strings.Join(kinds, ", ")}
	}
	if err != nil {
		return err
	}
	secret, err := s.secret(c)
	if err == nil && c.Kind == loop.ChannelWebhook {
		_, err = decodeSecret(c, secret)
	}
	return err
}

// secret reads the secret of a channel from where it says; empty if it has none.
func (s *Sender) secret(c loop.Channel) (string, error) {
	switch {
	case c.SecretEnv != "":
		value := strings.TrimSpace(proc.LookupVariable(s.Environ, c.SecretEnv))
		if value == "" {
			return "", &loop.Fault{
				Exit: loop.ExitUsage, What: "the variable " + c.SecretEnv + " is not set", Why: "the channel " + c.Name + " takes its secret from it",
				Fix: "set it in the environment of pawl, on each node that delivers notices",
			}
		}
		return value, nil
	case c.SecretFile != "":
		return readSecret(c)
	}
	return "", nil
}

func readSecret(c loop.Channel) (string, error) {
	fault := func(why string, err error) error {
		return &loop.Fault{
			Exit: loop.ExitUsage, What: "read the secret of the channel " + c.Name + " in " + c.SecretFile, Why: why, Err: err,
			Fix: "name a file with nothing but the secret, which pawl may read, on each node that delivers notices",
		}
	}
	info, err := os.Stat(c.SecretFile)
	switch {
	case err != nil:
		return "", fault(err.Error(), err)
	case !info.Mode().IsRegular():
		return "", fault("it is not a file", nil)
	case info.Size() > mostSecret:
		return "", fault(fmt.Sprintf("it has more than %d bytes", mostSecret), nil)
	}
	body, err := os.ReadFile(c.SecretFile)
	if err != nil {
		return "", fault(err.Error(), err)
	}
	value := strings.TrimSpace(string(body))
	if value == "" || strings.ContainsAny(value, "\r\n") {
		return "", fault("it does not hold one line", nil)
	}
	return value, nil
}

// parseURL refuses what is not a URL of a web server, or holds a password.
func parseURL(what, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	var why string
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		why = "it is not an address that begins with https:// or http://"
	case u.User != nil:
		why = "it holds a name or a password, which would be kept in the store as they are"
	default:
		return u, nil
	}
	if u != nil && u.User != nil {
		text = u.Redacted()
	}
	return nil, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("%s: %q", what, text), Why: why, Fix: "write it like https://example.org/path; secrets go into a variable or a file"}
}
