package meter

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// helloOf returns what crypto/tls sends first.
func helloOf(tb testing.TB, config *tls.Config) []byte {
	tb.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// It ends with an error: nobody answers it.
		_ = tls.Client(theirs, config).HandshakeContext(context.Background())
	}()
	raw, _, err := readHello(ours)
	if err != nil {
		tb.Fatal(err)
	}
	_ = ours.Close()
	<-done
	return raw
}

// config is one for a client; the name is not checked, as nobody answers. The
// small key keeps what is fuzzed small.
func config(name string, versions ...uint16) *tls.Config {
	c := &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, CurvePreferences: []tls.CurveID{tls.X25519}}
	if len(versions) > 0 {
		c.MaxVersion = versions[0]
	}
	return c
}

// hidden is a configuration that hides the name b.test behind a.test.
func hidden(tb testing.TB) *tls.Config {
	tb.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	public := key.PublicKey().Bytes()
	inner := []byte{1, 0, 0x20, 0, byte(len(public))} // id; X25519; the length of the key
	inner = append(inner, public...)
	inner = append(inner, 0, 4, 0, 1, 0, 1, 0) // one suite: HKDF-SHA256, AES-128-GCM; no longest name
	inner = append(inner, byte(len("a.test")))
	inner = append(append(inner, "a.test"...), 0, 0)
	one := append([]byte{0xfe, 0x0d, 0, byte(len(inner))}, inner...)
	c := config("b.test")
	c.MinVersion = tls.VersionTLS13
	c.EncryptedClientHelloConfigList = append([]byte{0, byte(len(one))}, one...)
	return c
}

// split spreads a hello over records of one byte each.
func split1(raw []byte) []byte {
	var out []byte
	for _, b := range raw[recordHeader:] {
		out = append(out, recordHandshake, 3, 1, 0, 1, b)
	}
	return out
}

func placeFor(tb testing.TB, authority string) place {
	tb.Helper()
	p, err := parsePlace(authority, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// altered changes bytes of a hello that has them once.
func altered(tb testing.TB, raw []byte, from, to string) []byte {
	tb.Helper()
	if bytes.Count(raw, []byte(from)) != 1 || len(from) != len(to) {
		tb.Fatalf("%q does not stand once in the hello", from)
	}
	return bytes.Replace(raw, []byte(from), []byte(to), 1)
}

func TestOnlyAHelloForTheHostPasses(t *testing.T) {
	name := helloOf(t, config("a.test"))
	for what, c := range map[string]struct {
		raw  []byte
		to   string
		want string // empty: it passes
	}{
		"TLS 1.3":                   {name, "a.test:443", ""},
		"TLS 1.2":                   {helloOf(t, config("a.test", tls.VersionTLS12)), "a.test:443", ""},
		"TLS 1.0":                   {helloOf(t, config("a.test", tls.VersionTLS10)), "a.test:443", ""},
		"in records of one byte":    {split1(name), "a.test:443", ""},
		"in capitals":               {helloOf(t, config("A.Test")), "a.test:443", ""},
		"another name":              {helloOf(t, config("b.test")), "a.test:443", `TLS asks for "b.test"`},
		"a name below":              {helloOf(t, config("x.a.test")), "a.test:443", `TLS asks for "x.a.test"`},
		"no name":                   {helloOf(t, config("")), "a.test:443", "no SNI"},
		"an address without a name": {helloOf(t, config("93.184.216.34")), "93.184.216.34:443", ""},
		"an address with a name":    {name, "93.184.216.34:443", "CONNECT for an address"},
		"a name that is hidden":     {helloOf(t, hidden(t)), "a.test:443", "ECH"},
		"a name with a NUL":         {altered(t, name, "a.test", "a\x00test"), "a.test:443", `TLS asks for "a?test"`},
		"a name that is not ASCII":  {altered(t, name, "a.test", "\xc3\xa4test"), "a.test:443", "TLS asks for"},
		"a name of another kind":    {altered(t, name, "\x00\x00\x06a.test", "\x01\x00\x06a.test"), "a.test:443", "malformed"},
		"a list that is longer":     {altered(t, name, "\x00\x09\x00\x00\x06a.test", "\x00\x0a\x00\x00\x06a.test"), "a.test:443", "malformed"},
		"a list that is shorter":    {altered(t, name, "\x00\x09\x00\x00\x06a.test", "\x00\x08\x00\x00\x06a.test"), "a.test:443", "malformed"},
		"a name that is shorter":    {altered(t, name, "\x00\x00\x06a.test", "\x00\x00\x05a.test"), "a.test:443", "malformed"},
		"a name twice":              {twice(t, name), "a.test:443", "malformed"},
		"nothing in it":             {[]byte{recordHandshake, 3, 1, 0, 4, clientHello, 0, 0, 0}, "a.test:443", "malformed"},
		"no extensions":             {handmade(nil), "a.test:443", "no SNI"},
		"an empty extension behind": {handmade([]byte("\x00\x00\x00\x0b\x00\x09\x00\x00\x06a.test\x00\x17\x00\x00")), "a.test:443", ""},
		"an extension that is cut":  {handmade([]byte("\x00\x00\x00\x0b\x00\x09\x00\x00\x06a.test\x00\x17\x00\x01")), "a.test:443", "malformed"},
		"more behind extensions":    {handmade([]byte("\x00\x00\x00\x0b\x00\x09\x00\x00\x06a.test"), 0), "a.test:443", "malformed"},
		"half of an extension":      {handmade([]byte("\x00\x00\x00\x0b\x00\x09\x00\x00\x06a.test\x00")), "a.test:443", "malformed"},
	} {
		t.Run(what, func(t *testing.T) {
			_, message, err := readHello(bytes.NewReader(c.raw))
			if err == nil {
				err = checkHello(message, placeFor(t, c.to))
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("err = %v, want %q", err, c.want)
			}
		})
	}
}

// handmade is a hello with these extensions, and what stands behind them; nil: from
// before there were any.
func handmade(extensions []byte, behind ...byte) []byte {
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0, 0, 2, 0x13, 1, 1, 0) // no session, one suite, no compression
	if extensions != nil {
		body = append(append(body, byte(len(extensions)>>8), byte(len(extensions))), extensions...)
	}
	body = append(body, behind...)
	message := append([]byte{clientHello, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	return append([]byte{recordHandshake, 3, 1, byte(len(message) >> 8), byte(len(message))}, message...)
}

// twice makes a hello whose extensions hold the server name two times.
func twice(tb testing.TB, raw []byte) []byte {
	tb.Helper()
	name := []byte("\x00\x00\x00\x0b\x00\x09\x00\x00\x06a.test")
	at := bytes.Index(raw, name)
	if at < 0 {
		tb.Fatal("the hello has no server name")
	}
	out := append(bytes.Clone(raw[:at]), append(bytes.Clone(name), raw[at:]...)...)
	grow := func(at, width int) {
		n := 0
		for i := range width {
			n = n<<8 | int(out[at+i])
		}
		n += len(name)
		for i := width - 1; i >= 0; i-- {
			out[at+i] = byte(n)
			n >>= 8
		}
	}
	grow(3, 2) // the record
	grow(recordHeader+1, 3)
	extensions := recordHeader + messageHeader + 2 + 32
	extensions += 1 + int(out[extensions])
	extensions += 2 + int(out[extensions])<<8 + int(out[extensions+1])
	extensions += 1 + int(out[extensions])
	grow(extensions, 2)
	return out
}

func TestWhatIsNoHelloIsNotRead(t *testing.T) {
	good := helloOf(t, config("a.test"))
	record := append([]byte{recordHandshake, 3, 1, maxRecord >> 8, 0}, bytes.Repeat([]byte{clientHello}, maxRecord)...)
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"HTTP":                     {[]byte("GET / HTTP/1.1\r\n\r\n"), errNotTLS},
		"SSH":                      {[]byte("SSH-2.0-OpenSSH_9.6\r\n"), errNotTLS},
		"SSL 2":                    {[]byte("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10"), errNotTLS},
		"another message":          {[]byte{recordHandshake, 3, 3, 0, 4, 2, 0, 0, 0}, errNotTLS},
		"another record":           {[]byte{23, 3, 3, 0, 4, 1, 0, 0, 0}, errNotTLS},
		"an empty record":          {[]byte{recordHandshake, 3, 3, 0, 0}, errNotTLS},
		"a record that is large":   {[]byte{recordHandshake, 3, 3, 0xff, 0xff}, errNotTLS},
		"a hello without an end":   {bytes.Repeat(record, 16), errHello},
		"more behind it":           {append([]byte{recordHandshake, 3, 1, 0, 6, 1, 0, 0, 0}, 1, 0), errHello},
		"it ends in the middle":    {good[:len(good)/2], io.ErrUnexpectedEOF},
		"nothing":                  {nil, io.EOF},
		"half of a record's start": {good[:3], io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := readHello(bytes.NewReader(c.raw)); !errors.Is(err, c.want) {
				t.Errorf("err = %v, want %v", err, c.want)
			}
		})
	}
}

func TestEveryCutOfAHelloIsMalformed(t *testing.T) {
	_, message, err := readHello(bytes.NewReader(helloOf(t, config("a.test"))))
	if err != nil {
		t.Fatal(err)
	}
	for n := range message {
		if name, err := serverName(message[:n]); err == nil {
			t.Errorf("of %d bytes, %d give the name %q", len(message), n, name)
		}
	}
}

// FuzzClientHello holds our reader against the one of crypto/tls: where that
// goes on with a hello, ours has the same name for it or refuses it.
func FuzzClientHello(f *testing.F) {
	for _, c := range []*tls.Config{config("a.test"), config(""), config("a.test", tls.VersionTLS12), config("a.test", tls.VersionTLS10), hidden(f)} {
		f.Add(helloOf(f, c))
	}
	f.Add(split1(helloOf(f, config("a.test", tls.VersionTLS12))))
	f.Add(twice(f, helloOf(f, config("a.test"))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		read, message, err := readHello(bytes.NewReader(raw))
		if err != nil {
			return
		}
		if !bytes.HasPrefix(raw, read) || len(message) > len(read) {
			t.Fatalf("of %x was read %x", raw, read)
		}
		name, err := serverName(message)
		if err != nil {
			return
		}
		theirs, asked := theirName(read)
		if asked && theirs != name {
			t.Errorf("the name is %q, and %q to crypto/tls", name, theirs)
		}
	})
}

// theirName returns the name that crypto/tls finds, if it goes on at all.
func theirName(raw []byte) (name string, asked bool) {
	stop := errors.New("enough")
	server := tls.Server(&spoken{Reader: bytes.NewReader(raw)}, &tls.Config{
		MinVersion: tls.VersionTLS10,
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			name, asked = info.ServerName, true
			return nil, stop
		},
	})
	_ = server.HandshakeContext(context.Background())
	return name, asked
}

// spoken is a connection that says something and hears nothing.
type spoken struct {
	net.Conn
	io.Reader
}

func (s *spoken) Read(p []byte) (int, error)       { return s.Reader.Read(p) }
func (s *spoken) Write(p []byte) (int, error)      { return len(p), nil }
func (s *spoken) Close() error                     { return nil }
func (s *spoken) SetDeadline(time.Time) error      { return nil }
func (s *spoken) SetWriteDeadline(time.Time) error { return nil }
