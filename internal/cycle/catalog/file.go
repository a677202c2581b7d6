package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// DefinedNames returns the names of the loops that files of the workspace at root
// define, sorted. It opens no definition. If .loops cannot be listed, the error is a
// *loop.Fault.
func DefinedNames(root string) ([]string, error) {
	all, err := Defined(root)
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	return slices.Compact(names), err
}

// Definition says which file defines a loop.
type Definition struct {
	Name     string
	Protocol string
	File     string // relative to the workspace; of a boot loop its loop.config.yaml, or else AGENT_LINK.md
}

// Defined returns the definitions of the workspace at root, as DefinedNames does.
func Defined(root string) ([]Definition, error) { return definitionsOf(findFiles(root)) }

// DefinedAs returns the definitions of the loops with that name.
func DefinedAs(root, name string) ([]Definition, error) { return definitionsOf(findNamed(root, name)) }

// IsDefined reports whether a file defines a loop.
func IsDefined(root, name, protocol string) bool {
	files, _ := findNamed(root, name) // What cannot be listed defines nothing.
	return slices.ContainsFunc(files, func(f file) bool { return f.protocol == protocol })
}

func definitionsOf(files []file, err error) ([]Definition, error) {
	var list []Definition
	for _, f := range files {
		d := Definition{f.name, f.protocol, f.path()}
		if f.protocol == loop.ProtocolBoot && f.config != nil {
			d.File = definition.Path(f.name)
		}
		list = append(list, d)
	}
	return list, err
}

// file is what defines a loop, not opened.
type file struct {
	name     string // of the loop
	protocol string
	info     fs.FileInfo // of the file; of a boot loop of AGENT_LINK.md, of an agent of its LOOP.md, or nil without one
	config   fs.FileInfo // of a boot loop's loop.config.yaml, of an agent's MANIFEST.yaml; nil: there is none
	shared   sharedInfo  // of an agent: the files of its organisation
}

// sharedInfo is what is known of orgdef.SharedFiles without opening them; nil for each that
// is missing.
type sharedInfo [4]fs.FileInfo

func (f file) sortKey() Key { return Key{f.name, f.protocol} }

// path is relative to the workspace.
func (f file) path() string {
	switch {
	case f.protocol == loop.ProtocolBoot && f.info != nil:
		return bootdef.LinkFile
	case f.protocol == loop.ProtocolTasks && f.info != nil:
		return filepath.FromSlash(orgdef.AgentFile(f.name, orgdef.LoopFile))
	case f.protocol == loop.ProtocolTasks:
		return filepath.FromSlash(orgdef.AgentFile(f.name, orgdef.Manifest))
	}
	return definition.Path(f.name)
}

// findFiles finds all definitions, in the order of a listing.
func findFiles(root string) ([]file, error) {
	entries, err := os.ReadDir(filepath.Join(root, ".loops"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &loop.Fault{
			Exit: loop.ExitUnreadable, What: "list loops", Why: err.Error(), Err: err, Fix: "put a readable folder there, or nothing",
		}
	}
	files := make([]file, 0, len(entries)+1)
	var config fs.FileInfo // of the folder boot
	for _, e := range entries {
		info, err := os.Lstat(filepath.Join(root, definition.Path(e.Name())))
		switch {
		case err != nil:
		case e.Name() == bootdef.Name:
			config = info
		default:
			files = append(files, file{name: e.Name(), protocol: loop.ProtocolSpine, info: info})
		}
	}
	at, _ := slices.BinarySearchFunc(files, bootdef.Name, func(f file, name string) int { return strings.Compare(f.name, name) })
	files = slices.Insert(files, at, bootFiles(root, config)...)
	agents, err := findAgents(root)
	if len(agents) > 0 {
		files = append(files, agents...)
		slices.SortFunc(files, func(a, b file) int { return a.sortKey().compare(b.sortKey()) })
	}
	return files, err
}

// findAgents finds the definitions of all agents.
func findAgents(root string) (files []file, err error) {
	entries, err := os.ReadDir(filepath.Join(root, orgdef.AgentsDir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, &loop.Fault{
			Exit: loop.ExitUnreadable, What: "list agents", Why: err.Error(), Err: err, Fix: "put a readable folder there, or nothing",
		}
	}
	var shared *sharedInfo
	for _, e := range entries {
		if f, ok := agentFile(root, e.Name()); ok {
			if shared == nil {
				shared = findShared(root)
			}
			f.shared = *shared
			files = append(files, f)
		}
	}
	return files, nil
}

// agentFile finds the definition of one agent, without what it shares with others.
func agentFile(root, name string) (file, bool) {
	folder := filepath.Join(root, orgdef.AgentsDir, name)
	if _, err := os.Lstat(folder); err != nil {
		return file{}, false
	}
	f := file{name: name, protocol: loop.ProtocolTasks}
	if info, err := os.Lstat(filepath.Join(folder, orgdef.LoopFile)); err == nil {
		f.info = info
	}
	if info, err := os.Lstat(filepath.Join(folder, orgdef.Manifest)); err == nil {
		f.config = info
	}
	return f, f.info != nil || f.config != nil
}

func findShared(root string) *sharedInfo {
	var s sharedInfo
	for i, name := range orgdef.SharedFiles {
		if info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name))); err == nil {
			s[i] = info
		}
	}
	return &s
}

// findNamed finds the definitions of the loops with that name, as findFiles does.
func findNamed(root, name string) ([]file, error) {
	if name == "." || name == ".." || filepath.Base(name) != name {
		return nil, nil
	}
	info, err := os.Lstat(filepath.Join(root, definition.Path(name)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_, err = findFiles(root) // For the same error if .loops cannot be listed.
		return nil, err
	}
	var files []file
	switch {
	case name == bootdef.Name:
		files = bootFiles(root, info)
	case info != nil:
		files = []file{{name: name, protocol: loop.ProtocolSpine, info: info}}
	}
	if f, ok := agentFile(root, name); ok {
		f.shared = *findShared(root)
		files = append(files, f)
	}
	return files, nil
}

// bootFiles finds the definitions of the loops called boot. Config is the loop.config.yaml
// of their folder, or nil: it belongs to AGENT_LINK.md, or to a spine loop that somebody
// has called boot.
func bootFiles(root string, config fs.FileInfo) []file {
	link, err := os.Lstat(filepath.Join(root, bootdef.LinkFile))
	if err != nil {
		link = nil
	}
	spineConfig := config
	if config != nil && !isSpine(root) {
		spineConfig = nil
	} else {
		config = nil
	}
	var files []file
	if link != nil || config != nil {
		files = append(files, file{name: bootdef.Name, protocol: loop.ProtocolBoot, info: link, config: config})
	}
	if spineConfig != nil {
		files = append(files, file{name: bootdef.Name, protocol: loop.ProtocolSpine, info: spineConfig})
	}
	return files
}

// isSpine reports whether the folder boot is that of a spine loop. The file is opened only
// where no STATE.md tells.
func isSpine(root string) bool {
	dir := filepath.Join(root, filepath.FromSlash(definition.Dir(bootdef.Name)))
	if _, err := os.Lstat(filepath.Join(dir, loop.StateFile)); err == nil {
		return true
	}
	doc, _, err := definition.Load(filepath.Join(dir, definition.ConfigFile))
	if err != nil {
		return false
	}
	protocol, _ := doc.Scalar("protocol")
	return protocol.Text == loop.ProtocolSpine
}

// ReadDefinition reads the definition of a loop from its file in the workspace at root.
// Findings with which the loop still runs are warnings. If there is any other, the
// error is a *loop.Fault and def has what could be read.
func ReadDefinition(root, name string) (def loop.Definition, warnings []string, err error) {
	files, err := findNamed(root, name)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	if len(files) == 0 {
		return loop.Definition{}, nil, missingFault(name)
	}
	t, err := readText(root, files[0], orgdef.ReadOrganisation)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	return t.parse(root, files[0])
}

// ReadAs is ReadDefinition of the loop with that protocol. It reports false if no file has a
// definition with which it can run.
func ReadAs(root, name, protocol string) (loop.Definition, bool) {
	files, err := findNamed(root, name)
	at := slices.IndexFunc(files, func(f file) bool { return f.protocol == protocol })
	if err != nil || at < 0 {
		return loop.Definition{}, false
	}
	t, err := readText(root, files[at], orgdef.ReadOrganisation)
	if err != nil {
		return loop.Definition{}, false
	}
	def, _, err := t.parse(root, files[at])
	return def, err == nil
}

// ReadFile is ReadDefinition for a file wherever it lies, of a loop with that name.
func ReadFile(path, name string) (def loop.Definition, warnings []string, err error) {
	text, err := definition.Read(path)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	doc, err := definition.Parse(path, text)
	if err != nil {
		return loop.Definition{}, nil, err
	}
	return convert(doc, path, name, text)
}

// OnlyElsewhere says what is wrong with a protocol in a loop.config.yaml of .loops that
// has no effect there; empty if nothing is.
func OnlyElsewhere(protocol string) string {
	switch protocol {
	case loop.ProtocolBoot:
		return "protocol: boot, which only the loop has that " + bootdef.LinkFile + " makes"
	case loop.ProtocolTasks:
		return "protocol: tasks, which only the agents in " + orgdef.AgentsDir + "/ have"
	}
	return ""
}

// text is what the files say that define a loop.
type text struct {
	config []byte
	link   bootdef.Link         // of a boot loop
	agent  *orgdef.Agent        // of protocol tasks
	org    *orgdef.Organisation // of the agent
}

// readText reads the files of a loop, and with organisation those that agents share.
func readText(root string, f file, organisation func(root string) orgdef.Organisation) (t text, err error) {
	if f.protocol == loop.ProtocolTasks {
		org := organisation(root)
		agent, err := orgdef.ReadAgent(root, f.name)
		t.config, t.agent, t.org = agent.Text, &agent, &org
		return t, err
	}
	if f.protocol == loop.ProtocolBoot {
		if t.link, err = bootdef.Read(root); err != nil || f.config == nil {
			return t, err
		}
	}
	t.config, err = definition.Read(filepath.Join(root, definition.Path(f.name)))
	if errors.Is(err, loop.ErrNotFound) {
		err = missingFault(f.name)
	}
	return t, err
}

// parse is ReadDefinition for files that were read.
func (t text) parse(root string, f file) (def loop.Definition, warnings []string, err error) {
	rel := definition.Path(f.name)
	var doc *definition.Document
	switch f.protocol {
	case loop.ProtocolBoot:
		if err = t.link.Fault(); err == nil {
			doc, err = t.link.Document(rel, t.config)
		}
	case loop.ProtocolTasks:
		rel = t.agent.File
		doc, err = t.agent.Document(*t.org)
	default:
		doc, err = definition.Parse(filepath.Join(root, rel), t.config)
	}
	if err != nil {
		return loop.Definition{}, nil, err
	}
	def, warnings, err = convert(doc, rel, f.name, t.config)
	if problem := OnlyElsewhere(def.Protocol); err == nil && def.Protocol != f.protocol && problem != "" {
		err = &loop.Fault{
			Exit: loop.ExitNotReady, What: f.name + " is not ready to run", Why: rel + " says " + problem, Fix: "remove the key",
		}
	}
	return def, warnings, err
}

// convert makes the definition of a loop. Messages call its file rel.
func convert(doc *definition.Document, rel, name string, text []byte) (def loop.Definition, warnings []string, err error) {
	def, findings := doc.Definition(name)
	if doc.Notice != "" {
		warnings = append(warnings, doc.Notice)
	}
	var problems []string
	for _, f := range findings {
		said := f.Render(rel, text)
		if f.Severity == readiness.SeverityError {
			problems = append(problems, said)
			continue
		}
		warnings = append(warnings, said)
	}
	if len(problems) > 0 {
		err = &loop.Fault{
			Exit: loop.ExitNotReady, What: name + " is not ready to run", Why: strings.Join(problems, "\n"), Fix: "correct " + rel,
		}
	}
	return def, warnings, err
}

// settleTime is the least age of a file that is cached. Clocks of file systems are
// coarse: a younger file may be written again without a new time.
const settleTime = 2 * time.Second

// cache keeps what was read while the files have the same size and time.
type cache struct {
	now     func() time.Time
	version string // of this pawl: another one may judge a file differently
	mu      sync.Mutex
	kept    map[Key]*reading
	last    lastSync

	shared sharedInfo           // of the files that org was read from
	org    *orgdef.Organisation // nil: it was not read, or its files may still change unseen
}

// reading is what was read of the files of a loop.
type reading struct {
	of     file
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

// isSame reports whether files are as they were.
func (f file) isSame(was file) bool {
	return sameInfo(f.info, was.info) && sameInfo(f.config, was.config) && f.shared.isSame(was.shared)
}

func (s sharedInfo) isSame(was sharedInfo) bool {
	for i := range s {
		if !sameInfo(s[i], was[i]) {
			return false
		}
	}
	return true
}

func sameInfo(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// hasSettled reports whether the files would show by their times that they were written
// again.
func (f file) hasSettled(now time.Time) bool {
	return haveSettled(now, append(f.shared[:], f.info, f.config))
}

func haveSettled(now time.Time, infos []fs.FileInfo) bool {
	for _, info := range infos {
		if info != nil && (!info.Mode().IsRegular() || now.Sub(info.ModTime()) < settleTime) {
			return false
		}
	}
	return true
}

// organisation reads the files that agents share, or has read them since they changed.
func (c *cache) organisation(root string, shared sharedInfo) orgdef.Organisation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.org != nil && c.shared.isSame(shared) {
		return *c.org
	}
	org := orgdef.ReadOrganisation(root)
	if c.org = nil; haveSettled(c.now(), shared[:]) {
		c.org, c.shared = &org, shared
	}
	return org
}

// read reads the definition of a loop, or finds it in the cache. The file is as it is now. If
// the digest is the known one, it is not parsed.
func (c *cache) read(root string, f file, known string) reading {
	c.mu.Lock()
	if k := c.kept[f.sortKey()]; k != nil && f.isSame(k.of) && (k.parsed != nil || k.source == known) {
		defer c.mu.Unlock()
		return *k
	}
	c.mu.Unlock()
	k := &reading{of: f}
	t, err := readText(root, f, func(root string) orgdef.Organisation { return c.organisation(root, f.shared) })
	k.source = c.digest(t, err)
	switch {
	case err != nil:
		k.parsed = &parsed{problem: err}
	case k.source != known:
		def, warnings, problem := t.parse(root, f)
		k.parsed = &parsed{def, slices.Clip(warnings), problem} // Who appends to the warnings gets a copy.
	}
	if !f.hasSettled(c.now()) {
		return *k
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[Key]*reading{}
	}
	c.kept[f.sortKey()] = k
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
func (c *cache) markSynced(f file, source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept[f.sortKey()]; k != nil && k.source == source && f.isSame(k.of) {
		k.synced = true
	}
}

// areSynced reports whether these are the files of the last Sync, as they were then.
func (c *cache) areSynced(files []file) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(files) == c.last.found.Loops && !slices.ContainsFunc(files, func(f file) bool {
		k := c.kept[f.sortKey()]
		return k == nil || !k.synced || !f.isSame(k.of)
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
func (c *cache) digest(t text, err error) string {
	if errors.Is(err, loop.ErrNotFound) {
		return ""
	}
	head := c.version + "\x00"
	if err != nil {
		head += "\x00" + err.Error()
	}
	h := sha256.New()
	_, _ = h.Write([]byte(head))
	_, _ = h.Write(t.config)
	if t.agent != nil {
		agent := t.agent.Digest()
		_, _ = h.Write(agent[:])
		_, _ = h.Write(t.org.Digest[:])
	}
	if t.link.Source != nil {
		_, _ = h.Write([]byte("\x00" + string(t.link.Source)))
		for _, f := range t.link.Findings { // Links on disk count, too.
			_, _ = h.Write([]byte("\x00" + f.String()))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
