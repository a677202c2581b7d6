package shell

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxOpen is how many brackets may be open at once. What parsing costs grows
// with what is nested.
const maxOpen = 200

// maxUnended is how many here-documents may end with the text.
const maxUnended = 4

var errTooDeep = errors.New("nested too deeply")

// Parse reads a text for the shell, as the first of these shells that accepts
// it: bash, a POSIX shell, zsh. If none does, the file has the statements that
// bash would run before it gives up. As in every shell, a here-document may end
// with the text.
func Parse(text string) (*syntax.File, error) {
	if tooDeep(text) {
		return &syntax.File{}, errTooDeep
	}
	file, refused := parseAs(syntax.LangBash, text)
	for range maxUnended {
		end := unendedDocument(refused)
		if end == "" {
			break
		}
		text += "\n" + end
		file, refused = parseAs(syntax.LangBash, text)
	}
	if refused == nil {
		return file, nil
	}
	for _, variant := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangZsh} {
		if file, err := parseAs(variant, text); err == nil {
			return file, nil
		}
	}
	return file, refused
}

// ParseBash reads a text as bash alone does. What is not understood to its end is an
// error.
func ParseBash(text string) (*syntax.File, error) {
	if tooDeep(text) {
		return nil, errTooDeep
	}
	return parseAs(syntax.LangBash, text)
}

// parseAs reads a text for one shell, up to the first statement that it refuses.
func parseAs(variant syntax.LangVariant, text string) (file *syntax.File, refused error) {
	file = &syntax.File{}
	defer func() {
		if p := recover(); p != nil {
			refused = fmt.Errorf("parse: %v", p)
		}
	}()
	for stmt, err := range syntax.NewParser(syntax.Variant(variant)).StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			refused = err
		}
		if refused == nil {
			file.Stmts = append(file.Stmts, stmt)
		}
	}
	return file, refused
}

// unendedDocument is the line that would have ended a here-document, if its
// absence is why a text was refused.
func unendedDocument(refused error) string {
	err, _ := errors.AsType[syntax.ParseError](refused)
	quoted, ok := strings.CutPrefix(err.Text, "unclosed here-document ")
	if !ok {
		return ""
	}
	end, _ := strconv.Unquote(quoted) // Empty if it is not quoted.
	return end
}

// tooDeep counts brackets wherever they are, so that no quote deceives it.
func tooDeep(text string) bool {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			if open++; open > maxOpen {
				return true
			}
		case ')', '}', ']':
			open = max(0, open-1)
		}
	}
	return false
}
