package pgtest

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// layout changes whenever what initdb below makes does; it keeps old templates
// from being used.
const layout = "2"

// slim leaves one database in a new cluster. Making files is what the start
// of a cluster costs, and each database has 300.
const slim = `
UPDATE pg_database SET datistemplate = false WHERE datname = 'template0';
DROP DATABASE template0;
DROP DATABASE postgres;
`

// fill makes dir/data, a cluster as initdb leaves it. It unpacks the template
// that an earlier process of this user left, and otherwise runs initdb and
// leaves one. No lock is needed: a template appears whole or not at all, and
// two processes that make one make the same.
func fill(ctx context.Context, p programs, who *account, dir string) error {
	template, err := templateName(ctx, p)
	if err != nil {
		return err
	}
	if file, err := os.Open(template); err == nil {
		err = errors.Join(unpack(file, dir, who), file.Close())
		if err == nil {
			return nil
		}
		// It is damaged. What it has left in data would stop initdb.
		if err := errors.Join(os.Remove(template), os.RemoveAll(filepath.Join(dir, "data"))); err != nil {
			return fmt.Errorf("clear the damaged template %s: %w", template, err)
		}
	}
	if err := initdb(ctx, p, who, dir); err != nil {
		return err
	}
	if template != "" {
		// Where it cannot be kept the next process runs initdb again.
		_ = pack(dir, template)
	}
	return nil
}

// templateName is where the template is kept, empty where there is no home.
func templateName(ctx context.Context, p programs) (string, error) {
	version, err := p.version(ctx)
	if err != nil {
		return "", err
	}
	if cache, err := os.UserCacheDir(); err == nil {
		return filepath.Join(cache, "pawl-pgtest", version+"-"+layout+".tar"), nil
	}
	return "", nil
}

func initdb(ctx context.Context, p programs, who *account, dir string) error {
	cmd := exec.CommandContext(ctx, p.initdb(), "-D", filepath.Join(dir, "data"), "-U", superuser,
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums", "--no-sync")
	if err := finish(cmd, who, dir); err != nil {
		return err
	}
	cmd = exec.CommandContext(ctx, p.postgres(), "--single", "-j", "-D", filepath.Join(dir, "data"), maintenance)
	// With -j a statement ends at a semicolon before an empty line.
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(slim, ";\n", ";\n\n"))
	return finish(cmd, who, dir)
}

func finish(cmd *exec.Cmd, who *account, dir string) error {
	cmd.Dir, cmd.Env = dir, plainEnv()
	apart(cmd, who)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w\n%s", cmd.Path, err, out)
	}
	return nil
}

// pack writes dir/data to the template, complete and on disk before it has
// its name.
func pack(dir, template string) error {
	if err := os.MkdirAll(filepath.Dir(template), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(template), ".new-")
	if err != nil {
		return err
	}
	err = errors.Join(archive(dir, file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), template)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

func archive(dir string, to io.Writer) error {
	w := tar.NewWriter(to)
	root := os.DirFS(dir)
	err := fs.WalkDir(root, "data", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Typeflag: tar.TypeDir}
		if !entry.IsDir() {
			header.Typeflag, header.Size = tar.TypeReg, info.Size()
		}
		if err := w.WriteHeader(header); err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		_, err = w.Write(body)
		return err
	})
	return errors.Join(err, w.Close())
}

// unpack makes dir/data from the template and gives it to the account.
func unpack(template io.Reader, dir string, who *account) error {
	r := tar.NewReader(template)
	entries := 0
	for ; ; entries++ {
		header, err := r.Next()
		if errors.Is(err, io.EOF) && entries > 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the template: %w", err)
		}
		if err := unpackEntry(r, header, dir, who); err != nil {
			return err
		}
	}
}

func unpackEntry(r io.Reader, header *tar.Header, dir string, who *account) error {
	if !filepath.IsLocal(header.Name) {
		return fmt.Errorf("template has a file outside of it: %s", header.Name)
	}
	name, mode := filepath.Join(dir, header.Name), header.FileInfo().Mode().Perm()
	if header.Typeflag == tar.TypeDir {
		return errors.Join(os.Mkdir(name, mode), who.own(name))
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	return errors.Join(err, file.Close(), who.own(name))
}
