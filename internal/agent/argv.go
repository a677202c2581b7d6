package agent

// Argv is the command line of a program with a driver's arguments. Where the
// request has a command of its own, the shell runs that, and the arguments come
// after it as they are: the shell reads none of them.
func Argv(r Request, program string, args ...string) []string {
	if r.Command == "" {
		return append([]string{program}, args...)
	}
	return append([]string{"/bin/sh", "-c", "exec " + r.Command + ` "$@"`, "sh"}, args...)
}
