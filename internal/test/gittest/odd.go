package gittest

var oddNames = []string{"new\nline", `quo"te`, `back\slash`, "latin\xe9", "tab\there", "sp ace", "-dash", "ünïcode", "\x01ctl", ":(glob)*", "a/b/ c "}

// OddlyNamed returns files whose names many programs cannot handle. Each has the content
// followed by its name.
func OddlyNamed(content string) map[string]string {
	files := map[string]string{}
	for _, n := range oddNames {
		files[n] = content + n
	}
	return files
}
