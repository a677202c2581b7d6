package setup

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// blanks are around names and values, and not part of them.
const blanks = " \t\r\n"

// ReadEnvFile returns the variables of a file, NAME=VALUE each and a later one of the same name after an earlier
// one, and whether other users can read or change the file. A file that systemd would read in another way, with
// EnvironmentFile=, is refused with a *loop.Fault, which names the line and never shows it: it may hold a key. If
// there is no file, the error is fs.ErrNotExist.
func ReadEnvFile(path string) (set []string, shared bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, false, &loop.Fault{Exit: loop.ExitUnreadable, What: "read the variables of " + path, Why: err.Error(), Err: err, Fix: "put a file there that this user can read"}
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		kv, why := variableOf(strings.Trim(string(line), blanks))
		if why != "" {
			return nil, false, &loop.Fault{
				Exit: loop.ExitUnreadable, What: fmt.Sprintf("%s:%d: %s", path, n, why),
				Fix: "write NAME=VALUE, or NAME='VALUE' if a backslash or quotes are in the value; a line that begins with # is a comment",
			}
		}
		if kv != "" {
			set = append(set, kv)
		}
	}
	return set, info.Mode().Perm()&0o066 != 0, nil
}

// variableOf returns the variable that a line sets, if any, or why the line is refused.
func variableOf(line string) (kv, why string) {
	if line == "" || line[0] == '#' || line[0] == ';' {
		return "", ""
	}
	name, value, found := strings.Cut(line, "=")
	name, value = strings.TrimRight(name, blanks), strings.TrimLeft(value, blanks)
	switch {
	case !found || !variableName.MatchString(name):
		return "", "this is not NAME=VALUE"
	case strings.ContainsRune(value, 0):
		return "", "the value of " + name + " has a NUL"
	case value != "" && (value[0] == '\'' || value[0] == '"'):
		quote := value[:1]
		inner, rest, closed := strings.Cut(value[1:], quote)
		if !closed || rest != "" {
			return "", "the value of " + name + " does not end with its quote"
		}
		if quote == `"` && strings.Contains(inner, `\`) {
			return "", "the value of " + name + " has a backslash in double quotes"
		}
		return name + "=" + inner, ""
	case strings.Contains(value, `\`):
		return "", "the value of " + name + " has a backslash and no quotes"
	}
	return name + "=" + value, ""
}
