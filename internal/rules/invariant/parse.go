package invariant

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is what a token is.
type kind int

const (
	endToken kind = iota
	wordToken
	numberToken
	quotedToken
	signToken
)

// token is a word or a sign of an expression. A name that is an operator is a sign.
type token struct {
	kind  kind
	text  string
	from  int
	to    int
	value any // of a number or a quoted text
}

func (t token) is(texts ...string) bool { return t.kind == signToken && slices.Contains(texts, t.text) }

func (t token) String() string {
	if t.kind == endToken {
		return "the end"
	}
	return show(t.text)
}

// signs are the operators and brackets, longer ones first.
var signs = []string{
	"&&", "||", "==", "!=", "<=", ">=", "??", "?.", "..", "**", "<", ">", "+", "-", "*", "/", "%", "^", "!", "?", ":", ".", ",", "#", "(", ")", "[", "]", "{", "}", "|", ";", "=", "~", "&", "@", "$", "\\",
}

// wordSigns are operators that are words.
var wordSigns = []string{"and", "or", "not", "in", "matches", "contains", "startsWith", "endsWith"}

// tokensOf cuts an expression into its words and signs.
func tokensOf(text string) (all []token, err error) {
	for at := 0; at < len(text); {
		rest := text[at:]
		n := 0
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			at++
			continue
		case c == '"' || c == '\'':
			t, err := readQuoted(rest, at)
			if err != nil {
				return nil, err
			}
			all, at = append(all, t), t.to
			continue
		case '0' <= c && c <= '9':
			t, err := readNumber(rest, at)
			if err != nil {
				return nil, err
			}
			all, at = append(all, t), t.to
			continue
		case isLetter(c):
			for n < len(rest) && (isLetter(rest[n]) || '0' <= rest[n] && rest[n] <= '9') {
				n++
			}
			t := token{kind: wordToken, text: rest[:n], from: at, to: at + n}
			afterDot := len(all) > 0 && all[len(all)-1].is(".", "?.")
			if slices.Contains(wordSigns, t.text) && !afterDot {
				t.kind = signToken
			}
			all, at = append(all, t), t.to
			continue
		}
		i := slices.IndexFunc(signs, func(s string) bool { return strings.HasPrefix(rest, s) })
		if i < 0 {
			r, _ := utf8.DecodeRuneInString(rest)
			return nil, &placed{at: at, what: fmt.Sprintf("%q has no meaning here", r), fix: seeNames}
		}
		n = len(signs[i])
		all, at = append(all, token{kind: signToken, text: signs[i], from: at, to: at + n}), at+n
	}
	return append(all, token{kind: endToken, from: len(text), to: len(text)}), nil
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// readQuoted reads a text in quotes, with the escapes of Go.
func readQuoted(rest string, at int) (token, error) {
	quote := rest[0]
	var b strings.Builder
	for left := rest[1:]; left != ""; {
		if left[0] == quote {
			n := len(rest) - len(left) + 1
			return token{quotedToken, rest[:n], at, at + n, b.String()}, nil
		}
		r, multibyte, tail, err := strconv.UnquoteChar(left, quote)
		if err != nil {
			return token{}, &placed{at: at + len(rest) - len(left), what: "this is not possible in a text in quotes", fix: `write \\ for a backslash and \n for a new line`}
		}
		if r < utf8.RuneSelf || !multibyte {
			b.WriteByte(byte(r))
		} else {
			b.WriteRune(r)
		}
		left = tail
	}
	return token{}, &placed{at: at, what: "the text in quotes has no end", fix: "add " + string(quote)}
}

// readNumber reads 12, 1_000, 1.5 and 2e6.
func readNumber(rest string, at int) (token, error) {
	n := 0
	for n < len(rest) {
		c := rest[n]
		digit := n+1 < len(rest) && '0' <= rest[n+1] && rest[n+1] <= '9'
		inExponent := c == '+' || c == '-'
		switch {
		case isLetter(c) || '0' <= c && c <= '9':
		case c == '.' && digit:
		case inExponent && (rest[n-1] == 'e' || rest[n-1] == 'E') && digit:
		default:
			c = 0
		}
		if c == 0 {
			break
		}
		n++
	}
	t := token{kind: numberToken, text: rest[:n], from: at, to: at + n}
	if written := strings.ReplaceAll(t.text, "_", ""); !strings.ContainsAny(written, "xXpPiIbBoO") {
		v, err := numberValue(written)
		if err == nil {
			t.value = v
			return t, nil
		}
	}
	return t, &placed{at: at, what: show(t.text) + " is not a number that can be compared", fix: "write it with digits, such as 1000, 1.5 or 2e6"}
}

// precedences of operators with two sides: the higher binds closer.
var precedences = map[string]int{
	"or": 10, "||": 10, "and": 15, "&&": 15, "==": 20, "!=": 20, "<": 20, "<=": 20, ">": 20, ">=": 20,
	"in": 20, "matches": 20, "contains": 20, "startsWith": 20, "endsWith": 20, "+": 30, "-": 30, "*": 60, "/": 60, "%": 60, "??": 500,
}

// Precedences of operators with one side.
const (
	precedenceNot  = 50
	precedenceSign = 90
)

var (
	comparisons = []string{"<", "<=", ">", ">="}
	negatable   = []string{"in", "matches", "contains", "startsWith", "endsWith"}
)

// parser reads the grammar of expr-lang, without what invariants do not have.
type parser struct {
	tokens []token
	at     int
	nodes  int
}

// parse reads an expression.
func parse(text string) (n node, err error) {
	all, err := tokensOf(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: all}
	n, err = p.expression(0)
	if t := p.peek(); err == nil && t.kind != endToken {
		err = p.unexpected(t)
	}
	return n, err
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	p.at = min(p.at+1, len(p.tokens)-1)
	return t
}

func (p *parser) unexpected(t token) error {
	fix := seeNames
	switch {
	case t.kind == endToken:
		return &placed{at: t.from, what: "the expression ends too early", fix: fix}
	case t.is("=") || t.is("&") || t.is("|"):
		fix = "two values are compared with ==; conditions are joined with and, or"
	case t.kind == wordToken || t.kind == quotedToken || t.kind == numberToken:
		fix = "an invariant is a condition such as diff.files <= 3, not a sentence"
	}
	return &placed{at: t.from, what: "unexpected " + t.String(), fix: fix}
}

// expect takes a sign, or says that it is missing.
func (p *parser) expect(text string) (token, error) {
	t := p.next()
	if !t.is(text) {
		return t, &placed{at: t.from, what: fmt.Sprintf("expected %s, got %s", text, t), fix: seeNames}
	}
	return t, nil
}

// count counts a part. Too many are an error, before they are nested too deeply.
func (p *parser) count() error {
	if p.nodes++; p.nodes > maxNodes {
		return &placed{at: p.peek().from, what: fmt.Sprintf("the expression has more than %d parts", maxNodes), fix: "split it into several gates"}
	}
	return nil
}

// expression reads operators that bind at least as closely as a precedence.
func (p *parser) expression(least int) (node, error) {
	left, err := p.operand()
	before := ""
	for err == nil {
		t, negated := p.peek(), false
		if t.is("not") && p.tokens[min(p.at+1, len(p.tokens)-1)].is(negatable...) {
			t, negated = p.tokens[p.at+1], true
		}
		binds, ok := precedences[t.text]
		if t.kind != signToken || !ok || binds < least {
			break
		}
		if before == "??" && t.text != "??" {
			return nil, &placed{at: t.from, what: "?? and " + t.text + " stand beside each other", fix: "put ?? with its two sides into brackets"}
		}
		if before = t.text; negated {
			p.next()
		}
		p.next()
		if left, err = p.operator(left, t, binds); err == nil && negated {
			from, to := left.span()
			left = &unaryNode{place{from, to}, "not", left}
		}
	}
	if err == nil && least == 0 && p.peek().is("?") {
		return p.choice(left)
	}
	return left, err
}

// operator reads the right side of an operator. 1 < x < 3 is 1 < x and x < 3.
func (p *parser) operator(left node, t token, binds int) (node, error) {
	var all node
	for {
		if err := p.count(); err != nil {
			return nil, err
		}
		right, err := p.expression(binds + 1)
		if err != nil {
			return nil, err
		}
		one := join(left, t.text, right)
		if all != nil {
			one = join(all, "and", one)
		}
		all, left = one, right
		if t = p.peek(); !slices.Contains(comparisons, one.operator) && one.operator != "and" || !t.is(comparisons...) || binds != precedences["<"] {
			return all, nil
		}
		p.next()
	}
}

func join(left node, operator string, right node) *binaryNode {
	from, _ := left.span()
	_, to := right.span()
	return &binaryNode{place: place{from, to}, operator: operator, left: left, right: right}
}

func (p *parser) choice(condition node) (node, error) {
	p.next()
	yes, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.expect(":"); err != nil {
		return nil, err
	}
	no, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	from, _ := condition.span()
	_, to := no.span()
	return &choiceNode{place{from, to}, condition, yes, no}, nil
}

// operand reads a value with what is behind it, and the signs before it.
func (p *parser) operand() (node, error) {
	if err := p.count(); err != nil {
		return nil, err
	}
	t := p.next()
	at := place{t.from, t.to}
	var n node
	switch {
	case t.is("not", "!", "-", "+"):
		binds := precedenceSign
		if t.is("not", "!") {
			binds = precedenceNot
		}
		of, err := p.expression(binds)
		if err != nil {
			return nil, err
		}
		_, at.to = of.span()
		return &unaryNode{at, strings.Replace(t.text, "!", "not", 1), of}, nil
	case t.is("("):
		inner, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		closing, err := p.expect(")")
		if err != nil {
			return nil, err
		}
		inner.widen(t.from, closing.to)
		n = inner
	case t.is("["):
		values, to, err := p.listed("]")
		if err != nil {
			return nil, err
		}
		n = &listNode{place{t.from, to}, values}
	case t.is("#"):
		n = &currentNode{at}
	case t.kind == numberToken || t.kind == quotedToken:
		n = &literalNode{at, t.value}
	case t.kind == wordToken:
		return p.named(t)
	default:
		return nil, p.unexpected(t)
	}
	return p.behind(n)
}

// named reads what begins with a word.
func (p *parser) named(t token) (node, error) {
	at := place{t.from, t.to}
	constants := map[string]any{"true": true, "false": false, "nil": nil}
	if v, ok := constants[t.text]; ok {
		return &literalNode{at, v}, nil
	}
	if t.text == "let" || t.text == "if" {
		return nil, &placed{at: t.from, what: "an invariant is one expression, without " + t.text, fix: "write a value where it is used, and use a ? b : c"}
	}
	n := node(&nameNode{at, t.text})
	if p.peek().is("(") {
		c, err := p.arguments(t.text, false, t)
		if err != nil {
			return nil, err
		}
		n = c
	}
	return p.behind(n)
}

// arguments reads the arguments of a function.
func (p *parser) arguments(function string, ofBase bool, t token) (node, error) {
	p.next()
	args, to, err := p.listed(")")
	return &callNode{place{t.from, to}, function, ofBase, args}, err
}

// listed reads values with commas between them, up to a bracket.
func (p *parser) listed(closing string) (values []node, to int, err error) {
	for !p.peek().is(closing) {
		if len(values) > 0 {
			if t := p.next(); !t.is(",") {
				return nil, 0, &placed{at: t.from, what: fmt.Sprintf("expected , or %s, got %s", closing, t), fix: seeNames}
			}
			if p.peek().is(closing) {
				break
			}
		}
		v, err := p.expression(0)
		if err != nil {
			return nil, 0, err
		}
		values = append(values, v)
	}
	return values, p.next().to, nil
}

// behind reads .name, ?.name and [key] behind a value.
func (p *parser) behind(n node) (node, error) {
	optional := false // ?. ends all that is behind it
	for {
		t := p.peek()
		if !t.is(".", "?.", "[") {
			break
		}
		if err := p.count(); err != nil {
			return nil, err
		}
		p.next()
		from, _ := n.span()
		inBrackets := t.is("[")
		if t.is("?.") {
			if optional = true; p.peek().is("[") {
				p.next()
				inBrackets = true
			}
		}
		if inBrackets {
			key, err := p.expression(0)
			if err != nil {
				return nil, err
			}
			if colon := p.peek(); colon.is(":") {
				return nil, &placed{at: colon.from, what: "parts of lists and texts are not taken in invariants", fix: "use first, last, filter or a number"}
			}
			closing, err := p.expect("]")
			if err != nil {
				return nil, err
			}
			n = &memberNode{place{from, closing.to}, n, key, t.is("?.")}
			continue
		}
		of := p.next()
		if of.kind != wordToken {
			return nil, &placed{at: of.from, what: "expected a name, got " + of.String(), fix: seeNames}
		}
		if p.peek().is("(") {
			if !isBase(n) {
				return nil, &placed{at: of.from, what: of.text + " is called on a value", fix: "write " + of.text + "(…) with the value as its first argument"}
			}
			c, err := p.arguments(of.text, true, of)
			if err != nil {
				return nil, err
			}
			_, to := c.span()
			c.widen(from, to)
			n = c
			continue
		}
		n = &memberNode{place{from, of.to}, n, &literalNode{place{of.from, of.to}, of.text}, t.is("?.")}
	}
	if !optional {
		return n, nil
	}
	from, to := n.span()
	return &chainNode{place{from, to}, n}, nil
}

func isBase(n node) bool {
	base, ok := n.(*nameNode)
	return ok && base.word == "base"
}
