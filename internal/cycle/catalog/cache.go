package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// cache keeps what was read while the files have the same size and time.
type cache struct {
	formats format.List
	now     func() time.Time
	version string // of this pawl: another one may judge a file differently
	mu      sync.Mutex
	kept    map[Key]*reading
	last    lastSync
}

// reading is what was read of the files of a loop.
type reading struct {
	of     format.Infos
	source string  // digest of the files and of the pawl that judges them; empty if they are missing
	synced bool    // Sync found that the row of the loop says what they say
	parsed *parsed // nil: nobody asked what they say
}

// parsed is what the files of a loop say. It is not changed any more.
type parsed struct {
	def      loop.Definition
	warnings []string
	problem  error
}

// lastSync is a Sync that changed nothing.
type lastSync struct {
	found Synced
	head  loop.Cursor // of the feed, when the rows were read; zero: there was no such Sync
}

// read reads the definition of a loop, or finds it in the cache. The file is as it is now. If
// the digest is the known one, it is not parsed.
func (c *cache) read(root string, s format.Source, known string) reading {
	c.mu.Lock()
	if k := c.kept[keyOf(s)]; k != nil && s.Infos.Same(k.of) && (k.parsed != nil || k.source == known) {
		defer c.mu.Unlock()
		return *k
	}
	c.mu.Unlock()
	k := &reading{of: s.Infos}
	t, err := c.formats.Of(s.Format).Files.Read(root, s)
	k.source = c.digest(t, err)
	switch {
	case err != nil:
		k.parsed = &parsed{problem: err}
	case k.source != known:
		def, warnings, problem := c.formats.Parse(s, t)
		k.parsed = &parsed{def, slices.Clip(warnings), problem} // Who appends to the warnings gets a copy.
	}
	if !s.Infos.Settled(c.now()) {
		return *k
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[Key]*reading{}
	}
	c.kept[keyOf(s)] = k
	return *k
}

// forgetParsed keeps only what tells whether the files of a loop have changed.
func (c *cache) forgetParsed(of Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept[of]; k != nil && k.parsed != nil && k.parsed.problem == nil {
		c.kept[of] = &reading{of: k.of, source: k.source}
	}
}

// markSynced notes that the row of a loop has this source, which was read of the files as
// they are now.
func (c *cache) markSynced(s format.Source, source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept[keyOf(s)]; k != nil && k.source == source && s.Infos.Same(k.of) {
		k.synced = true
	}
}

// areSynced reports whether these are the files of the last Sync, as they were then.
func (c *cache) areSynced(files []format.Source) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(files) == c.last.found.Loops && !slices.ContainsFunc(files, func(s format.Source) bool {
		k := c.kept[keyOf(s)]
		return k == nil || !k.synced || !s.Infos.Same(k.of)
	})
}

func (c *cache) lastSync() lastSync {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *cache) keepSync(l lastSync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = l
}

// digest returns the source of files with this text, or which cannot be read.
func (c *cache) digest(t format.Text, err error) string {
	if errors.Is(err, loop.ErrNotFound) {
		return ""
	}
	head := c.version + "\x00"
	if err != nil {
		head += "\x00" + err.Error()
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(head), t.Body, {0}, t.Rest} {
		_, _ = h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
