package price

import (
	"regexp"
	"slices"
	"strings"
)

// Vendors and their resellers write the same model in many ways:
//
//	claude-haiku-4-5-20251001                        a dated release
//	claude-haiku-4-5@20251001                        Vertex
//	us.anthropic.claude-haiku-4-5-20251001-v1:0      Bedrock, in a region
//	anthropic/claude-haiku-4-5                       routers
//	publishers/google/models/gemini-2.5-pro          Vertex
//	gpt-5-2025-10-01                                 a dated release
var (
	revision = regexp.MustCompile(`-v[0-9]+(:[0-9]+)?$`)
	release  = regexp.MustCompile(`([-@][0-9]{8}|-[0-9]{4}-[0-9]{2}-[0-9]{2})$`)
	path     = regexp.MustCompile(`^(models/|publishers/[a-z]+/models/|((openrouter|bedrock|vertex|vertex_ai)/)?(anthropic|openai|google|gemini|vertex|vertex_ai|bedrock|x-ai|xai|mistralai)/)`)
	bedrock  = regexp.MustCompile(`^((us|eu|apac|jp|au|global|us-gov)\.)?(anthropic|amazon|meta|mistral|cohere|openai)\.`)

	// follows is what may stand behind a prefix: a release of the same model, and
	// never a number of one or two digits, which is another version.
	follows = regexp.MustCompile(`^(-latest|-preview(-[0-9]{2}-[0-9]{2,4})?|-exp(-[0-9]{2}-[0-9]{2})?|\[1m\]|[-@][0-9]{3,8}|-[0-9]{4}-[0-9]{2}-[0-9]{2})*$`)
)

// Find looks a model up by any name under which vendors and their resellers
// sell it: as it stands, then without the date of a release, then without the
// vendor before it, and then by the other names that the table has for it. What
// else differs is another model, which may have another price: a family, a size,
// a version or a tier is never guessed.
func (t Table) Find(name string) (Model, bool) {
	plain := unprefixed(name)
	for _, id := range []string{name, undated(name), plain, undated(plain)} {
		if m, ok := t.Model(id); ok {
			return m, true
		}
	}
	for _, id := range []string{plain, undated(plain)} {
		if m, ok := t.named(id); ok {
			return m, true
		}
	}
	return t.begins(plain)
}

// named looks a model up by its other names.
func (t Table) named(name string) (Model, bool) {
	for _, m := range t.Models {
		if slices.Contains(m.Names, name) {
			return m, true
		}
	}
	return Model{}, false
}

// begins looks a model up by the longest prefix that fits.
func (t Table) begins(name string) (found Model, ok bool) {
	longest := -1
	for _, m := range t.Models {
		for _, p := range m.Prefixes {
			rest, fits := strings.CutPrefix(name, p)
			if fits && len(p) > longest && follows.MatchString(rest) {
				found, ok, longest = m, true, len(p)
			}
		}
	}
	return found, ok
}

// undated removes the date of a release, and what Bedrock puts behind it.
func undated(name string) string {
	if at := revision.FindStringIndex(name); at != nil && release.MatchString(name[:at[0]]) {
		name = name[:at[0]]
	}
	return release.ReplaceAllString(name, "")
}

// unprefixed removes who sells the model. Others may sell one of the same name
// for another price, so only those are removed who sell it for the vendor's.
func unprefixed(name string) string {
	name = path.ReplaceAllString(name, "")
	if at := bedrock.FindStringIndex(name); at != nil {
		return revision.ReplaceAllString(name[at[1]:], "")
	}
	return name
}
