package price

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
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
	bedrockRevision = lazyregexp.New(`-v[0-9]+(:[0-9]+)?$`)
	releaseDate     = lazyregexp.New(`([-@][0-9]{8}|-[0-9]{4}-[0-9]{2}-[0-9]{2})$`)
	sellerPath      = lazyregexp.New(`^(models/|publishers/[a-z]+/models/|((openrouter|bedrock|vertex|vertex_ai)/)?(anthropic|openai|google|gemini|vertex|vertex_ai|bedrock|x-ai|xai|mistralai)/)`)
	bedrockPrefix   = lazyregexp.New(`^((us|eu|apac|jp|au|global|us-gov)\.)?(anthropic|amazon|meta|mistral|cohere|openai)\.`)

	// releaseSuffix matches what may follow a prefix: a release of the same
	// model, but not a number of one or two digits, which is another version.
	releaseSuffix = lazyregexp.New(`^(-latest|-preview(-[0-9]{2}-[0-9]{2,4})?|-exp(-[0-9]{2}-[0-9]{2})?|\[1m\]|[-@][0-9]{3,8}|-[0-9]{4}-[0-9]{2}-[0-9]{2})*$`)
)

// Find looks up a model by any name that vendors and their resellers use for it:
// first as it is written, then without the date of a release, then without the
// seller, and then by the other names in the table. Any other difference means
// another model, which may have another price: Find never guesses a family, a
// size, a version or a tier.
func (t Table) Find(name string) (Model, bool) {
	plain := withoutReseller(name)
	for _, id := range []string{name, withoutDate(name), plain, withoutDate(plain)} {
		if m, ok := t.FindID(id); ok {
			return m, true
		}
	}
	for _, id := range []string{plain, withoutDate(plain)} {
		if m, ok := t.findByName(id); ok {
			return m, true
		}
	}
	return t.findByPrefix(plain)
}

// findByName looks up a model by its other names.
func (t Table) findByName(name string) (Model, bool) {
	for _, m := range t.Models {
		if slices.Contains(m.Names, name) {
			return m, true
		}
	}
	return Model{}, false
}

// findByPrefix looks up a model by its longest prefix that fits.
func (t Table) findByPrefix(name string) (found Model, ok bool) {
	longest := -1
	for _, m := range t.Models {
		for _, p := range m.Prefixes {
			rest, fits := strings.CutPrefix(name, p)
			if fits && len(p) > longest && releaseSuffix.MatchString(rest) {
				found, ok, longest = m, true, len(p)
			}
		}
	}
	return found, ok
}

// withoutDate removes the date of a release, and the revision that Bedrock
// appends to it.
func withoutDate(name string) string {
	if at := bedrockRevision.FindStringIndex(name); at != nil && releaseDate.MatchString(name[:at[0]]) {
		name = name[:at[0]]
	}
	return releaseDate.ReplaceAllString(name, "")
}

// withoutReseller removes the seller of the model. It knows only sellers that
// charge the vendor's price: others may sell a model of the same name for another
// price.
func withoutReseller(name string) string {
	name = sellerPath.ReplaceAllString(name, "")
	if at := bedrockPrefix.FindStringIndex(name); at != nil {
		return bedrockRevision.ReplaceAllString(name[at[1]:], "")
	}
	return name
}
