package credential

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// mostLogin is the largest size of a login's file. Known ones have 1 to 10 KiB.
const mostLogin = 64 << 10

// movableFolders are folders below the home that a variable may move.
var movableFolders = []struct{ folder, variable string }{
	{".claude/", "CLAUDE_CONFIG_DIR"},
	{".codex/", "CODEX_HOME"},
	{".local/share/", "XDG_DATA_HOME"},
	{".config/", "XDG_CONFIG_HOME"},
}

// findLogin finds the login that the driver's program has on this machine: a token in
// the environment, which any number of runs may use at a time, or a file.
func (w Want) findLogin(base *url.URL) (Credential, error) {
	if err := w.checkLendable(base); err != nil {
		return Credential{}, err
	}
	if err := w.checkNoGateway(); err != nil {
		return Credential{}, err
	}
	for _, name := range w.Profile.Login.Variables {
		text := strings.TrimSpace(proc.LookupVariable(w.Environ, name))
		switch {
		case text == "":
		case !isSendable(text):
			return Credential{}, w.missingFault(name+" is not a valid token: it contains a blank, a line break or a character beyond ASCII", "set "+name+" to the token alone")
		default:
			sum := sha256.Sum256([]byte(text))
			return Credential{
				Auth: loop.AuthLend, Account: w.Profile.Name + ":" + hex.EncodeToString(sum[:4]), Agent: w.Profile.Name, From: name, key: &text,
			}, nil
		}
	}
	var looked []string
	for _, name := range w.Profile.Login.Files {
		path := w.loginPath(name)
		if path == "" {
			continue
		}
		looked = append(looked, w.shortPath(path))
		file, data, err := readLogin(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Credential{}, w.missingFault(fmt.Sprintf("%s: %s", w.shortPath(path), errorText(err)), "correct that file, or "+w.signIn())
		}
		if why := w.whyUnusable(data); why != "" {
			return Credential{}, w.missingFault(w.shortPath(path)+" "+why, w.signIn())
		}
		return Credential{Auth: loop.AuthLend, Account: w.Profile.Name + ":" + ownerOf(data), Agent: w.Profile.Name, Renews: w.Profile.Login.Renews, From: w.shortPath(path), File: file, Name: name}, nil
	}
	why := "there is no login: the user has no home"
	if len(looked) > 0 {
		why = "there is no login in " + strings.Join(looked, ", ") + keychainNote()
	}
	return Credential{}, w.missingFault(why, w.signIn())
}

// keychainNote says why a program may have a login that is not in a file.
func keychainNote() string {
	if runtime.GOOS == "darwin" {
		return ", and one in the keychain cannot be lent"
	}
	return ""
}

func (w Want) checkLendable(base *url.URL) error {
	switch {
	case len(w.Profile.Login.Files) == 0:
		return w.missingFault("it has no login that can be lent", "write auth: inject, and set its key")
	case base != nil:
		return w.missingFault("a lent login is for its vendor only, and base_url names "+base.Host, "leave base_url away, or write auth: inject")
	}
	return nil
}

// checkNoGateway refuses to lend a login if the environment names a gateway for the
// program's libraries: the login is for the vendor, and whoever set the gateway does
// not expect that the vendor is used.
func (w Want) checkNoGateway() error {
	for _, v := range vendors {
		if !slices.Contains(w.Profile.Providers, v.name) || w.Provider != "" && w.Provider != v.name {
			continue
		}
		gateway, err := v.findGateway(w.Environ)
		if err != nil {
			return err
		}
		if gateway.base != nil {
			host := gateway.base.Host
			return w.missingFault("a lent login is for its vendor only, and "+gateway.from+" names "+host,
				"unset "+gateway.from+", or set the key for "+host+" as "+v.keys[0].name+" beside it")
		}
	}
	return nil
}

// whyUnusable says why data is not a usable login, as far as its form is known. It
// returns "" if nothing is wrong with it.
func (w Want) whyUnusable(data []byte) string {
	login, err := parseLogin(data)
	if err != nil {
		if strings.TrimSpace(string(data)) == "" {
			return "is empty"
		}
		return ""
	}
	ends := latestTime(login)
	switch {
	case len(login) == 0 || len(secretMembers(login)) == 0:
		return "holds no login"
	case !canRenew(login) && !ends.IsZero() && !w.Now.IsZero() && w.Now.After(ends):
		return "has expired"
	}
	return ""
}

// loginPath returns the path of a login's file on this machine, "" if the user has no
// home.
func (w Want) loginPath(name string) string {
	for _, e := range movableFolders {
		below, ok := strings.CutPrefix(name, e.folder)
		if dir := proc.LookupVariable(w.Environ, e.variable); ok && filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.FromSlash(below))
		}
	}
	if w.Home == "" {
		return ""
	}
	return filepath.Join(w.Home, filepath.FromSlash(name))
}

// shortPath writes a path below the user's home as ~/path.
func (w Want) shortPath(path string) string {
	if rel, err := filepath.Rel(w.Home, path); w.Home != "" && err == nil && filepath.IsLocal(rel) {
		return "~/" + filepath.ToSlash(rel)
	}
	return path
}

func (w Want) signIn() string {
	return cmp.Or(w.SignIn, "sign in with "+cmp.Or(w.Profile.Program, w.Profile.Name))
}

// readLogin reads a login of the user, and returns its path with symbolic links
// resolved: it may be in a folder that is shared between machines.
func readLogin(path string) (file string, data []byte, err error) {
	file, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, err
	}
	data, err = readRegular(file)
	return file, data, err
}

// readRegular reads a small regular file. It does not follow a link.
func readRegular(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if open, err := f.Stat(); err != nil || !os.SameFile(info, open) {
		return nil, errors.New("it changed while it was opened")
	}
	data, err := io.ReadAll(io.LimitReader(f, mostLogin+1))
	if err == nil && len(data) > mostLogin {
		return nil, fmt.Errorf("it is larger than %d bytes", mostLogin)
	}
	return data, err
}

// errorText returns the text of a file error without the path.
func errorText(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
