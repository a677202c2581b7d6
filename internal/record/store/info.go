package store

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// Info says which database a store is.
type Info struct {
	Driver   string // sqlite or postgres
	Location string // path of the file, or the URL with nothing but user, host, port and database
	Version  int64  // of its tables; 0: there are none
}

// Local reports whether the store is a file of this machine, and not a database
// that several machines may share.
func (s *Store) Local() bool { return s.pool == nil }

// Info asks the database for the version of its tables. What is known without
// asking comes beside the error of a database that does not answer.
func (s *Store) Info(ctx context.Context) (Info, error) {
	i := Info{Driver: "sqlite", Location: s.sql.place}
	if s.pool != nil {
		i.Driver = "postgres"
	}
	var err error
	i.Version, err = s.version(ctx)
	return i, err
}

// addressOf is a URL made anew from the parts that may be shown: passwords hide
// in the query of a URL as well.
func addressOf(c *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", User: url.User(c.User), Host: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), Path: "/" + c.Database}
	if filepath.IsAbs(c.Host) { // A folder with a socket is not a host of a URL.
		u.Host = ""
		u.RawQuery = url.Values{"host": {c.Host}, "port": {strconv.Itoa(int(c.Port))}}.Encode()
	}
	return u.String()
}
