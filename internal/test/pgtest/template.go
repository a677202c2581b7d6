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

// layout must be changed when the result of runInitdb changes, so that old templates are
// not used.
const layout = "2"

// slim removes all databases but one from a new cluster. Starting a cluster is slow because
// of its files, and each database has 300.
const slim = `
UPDATE pg_database SET datistemplate = false WHERE datname = 'template0';
DROP DATABASE template0;
DROP DATABASE postgres;
`

// makeData makes dir/data, a new cluster. It unpacks the template of an earlier process of
// this user, or else runs initdb and makes a template. No lock is needed: a template is
// renamed when it is complete, and two processes make the same one.
func makeData(ctx context.Context, p programs, who *account, dir string) error {
	template, err := templateName(ctx, p)
	if err != nil {
		return err
	}
	if file, err := os.Open(template); err == nil {
		err = errors.Join(unpackTemplate(file, dir, who), file.Close())
		if err == nil {
			return nil
		}
		// It is damaged. Files that it left in data would make initdb fail.
		if err := errors.Join(os.Remove(template), os.RemoveAll(filepath.Join(dir, "data"))); err != nil {
			return fmt.Errorf("clear the damaged template %s: %w", template, err)
		}
	}
	if err := runInitdb(ctx, p, who, dir); err != nil {
		return err
	}
	if template != "" {
		// Without a template, the next process runs initdb again.
		_ = packTemplate(dir, template)
	}
	return nil
}

// templateName returns the path of the template, empty if there is no home.
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

func runInitdb(ctx context.Context, p programs, who *account, dir string) error {
	cmd := exec.CommandContext(ctx, p.initdb(), "-D", filepath.Join(dir, "data"), "-U", superuser,
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums", "--no-sync")
	if err := runCommand(cmd, who, dir); err != nil {
		return err
	}
	cmd = exec.CommandContext(ctx, p.postgres(), "--single", "-j", "-D", filepath.Join(dir, "data"), maintenance)
	// With -j a statement ends at a semicolon before an empty line.
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(slim, ";\n", ";\n\n"))
	return runCommand(cmd, who, dir)
}

func runCommand(cmd *exec.Cmd, who *account, dir string) error {
	cmd.Dir, cmd.Env = dir, plainEnv()
	runAs(cmd, who)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w\n%s", cmd.Path, err, out)
	}
	return nil
}

// packTemplate writes dir/data to the template, which gets its name when it is complete
// and on disk.
func packTemplate(dir, template string) error {
	if err := os.MkdirAll(filepath.Dir(template), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(template), ".new-")
	if err != nil {
		return err
	}
	err = errors.Join(archiveData(dir, file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), template)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

func archiveData(dir string, to io.Writer) error {
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

// unpackTemplate makes dir/data from the template, owned by the account.
func unpackTemplate(template io.Reader, dir string, who *account) error {
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
		return errors.Join(os.Mkdir(name, mode), who.giveFile(name))
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	return errors.Join(err, file.Close(), who.giveFile(name))
}
