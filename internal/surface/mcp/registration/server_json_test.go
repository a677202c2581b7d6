package registration_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../../.."

// The registry takes what is in server.json by the rules that are checked here;
// the rest of it must not part from the module and its releases.
func TestTheRegistryIsToldWhatTheModuleSays(t *testing.T) {
	var s struct {
		Schema      string `json:"$schema"`
		Name        string `json:"name"`
		Title       string `json:"title"`
		Description string `json:"description"`
		Version     string `json:"version"`
		Repository  struct {
			URL    string `json:"url"`
			Source string `json:"source"`
		} `json:"repository"`
		WebsiteURL string `json:"websiteUrl"`
	}
	d := json.NewDecoder(bytes.NewReader([]byte(read(t, filepath.Join(root, "server.json")))))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	module, _, _ := strings.Cut(strings.TrimPrefix(read(t, filepath.Join(root, "go.mod")), "module "), "\n")
	owner := strings.Split(module, "/")[1]
	if want := "io.github." + owner + "/pawl"; s.Name != want || s.Title != "pawl" {
		t.Errorf("the name is %q, and %q for people; want %q", s.Name, s.Title, want)
	}
	if url := "https://" + module; s.Repository.URL != url || s.WebsiteURL != url || s.Repository.Source != "github" {
		t.Errorf("the repository is %+v, want %s", s.Repository, url)
	}
	if n := len(s.Description); n == 0 || n > 100 {
		t.Errorf("the description has %d bytes, and the registry takes 1 to 100", n)
	}
	if !regexp.MustCompile(`^https://static\.modelcontextprotocol\.io/schemas/\d{4}-\d\d-\d\d/server\.schema\.json$`).MatchString(s.Schema) {
		t.Errorf("the schema is %q", s.Schema)
	}
	released := "0.0.0" // before the first release
	if m := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+[^\]]*)\]`).FindStringSubmatch(read(t, filepath.Join(root, "CHANGELOG.md"))); m != nil {
		released = m[1]
	}
	if s.Version != released {
		t.Errorf("the version is %q; the newest release is %s", s.Version, released)
	}
}
