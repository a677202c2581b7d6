// Package gitconfig reads git's configuration format as data. It follows no
// include, knows no key and starts nothing.
package gitconfig

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// ErrSyntax means that a configuration file has a form that git refuses, or
// holds a NUL, at which git and this parser would part.
var ErrSyntax = errors.New("configuration is not understood")

// Setting is one line of a configuration file. The key is as git prints it:
// section and name in small letters, what is between them as it was written.
type Setting struct {
	Key   string
	Value string // without a value git means true; here it is empty
}

// Split returns the three parts of a key.
func (s Setting) Split() (section, sub, name string) {
	first, last := strings.IndexByte(s.Key, '.'), strings.LastIndexByte(s.Key, '.')
	if first < 0 {
		return "", "", s.Key
	}
	if first < last {
		sub = s.Key[first+1 : last]
	}
	return s.Key[:first], sub, s.Key[last+1:]
}

// Parse reads git's configuration format as data: it follows no include
// and knows no key. It is done here and not by git, because it is done before
// every run.
func Parse(data []byte) ([]Setting, error) {
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("%w: it holds a NUL", ErrSyntax)
	}
	p := parser{rest: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), line: 1}
	var settings []Setting
	for section := ""; ; {
		c := p.next()
		switch {
		case p.ended:
			return settings, nil
		case isSpace(c):
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			var ok bool
			if section, ok = p.section(); !ok {
				return nil, p.fault("section")
			}
		case isLetter(c):
			s, ok := p.setting(section, c)
			if !ok {
				return nil, p.fault("line")
			}
			settings = append(settings, s)
		default:
			return nil, p.fault("line")
		}
	}
}

// parser reads bytes as git does: CR LF is a line feed, and so is the
// end, any number of times.
type parser struct {
	rest  []byte
	line  int
	ended bool
}

func (p *parser) fault(what string) error {
	return fmt.Errorf("%w: the %s before line %d", ErrSyntax, what, p.line+1)
}

func (p *parser) next() byte {
	if len(p.rest) == 0 {
		p.ended = true
		return '\n'
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	if c == '\r' && len(p.rest) > 0 && p.rest[0] == '\n' {
		c, p.rest = '\n', p.rest[1:]
	}
	if c == '\n' {
		p.line++
	}
	return c
}

func (p *parser) skipLine() {
	for p.next() != '\n' {
	}
}

// section reads the rest of [name], [name.sub] or [name "sub"] and returns the
// beginning that all its keys have, with the dot.
func (p *parser) section() (string, bool) {
	var name strings.Builder
	for {
		c := p.next()
		switch {
		case p.ended:
			return "", false
		case c == ']':
			return name.String() + ".", name.Len() > 0
		case isSpace(c):
			sub, ok := p.subsection(c)
			return name.String() + "." + sub + ".", ok
		case !isKeyByte(c) && c != '.':
			return "", false
		}
		name.WriteByte(lower(c))
	}
}

func (p *parser) subsection(c byte) (string, bool) {
	for isSpace(c) {
		if c == '\n' {
			return "", false
		}
		c = p.next()
	}
	if c != '"' {
		return "", false
	}
	var sub strings.Builder
	for c = p.next(); c != '"'; c = p.next() {
		if c == '\\' {
			c = p.next()
		}
		if c == '\n' {
			return "", false
		}
		sub.WriteByte(c)
	}
	return sub.String(), p.next() == ']'
}

// setting reads the rest of a line that begins with the letter first.
func (p *parser) setting(section string, first byte) (Setting, bool) {
	var name strings.Builder
	name.WriteByte(lower(first))
	c := p.next()
	for ; isKeyByte(c); c = p.next() {
		name.WriteByte(lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	s := Setting{Key: section + name.String()}
	switch c {
	case '\n':
		return s, true
	case '=':
		var ok bool
		s.Value, ok = p.value()
		return s, ok
	}
	return s, false
}

// value reads up to the end of the line, which a backslash can move on.
func (p *parser) value() (string, bool) {
	var out, space strings.Builder
	quoted := false
	for {
		c := p.next()
		switch {
		case c == '\n':
			return out.String(), !quoted
		case isSpace(c) && !quoted:
			if out.Len() > 0 {
				space.WriteByte(c)
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			p.skipLine()
			return out.String(), true
		}
		out.WriteString(space.String())
		space.Reset()
		switch c {
		case '"':
			quoted = !quoted
		case '\\':
			if c = p.next(); c == '\n' {
				continue
			}
			plain, ok := escapes[c]
			if !ok {
				return "", false
			}
			out.WriteByte(plain)
		default:
			out.WriteByte(c)
		}
	}
}

var escapes = map[byte]byte{'t': '\t', 'b': '\b', 'n': '\n', '\\': '\\', '"': '"'}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isLetter(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }

func isKeyByte(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' || c == '-' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
