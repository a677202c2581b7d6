package cli

import (
	"bufio"
	"fmt"
	"strings"
)

// asks reports whether there is somebody to answer.
func (a *app) asks() bool { return a.Answers && a.Terminal && !a.json }

// answer prints a question and reads a line. It reports false if there is none.
func (a *app) answer(question string) (string, bool) {
	if a.typed == nil {
		a.typed = bufio.NewReader(a.In)
	}
	_, _ = fmt.Fprint(a.Out, question)
	line, err := a.typed.ReadString('\n')
	return strings.TrimSpace(line), err == nil
}

// confirm asks for a yes. Anything else is a no.
func (a *app) confirm(question string) bool {
	answer, _ := a.answer(question + " [y/N] ")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes"
}
