package report

import "strings"

// fence begins and ends a block in a message.
const fence = "```"

// InMessage reads the report that an agent put at the end of its last message,
// because it can write no file: a fenced block of JSON behind which nothing
// follows. Found is false for a message that ends otherwise. A block that is no
// report is an error, as a file would be, if it says that it is JSON, and no
// report at all if it does not.
func InMessage(message string) (r Report, text string, found bool, err error) {
	body, ok := strings.CutSuffix(strings.TrimRight(message, " \t\r\n"), fence)
	if !ok {
		return Report{}, "", false, nil
	}
	start := strings.LastIndex(body, fence)
	if start < 0 || start > 0 && body[start-1] != '\n' {
		return Report{}, "", false, nil
	}
	label, text, ok := strings.Cut(body[start+len(fence):], "\n")
	text = strings.TrimSpace(text)
	named := strings.TrimSpace(label) == "json"
	if !ok || !named && strings.TrimSpace(label) != "" || !strings.HasPrefix(text, "{") {
		return Report{}, "", false, nil
	}
	r, err = Parse([]byte(text))
	if err != nil && !named {
		return Report{}, "", false, nil
	}
	return r, text, true, err
}
