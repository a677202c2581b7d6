#!/bin/sh
# Stands in for a coding agent, so that the demo needs no key and no network.
# Like one, it gets a prompt, changes files in its copy, and reports. Its first
# idea is wrong. What makes the second right is that it reads in its prompt what
# the gate said of the first.
set -eu

say() { printf '%s\n' "$*"; }

report() {
	printf '{"outcome": "done", "summary": "%s", "item": "pkg=slug"}\n' "$1" >"$PAWL_REPORT"
}

first_idea() {
	say "A comma and an exclamation mark do not belong into an address."
	say "Dropping everything that is no letter, digit or space."
	cat >slug/slug.go <<'GO'
// Package slug turns titles into the last part of an address.
package slug

import (
	"strings"
	"unicode"
)

// Make writes a title in lower case, its words joined by hyphens.
func Make(title string) string {
	kept := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == ' ' {
			return unicode.ToLower(r)
		}
		return -1
	}, title)
	return strings.ReplaceAll(kept, " ", "-")
}
GO
	report "slug.Make drops punctuation"
}

second_idea() {
	say "The gate says that wellknown-facts came out, and well-known-facts was wanted:"
	say "a hyphen is punctuation too. Splitting into words instead."
	cat >slug/slug.go <<'GO'
// Package slug turns titles into the last part of an address.
package slug

import (
	"strings"
	"unicode"
)

// Make writes a title in lower case, its words joined by hyphens.
func Make(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-")
}
GO
	report "slug.Make splits at whatever is no letter or digit"
}

say "Reading the prompt: $(wc -c <"$PAWL_PROMPT" | tr -d ' ') bytes."
if grep -q 'wellknown-facts' "$PAWL_PROMPT"; then
	second_idea
else
	first_idea
fi
