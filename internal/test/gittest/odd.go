package gittest

var names = []string{"new\nline", `quo"te`, `back\slash`, "latin\xe9", "tab\there", "sp ace", "-dash", "ünïcode", "\x01ctl", ":(glob)*", "a/b/ c "}

// Odd are files whose names few programs take for names. Each holds the content
// and its name.
func Odd(content string) map[string]string {
	files := map[string]string{}
	for _, n := range names {
		files[n] = content + n
	}
	return files
}
