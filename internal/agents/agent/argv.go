package agent

// CommandLine returns the command line of a program with a driver's arguments. If
// the request has a command, the shell runs that; the arguments follow it
// unchanged, without expansion.
func CommandLine(r Request, program string, args ...string) []string {
	if r.Command == "" {
		return append([]string{program}, args...)
	}
	return append([]string{"/bin/sh", "-c", "exec " + r.Command + ` "$@"`, "sh"}, args...)
}
