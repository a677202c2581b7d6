package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// findLeaks names each secret that a change adds, in the name of a file or in what it
// holds: the file, the line and the secret's name, never its value. What stood in
// the file before is not the agent's doing.
func findLeaks(secrets *redact.Redactor, changes []policy.Change) []string {
	var list []string
	for _, c := range changes {
		if c.New.Mode == 0 {
			continue
		}
		shown := secrets.String(c.Path)
		if c.Old.Mode == 0 && shown != c.Path {
			list = append(list, shown+": its name holds a secret")
		}
		before := map[string]int{}
		for _, f := range secrets.Find([]byte(c.Old.Text)) {
			before[f.Name]++
		}
		for _, f := range secrets.Find([]byte(c.New.Text)) {
			if before[f.Name]--; before[f.Name] < 0 {
				list = append(list, fmt.Sprintf("%s: line %d holds a secret (%s)", shown, f.Line, f.Name))
			}
		}
	}
	return list
}

// clearSecrets takes secrets out of a snapshot: work is kept, but what would give a login
// away is in no commit that a ref leads to.
func (wt *workTree) clearSecrets(ctx context.Context, ref, commit, msg string) error {
	compared, err := workspace.Compare(ctx, wt.target.Repo, wt.copy.From, commit)
	if err != nil {
		return err
	}
	changes, err := wt.clearedChanges(compared.Changes)
	if err != nil || len(changes) == 0 {
		return err
	}
	tree, err := wt.target.Repo.Candidate(ctx, object.Draft{Base: commit, Changes: changes, Message: msg, When: wt.Now()})
	if err != nil {
		return err
	}
	var parents []string
	if wt.copy.Base != "" {
		parents = append(parents, wt.copy.Base)
	}
	clean, err := wt.target.Repo.Commit(ctx, tree.Tree, parents, msg+", without the secrets that were in it", wt.Now())
	if err != nil {
		return err
	}
	return wt.target.Repo.UpdateRef(ctx, ref, clean, commit)
}

// clearedChanges are the changes by which files lose their secrets. A file whose content
// nobody has read is left out.
func (wt *workTree) clearedChanges(all []policy.Change) (changes []object.FileChange, err error) {
	secrets := wt.said.Secrets()
	for i, ch := range all {
		if findLeaks(secrets, []policy.Change{ch}) == nil {
			continue
		}
		changes = append(changes, object.FileChange{Path: ch.Path, Delete: true})
		if ch.New.Text == "" && ch.New.Size > 0 {
			continue
		}
		file := filepath.Join(wt.runDir(wt.run.ID), fmt.Sprintf("cleared-%d", i))
		if err := os.WriteFile(file, []byte(secrets.String(ch.New.Text)), 0o600); err != nil {
			return nil, err
		}
		changes = append(changes, object.FileChange{Path: secrets.String(ch.Path), Mode: ch.New.Mode, From: file})
	}
	return changes, nil
}
