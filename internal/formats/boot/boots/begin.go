package boots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// InitRequest says what a new workspace links to. Exactly one of Boot and NewBoot is set.
type InitRequest struct {
	Boot    string `json:"boot,omitempty"`     // REPOSITORY@REF: owner/repo, a URL or a path
	NewBoot string `json:"new_boot,omitempty"` // a folder in which a boot repository is made
	Dir     string `json:"dir"`                // the folder at which relative paths begin
	Project string `json:"project,omitempty"`  // empty: the name of the workspace's folder
	Verify  string `json:"verify,omitempty"`   // the gate; empty: the tests that are found; NoGate: none
}

// Begun is what Init would make or has made, schema pawl.boot-init/v1.
type Begun struct {
	Schema     string      `json:"schema"`
	Repository string      `json:"repository"` // as the link names it
	Reference  string      `json:"reference"`
	Version    string      `json:"version"`
	New        string      `json:"new,omitempty"`      // folder of the boot repository that is made
	Verify     string      `json:"verify,omitempty"`   // the gate of the definition that is made
	LandVia    string      `json:"land_via,omitempty"` // of that definition; empty: sessions push by themselves
	Files      []BegunFile `json:"files"`
	Folders    []string    `json:"folders,omitempty"` // that are made
	Kept       []string    `json:"kept,omitempty"`    // files that are there and stay as they are
	Written    bool        `json:"written"`
	Commit     []string    `json:"commit"` // paths that belong into a commit, which people make
}

// BegunFile is one file of a new workspace.
type BegunFile struct {
	Path string `json:"path"`
	Text string `json:"text"` // all of it, or what is added
	Adds bool   `json:"adds,omitempty"`
}

// NoGate is the Verify of a request for a workspace whose work no command judges.
const NoGate = "none"

const ignoreFile = ".gitignore"

// configFile is the definition of the loop.
var configFile = path.Join(definition.Dir(bootdef.Name), definition.ConfigFile)

// PlanInit says what Init would make, and writes nothing. A file that is in the way is a
// *loop.Fault with exit status 5.
func (s *Service) PlanInit(ctx context.Context, r InitRequest) (Begun, error) {
	b := Begun{Schema: "pawl.boot-init/v1", Files: []BegunFile{}}
	link := bootlink.Link{
		State: bootlink.DefaultState, Tasks: bootlink.DefaultTasks, Changelog: bootlink.DefaultChangelog, Directories: bootlink.DefaultDirectories,
	}
	if err := s.findBoot(ctx, r, &link, &b); err != nil {
		return b, err
	}
	b.Repository, b.Reference, b.Version = link.Repository, link.Reference, link.Version.String()
	project := r.Project
	if project == "" {
		project = projectOf(s.ws.Root)
	}
	now := s.ws.Now()
	if err := s.addIgnored(&b); err != nil {
		return b, err
	}
	s.addFolders(&b, link)
	if err := s.addDefinition(ctx, r, &b); err != nil {
		return b, err
	}
	var taken []string
	for _, f := range []BegunFile{
		{Path: link.State, Text: string(bootstate.NewState(project, now).Encode())},
		{Path: link.Tasks, Text: string(bootstate.NewTodo(now).Encode())},
		{Path: link.Changelog, Text: "# Changelog\n"},
		{Path: bootdef.LinkFile, Text: bootlink.Render(link)}, // Last: it makes the workspace one of the protocol.
	} {
		switch _, err := os.Lstat(filepath.Join(s.ws.Root, filepath.FromSlash(f.Path))); {
		case errors.Is(err, fs.ErrNotExist):
			b.Files = append(b.Files, f)
		case f.Path == link.Changelog:
			b.Kept = append(b.Kept, f.Path)
		default:
			taken = append(taken, f.Path)
		}
		b.Commit = append(b.Commit, f.Path)
	}
	if len(taken) > 0 {
		return b, takenFault(taken...)
	}
	return b, nil
}

// addDefinition adds the definition of the loop, unless there is one. Sessions push what they
// did: with a gate that judges it, by themselves, and without one only when a person said yes.
func (s *Service) addDefinition(ctx context.Context, r InitRequest, b *Begun) error {
	if _, err := os.Lstat(filepath.Join(s.ws.Root, filepath.FromSlash(configFile))); !errors.Is(err, fs.ErrNotExist) {
		b.Kept = append(b.Kept, configFile)
		return nil
	}
	b.Verify = r.Verify
	if b.Verify == "" && s.FindTests != nil {
		var err error
		if b.Verify, err = s.FindTests(ctx); err != nil {
			return err
		}
	}
	text := "# The loop of " + bootdef.LinkFile + ". `pawl explain KEY` says what a key means.\n"
	if b.Verify == "" || b.Verify == NoGate {
		b.Verify, b.LandVia = "", "human"
		text += "# No gate judges the work (verify: COMMAND), so that nothing is pushed before you said yes.\n" +
			"# With a gate, remove land_via: sessions then push by themselves what passes.\n" + definition.WriteEntry("land_via", b.LandVia) + "\n"
	} else {
		text += "# What does not pass is not committed and not pushed.\n" + definition.WriteEntry("verify", b.Verify) + "\n"
	}
	b.Files = append(b.Files, BegunFile{Path: configFile, Text: text})
	b.Commit = append(b.Commit, configFile)
	return nil
}

// addFolders adds the directories that are missing. Git knows a directory by its files
// alone: without one, clones and the copies that agents work in would lack it.
func (s *Service) addFolders(b *Begun, link bootlink.Link) {
	for _, dir := range link.Directories {
		if _, err := os.Lstat(filepath.Join(s.ws.Root, filepath.FromSlash(dir))); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		b.Folders = append(b.Folders, dir)
		if dir != bootlink.Scratch && dir != path.Dir(link.State)+"/" {
			b.Files = append(b.Files, BegunFile{Path: dir + ".gitkeep"})
			b.Commit = append(b.Commit, dir+".gitkeep")
		}
	}
}

// findBoot finds out what the link names.
func (s *Service) findBoot(ctx context.Context, r InitRequest, link *bootlink.Link, b *Begun) (err error) {
	switch {
	case (r.Boot == "") == (r.NewBoot == ""):
		return &loop.Fault{
			Exit: loop.ExitUsage, What: "boot init needs one boot repository", Why: "the rules and the schemas of a workspace are in one",
			Fix: "name one: {1}; or make a small one of your own: {2}",
			Actions: []loop.Command{
				loop.PawlCommand("boot init").WithFlag("boot", "REPOSITORY@REF").WithBlanks("REPOSITORY@REF"), loop.PawlCommand("boot init").WithFlag("new-boot", "DIR").WithBlanks("DIR"),
			},
		}
	case r.NewBoot != "":
		b.New = r.NewBoot
		if !filepath.IsAbs(b.New) {
			b.New = filepath.Join(r.Dir, b.New)
		}
		if err := checkFree(b.New); err != nil {
			return err
		}
		link.Repository, link.Reference, link.Version = s.pathFor(r.NewBoot, b.New), "v"+bootrepo.ScaffoldVersion.String(), bootrepo.ScaffoldVersion
		return nil
	}
	if link.Repository, link.Reference, err = splitBoot(r.Boot); err != nil {
		return err
	}
	if there := filepath.Join(r.Dir, link.Repository); isFolder(there) && !filepath.IsAbs(link.Repository) {
		link.Repository = s.pathFor(link.Repository, there)
	}
	contract, err := s.contract(ctx, *link) // An error about the version is what is expected.
	if link.Version = contract.Version.Version; link.Version == (bootlink.Version{}) {
		return err
	}
	_, err = s.contract(ctx, *link)
	return err
}

// pathFor is how a link names a folder that somebody has written as text: from the top of
// the workspace, if it was a relative path.
func (s *Service) pathFor(text, absolute string) string {
	rel, err := filepath.Rel(s.ws.Root, absolute)
	if filepath.IsAbs(text) || err != nil {
		return absolute
	}
	rel = filepath.ToSlash(rel)
	if !strings.HasPrefix(rel, "../") {
		rel = "./" + rel // Two names alone would be owner/repo.
	}
	return rel
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// splitBoot splits REPOSITORY@REF. The address may have an @ of its own.
func splitBoot(text string) (repository, reference string, err error) {
	at := strings.LastIndexByte(text, '@')
	if at > 0 {
		repository, reference = text[:at], text[at+1:]
	}
	u, bad := url.Parse(repository)
	if repository == "" || reference == "" || strings.Contains(reference, ":") || strings.Contains(repository, "://") && (bad != nil || u.Scheme != "file" && strings.Trim(u.Path, "/") == "") {
		return "", "", &loop.Fault{
			Exit: loop.ExitUsage, What: fmt.Sprintf("%q does not name a reference", text), Why: "a workspace follows a branch, a tag or a commit of its boot repository",
			Fix: "write it behind an @, like acme/boot@v1.0.0 or ../boot@main",
		}
	}
	return repository, reference, nil
}

// addIgnored adds the line that keeps scratch/ out of git, unless there is one.
func (s *Service) addIgnored(b *Begun) error {
	text, err := os.ReadFile(filepath.Join(s.ws.Root, ignoreFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &loop.Fault{Exit: loop.ExitUnreadable, What: ignoreFile + " cannot be read", Why: err.Error(), Err: err, Fix: "put a regular, readable file there"}
	}
	for line := range bytes.Lines(text) {
		if strings.Trim(strings.TrimSpace(string(line)), "/") == strings.Trim(bootlink.Scratch, "/") {
			return nil
		}
	}
	added := "/" + bootlink.Scratch + "\n"
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		added = "\n" + added
	}
	b.Files = append(b.Files, BegunFile{Path: ignoreFile, Text: added, Adds: len(text) > 0})
	b.Commit = append(b.Commit, ignoreFile)
	return nil
}

// Init makes the files of a new workspace, and the boot repository if the request asks
// for one. It commits nothing in the workspace.
func (s *Service) Init(ctx context.Context, r InitRequest) (Begun, error) {
	b, err := s.PlanInit(ctx, r)
	if err != nil {
		return b, err
	}
	if b.New != "" {
		if err := s.makeRepository(ctx, b.New); err != nil {
			return b, err
		}
	}
	w, closeRoot, err := s.openWriter()
	if err != nil {
		return b, err
	}
	err = w.begin(b)
	if err = errors.Join(err, closeRoot()); err != nil {
		return b, err
	}
	b.Written = true
	return b, nil
}

func (w writer) begin(b Begun) error {
	for _, dir := range b.Folders {
		if err := w.root.MkdirAll(filepath.FromSlash(path.Clean(dir)), 0o755); err != nil {
			return writeFault(dir, err)
		}
	}
	for _, f := range b.Files {
		if !f.Adds {
			if err := w.create(f.Path, []byte(f.Text)); err != nil {
				return err
			}
			continue
		}
		before, err := w.root.ReadFile(f.Path)
		if err != nil {
			return writeFault(f.Path, err)
		}
		if err := w.replace(f.Path, before, append(before[:len(before):len(before)], f.Text...)); err != nil {
			return err
		}
	}
	return nil
}
