package main

import (
	"regexp"
	"strings"
)

var (
	statement = regexp.MustCompile(`(?i)^\s*(select|insert|update|delete|with)\b`)
	condition = regexp.MustCompile(`(?i)\b(?:where|and)\s+([a-z_.]+ *(?:=|<>|<=|>=|<|>) *(?:\$[0-9]+|'[^']*'|[a-z_.0-9]+))`)
	locking   = regexp.MustCompile(`(?i)\bfor\s+(?:update|share)\b`)
)

// widened are the copies of an SQL statement in each of which one simple
// condition always holds, or one lock is not taken; nil for anything else. The
// condition stays in the text, so that each parameter keeps its type.
func widened(text string) []string {
	if !statement.MatchString(text) || !strings.ContainsAny(text, "\n=") {
		return nil
	}
	all := []string{}
	for _, at := range condition.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, text[:at[2]]+"("+text[at[2]:at[3]]+" OR 1=1)"+text[at[3]:])
	}
	for _, at := range locking.FindAllStringIndex(text, -1) {
		all = append(all, text[:at[0]]+text[at[1]:])
	}
	return all
}
