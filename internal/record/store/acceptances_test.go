package store_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestADefinitionIsAcceptedForOneLoopAtOneDigest(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		by := loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "cli"}
		for range 2 { // Once more changes nothing.
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.Accept(t.Context(), loop.Acceptance{LoopID: "lp_1", Digest: "d1", How: loop.AcceptedCheck, By: by}, loop.Acceptance{LoopID: "lp_2", Digest: "d2", How: loop.AcceptedRun, By: by})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			loop, digest string
			want         bool
		}{{"lp_1", "d1", true}, {"lp_2", "d2", true}, {"lp_1", "d2", false}, {"lp_2", "d1", false}, {"lp_3", "d1", false}, {"lp_1", "", false}} {
			var got bool
			err := s.View(t.Context(), func(r *store.Reader) (err error) {
				got, err = r.IsAccepted(t.Context(), c.loop, c.digest)
				return err
			})
			if got != c.want || err != nil {
				t.Errorf("%s of %s is accepted: %t, %v", c.digest, c.loop, got, err)
			}
		}
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Accept(t.Context()) }); err != nil {
			t.Errorf("none is accepted: %v", err)
		}
	})
}
