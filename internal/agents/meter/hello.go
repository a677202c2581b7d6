package meter

import (
	"errors"
	"fmt"
	"io"
)

const (
	recordHeader    = 5
	recordHandshake = 22
	maxRecord       = 1 << 14
	maxHello        = 1 << 16 // bytes of a ClientHello; one with post-quantum keys has about 2,000
	messageHeader   = 4
	clientHello     = 1

	extensionServerName = 0
	extensionECH        = 0xfe0d
)

// unrecognizedName is the alert with which a server refuses a name. Clients show
// it to their users, instead of only reporting a lost connection.
var unrecognizedName = []byte{21, 3, 3, 0, 2, 2, 112}

var (
	errNotTLS = errors.New("it does not begin as TLS does")
	errHello  = errors.New("its ClientHello is malformed")
	errHidden = errors.New("its ClientHello hides the name that it asks for (ECH): switch that off in the program")
)

// readHello reads one ClientHello, which may be spread over several records. It
// returns all bytes that it read, and the message in them.
func readHello(in io.Reader) (raw, message []byte, err error) {
	for !isComplete(message) {
		var header [recordHeader]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return nil, nil, err
		}
		size := int(header[3])<<8 | int(header[4])
		if header[0] != recordHandshake || header[1] != 3 || size == 0 || size > maxRecord {
			return nil, nil, errNotTLS
		}
		record := make([]byte, size)
		if _, err := io.ReadFull(in, record); err != nil {
			return nil, nil, err
		}
		raw = append(append(raw, header[:]...), record...)
		message = append(message, record...)
		if message[0] != clientHello {
			return nil, nil, errNotTLS
		}
		if len(raw) > 2*maxHello || isComplete(message) && len(message) > messageSize(message) {
			return nil, nil, errHello
		}
	}
	return raw, message, nil
}

func isComplete(message []byte) bool {
	return len(message) >= messageHeader && len(message) >= messageSize(message)
}

func messageSize(message []byte) int {
	return messageHeader + int(message[1])<<16 + int(message[2])<<8 + int(message[3])
}

// serverName returns the name that a ClientHello asks for, as it was written;
// empty if missing.
func serverName(message []byte) (string, error) {
	c := cursor(message)
	if !c.skipBytes(1) {
		return "", errHello
	}
	body, ok := c.readVector(3)
	if !ok || len(c) != 0 {
		return "", errHello
	}
	// Version, random, session, ciphers, compression.
	ok = body.skipBytes(2 + 32)
	for _, width := range []int{1, 2, 1} {
		_, got := body.readVector(width)
		ok = ok && got
	}
	if !ok {
		return "", errHello
	}
	if len(body) == 0 {
		return "", nil // TLS without extensions
	}
	list, ok := body.readVector(2)
	if !ok || len(body) != 0 {
		return "", errHello
	}
	return nameInExtensions(list)
}

// nameInExtensions reads the extensions. A second server name is an error,
// because a server could use either.
func nameInExtensions(list cursor) (name string, err error) {
	seen := false
	for len(list) > 0 {
		id, ok := list.readNumber(2)
		data, got := list.readVector(2)
		switch {
		case !ok || !got:
			return "", errHello
		case id == extensionECH:
			return "", errHidden
		case id != extensionServerName:
			continue
		case seen:
			return "", errHello
		}
		seen = true
		if name, err = soleName(data); err != nil {
			return "", err
		}
	}
	return name, nil
}

func soleName(data cursor) (string, error) {
	names, ok := data.readVector(2)
	if !ok || len(data) != 0 {
		return "", errHello
	}
	kind, _ := names.readNumber(1)
	name, _ := names.readVector(2) // empty if it is cut
	if kind != 0 || len(names) != 0 || len(name) == 0 {
		return "", errHello
	}
	return string(name), nil
}

// checkHello returns why a ClientHello may not be sent to a place.
func checkHello(message []byte, to place) error {
	name, err := serverName(message)
	switch {
	case err != nil:
		return deny(to, ReasonServerName, err.Error())
	case to.addr.IsValid() && name != "":
		return deny(to, ReasonServerName, fmt.Sprintf("TLS asks for %q, CONNECT for an address", shorten(name)))
	case to.addr.IsValid():
		return nil
	case name == "":
		return deny(to, ReasonServerName, "TLS names no host (no SNI)")
	}
	if spelled, _, err := parseName(name); err != nil || spelled != to.name {
		return deny(to, ReasonServerName, fmt.Sprintf("TLS asks for %q", shorten(name)))
	}
	return nil
}

// cursor is the rest of a message that is being read.
type cursor []byte

func (c *cursor) skipBytes(n int) bool {
	if len(*c) < n {
		return false
	}
	*c = (*c)[n:]
	return true
}

func (c *cursor) readNumber(width int) (n int, ok bool) {
	if len(*c) < width {
		return 0, false
	}
	for _, b := range (*c)[:width] {
		n = n<<8 | int(b)
	}
	return n, c.skipBytes(width)
}

// readVector reads a length of width bytes, and as many bytes as it says.
func (c *cursor) readVector(width int) (cursor, bool) {
	n, ok := c.readNumber(width)
	if !ok || len(*c) < n {
		return nil, false
	}
	v := (*c)[:n]
	return v, c.skipBytes(n)
}
