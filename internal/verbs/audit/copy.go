package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// copyHead is the first line of an exported audit, schema pawl.audit/v1. Each
// further line is one entry, a loop.Link. The lengths and heads show whether
// the copy is whole.
type copyHead struct {
	Schema    string       `json:"schema"`
	Workspace string       `json:"workspace"`
	Exported  time.Time    `json:"exported"`
	Chains    []copiedHead `json:"chains"`
}

type copiedHead struct {
	Chain    string `json:"chain"`
	Loop     string `json:"loop,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Links    int64  `json:"links"`
	Head     string `json:"head"`
}

const copySchema = "pawl.audit/v1"

// Export writes the chain of one loop, or all chains of the workspace, as
// lines of JSON that VerifyCopy verifies without the store. What is broken is
// written as it is.
func (s *Service) Export(ctx context.Context, name string, to io.Writer) error {
	chains, err := s.chains(ctx, name)
	if err != nil {
		return err
	}
	h := copyHead{Schema: copySchema, Workspace: s.ws.ID, Exported: s.ws.Now().UTC(), Chains: []copiedHead{}}
	for _, c := range chains {
		h.Chains = append(h.Chains, copiedHead{c.Chain, c.Loop, c.Protocol, c.Links, c.Head})
	}
	out := bufio.NewWriter(to)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return fmt.Errorf("export the audit: %w", err)
	}
	for _, c := range chains {
		for _, l := range c.Entries {
			if err := enc.Encode(l); err != nil {
				return fmt.Errorf("export the audit: %w", err)
			}
		}
	}
	return out.Flush()
}

// VerifyCopy verifies what Export wrote. It needs neither a store nor a
// repository, and sees no run log. Text that is no such copy is a *loop.Fault
// that names the line.
func VerifyCopy(from io.Reader) (Findings, error) {
	chains, err := readCopy(from)
	return audited(chains), err
}

func readCopy(from io.Reader) ([]Chain, error) {
	in := bufio.NewReader(from)
	var h copyHead
	if err := readLine(in, 1, &h); err != nil {
		return nil, err
	}
	if h.Schema != copySchema {
		return nil, copyFault(1, fmt.Sprintf("its schema is %q, not %s", h.Schema, copySchema))
	}
	chains := make([]Chain, 0, len(h.Chains))
	for _, c := range h.Chains {
		chains = append(chains, Chain{Chain: c.Chain, Loop: c.Loop, Protocol: c.Protocol, Links: c.Links, Head: c.Head})
	}
	for n := 2; ; n++ {
		var l loop.Link
		err := readLine(in, n, &l)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(chains, func(c Chain) bool { return c.Chain == l.Chain })
		if at < 0 {
			return nil, copyFault(n, fmt.Sprintf("its chain %q does not stand in the first line", l.Chain))
		}
		chains[at].Entries = append(chains[at].Entries, l)
	}
	for i := range chains {
		c := &chains[i]
		c.walk(store.Head{Links: c.Links, Hash: c.Head})
	}
	return chains, nil
}

// maxCopyLine is the longest line of a copy in bytes. The longest body is that
// of an effect, which holds an error.
const maxCopyLine = 16 << 20

func readLine(in *bufio.Reader, n int, into any) error {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
			break
		}
		if errors.Is(err, io.EOF) && n > 1 {
			return io.EOF
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxCopyLine {
			return copyFault(n, err.Error())
		}
	}
	if err := json.Unmarshal(bytes.TrimSpace(line), into); err != nil {
		return copyFault(n, err.Error())
	}
	return nil
}

func copyFault(line int, why string) error {
	return &loop.Fault{
		Exit: loop.ExitUnreadable, What: fmt.Sprintf("line %d is not a line of an exported audit", line), Why: why,
		Fix: "name a file that {1} wrote", Actions: []loop.Command{loop.PawlCommand("audit export")},
	}
}
