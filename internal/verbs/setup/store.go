package setup

import (
	"context"
	"time"
)

// States of the store.
const (
	StoreNone        = "none_yet" // the first command that writes makes it
	StoreReady       = "ready"
	StoreUnreachable = "unreachable"
)

// StoreInfo describes the database with the rows, schema pawl.store/v1.
type StoreInfo struct {
	Schema   string `json:"schema"`
	State    string `json:"state"` // none_yet, ready, unreachable
	Driver   string `json:"driver,omitempty"`
	Location string `json:"location,omitempty"` // path, or URL without its password
	Version  int64  `json:"version"`            // of the tables; 0: unknown, or no tables
	Problem  string `json:"problem,omitempty"`  // why it is unreachable
}

// storeWait is how long StoreInfo waits for the database.
const storeWait = 5 * time.Second

// StoreInfo describes the database. One that does not answer within five seconds, or
// that does not exist yet, is a state and not an error.
func (s *Service) StoreInfo(ctx context.Context) (StoreInfo, error) {
	v := StoreInfo{Schema: "pawl.store/v1", State: StoreNone}
	if s.ws.Store == nil {
		return v, nil
	}
	bounded, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	i, err := s.ws.Store.Info(bounded)
	if err != nil && ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	v.State, v.Driver, v.Location, v.Version = StoreReady, i.Driver, i.Location, i.Version
	if err != nil {
		v.State, v.Problem = StoreUnreachable, err.Error()
	}
	return v, nil
}
