// Package object reads and writes the objects of a repository: blobs, trees and
// commits, byte for byte. Few small ones are read from and written to the files of
// the repository; others go through one process of git that is asked again and
// again, and through one that takes a pack.
//
// It moves no ref, has no index, knows no checkout, and takes from an untrusted
// tree only the files and links that it is told.
package object

import "github.com/pawl-run/pawl/internal/git/program"

// Store is the objects of one repository. Get it from At. It is safe for
// concurrent use, and holds no process, unless it is from Hold.
type Store struct {
	Format Format

	git      program.Git
	dirs     func() ([]string, error)
	sessions *sessionCache // nil unless held
}

// At returns the objects of the repository that git is started for. Dirs are its object
// directories, its own first.
func At(git program.Git, format Format, dirs func() ([]string, error)) Store {
	return Store{Format: format, git: git, dirs: dirs}
}

// Hold returns the same objects for somebody who reads them several times in a
// row: the process behind Blobs lives on after each use and serves the next
// one. Release ends it, waits for that, and must be called; afterwards each use
// starts its own again.
func (s Store) Hold() (held Store, release func()) {
	s.sessions = &sessionCache{}
	return s, func() { s.sessions.clear(true) }
}

// Rest ends the process that is held, and waits for that. It is for the time in
// which nobody will read; the next use starts another one.
func (s Store) Rest() { s.sessions.clear(false) }
