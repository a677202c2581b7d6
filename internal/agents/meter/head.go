package meter

import (
	"bufio"
	"errors"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

const (
	maxFields  = 128
	maxLengths = 18 // digits of a Content-Length, so that it fits into an int64
)

var errHeadSize = errors.New("its head is larger than may be")

// head is the head of one request, read so strictly that it has only one meaning.
type head struct {
	method  string
	target  string
	old     bool // HTTP/1.0
	fields  []field
	length  int64 // of the body; 0 if chunked
	chunked bool
}

type field struct{ name, value string }

// readHead reads up to the empty line. It is stricter than net/http, which
// accepts a lone line feed as a line end, joins folded lines, and drops a
// Content-Length beside Transfer-Encoding.
func readHead(in *bufio.Reader, limit int) (head, error) {
	left := limit
	line, err := readLine(in, &left)
	if err != nil {
		return head{}, err
	}
	h, err := parseRequestLine(line)
	if err != nil {
		return head{}, err
	}
	for {
		line, err := readLine(in, &left)
		if err != nil {
			return head{}, err
		}
		if line == "" {
			return h, h.readBodyLength()
		}
		f, err := parseField(line)
		if err != nil {
			return head{}, err
		}
		if h.fields = append(h.fields, f); len(h.fields) > maxFields {
			return head{}, errHeadSize
		}
	}
}

// readLine returns a line without its CR LF. A malformedError is the client's
// mistake; any other error means that the client has gone.
func readLine(in *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if *left -= len(part); *left < 0 {
			return "", &malformedError{errHeadSize}
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok || strings.ContainsAny(text, "\r\x00") {
		return "", malformed("a line of it does not end with CR LF, or has a CR or NUL inside")
	}
	return text, nil
}

// malformedError means that a request is invalid or ambiguous.
type malformedError struct{ err error }

func (e *malformedError) Error() string { return e.err.Error() }

func (e *malformedError) Unwrap() error { return e.err }

func malformed(why string) error { return &malformedError{errors.New(why)} }

func parseRequestLine(line string) (head, error) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !isToken(parts[0]) || !isVisible(parts[1]) {
		return head{}, malformed("its first line is not a method, a target and a version")
	}
	h := head{method: parts[0], target: parts[1], old: parts[2] == "HTTP/1.0"}
	if !h.old && parts[2] != "HTTP/1.1" {
		return head{}, malformed("its version is neither HTTP/1.1 nor HTTP/1.0")
	}
	return h, nil
}

func parseField(line string) (field, error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || !isToken(name) {
		return field{}, malformed("a header field has no name, or a space beside it")
	}
	value = strings.Trim(value, " \t")
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return field{}, malformed("a header field has a control character")
		}
	}
	return field{textproto.CanonicalMIMEHeaderKey(name), value}, nil
}

// readBodyLength reads how long the body is, and refuses a request that says it
// twice.
func (h *head) readBodyLength() error {
	lengths, codings := h.fieldValues("Content-Length"), h.fieldValues("Transfer-Encoding")
	switch {
	case len(lengths) > 1 || len(codings) > 1:
		return malformed("it says more than once how long it is")
	case len(lengths) == 1 && len(codings) == 1:
		return malformed("it has a Content-Length and a Transfer-Encoding")
	case len(h.fieldValues("Host")) > 1:
		return malformed("it has more than one Host")
	case len(codings) == 1:
		if h.old || !strings.EqualFold(codings[0], "chunked") {
			return malformed("its Transfer-Encoding is not chunked alone, in HTTP/1.1")
		}
		h.chunked = true
	case len(lengths) == 1:
		text := lengths[0]
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || len(text) > maxLengths {
			return malformed("its Content-Length is not a number")
		}
		h.length = int64(n)
	}
	return nil
}

func (h *head) fieldValues(name string) []string {
	var out []string
	for _, f := range h.fields {
		if f.name == name {
			out = append(out, f.value)
		}
	}
	return out
}

// listHas reports whether a field that is a list has an element, in any case.
func (h *head) listHas(name, element string) bool {
	return listHasElement(strings.Join(h.fieldValues(name), ","), element)
}

func listHasElement(list, element string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.Trim(part, " \t"), element) {
			return true
		}
	}
	return false
}

// endToEnd returns the fields for the host, without those that the proxy writes
// itself.
func (h *head) endToEnd() []field {
	return slices.DeleteFunc(slices.Clone(h.fields), func(f field) bool {
		return isHopByHop(f.name) || h.listHas("Connection", f.name)
	})
}

// isHopByHop reports whether a field is only for the next program on the way.
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Expect", "Http2-Settings":
		return true
	}
	return strings.HasPrefix(name, "Proxy-")
}

func isToken(s string) bool {
	return s != "" && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func isVisible(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
