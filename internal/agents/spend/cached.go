package spend

import (
	"hash/maphash"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	blockSize  = 1 << 10 // bytes of a request that are compared at once
	cacheTime  = 5 * time.Minute
	mostRecent = 4 // conversations at the same time, per model
)

var blockSeed = maphash.MakeSeed()

// Outline is what is remembered of a request's text: hashes of its blocks,
// counted from the beginning and from the end.
type Outline struct{ front, back []uint64 }

// OutlineOf returns the outline of a request's body.
func OutlineOf(body []byte) Outline {
	var o Outline
	for i := 0; i+blockSize <= len(body); i += blockSize {
		o.front = append(o.front, maphash.Bytes(blockSeed, body[i:i+blockSize]))
		o.back = append(o.back, maphash.Bytes(blockSeed, body[len(body)-i-blockSize:len(body)-i]))
	}
	return o
}

// commonBytes returns how many bytes two requests have in common, before and
// after what is new in one of them.
func (o Outline) commonBytes(p Outline) int64 {
	n := commonPrefix(o.front, p.front) + commonPrefix(o.back, p.back)
	return int64(min(n, len(o.front), len(p.front))) * blockSize
}

func commonPrefix(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// answeredRequest is a request that was answered.
type answeredRequest struct {
	Outline

	at    time.Time
	share float64 // the part of its input that the provider had in its cache, or put there
}

// CachedBytes estimates how many bytes of a request the provider will read from
// its cache: those that an earlier request had as well, as far as the provider
// cached that one. Budgets of tokens do not count cached tokens. Without the
// estimate, each call of a long conversation would be funded as if all of it were
// new.
func (a *Account) CachedBytes(model string, o Outline, now time.Time) int64 {
	defer a.lock()()
	var most int64
	for _, r := range a.recent[model] {
		if now.Sub(r.at) < cacheTime {
			most = max(most, int64(float64(o.commonBytes(r.Outline))*r.share))
		}
	}
	return most
}

// Remember notes a request that was answered, with the usage that the provider
// reported.
func (a *Account) Remember(model string, o Outline, u loop.Usage, now time.Time) {
	all, cached := u.Input+u.CacheRead+u.CacheWrite, u.CacheRead+u.CacheWrite
	if u.Source != loop.UsageMetered || cached == 0 {
		return
	}
	defer a.lock()()
	list := append(a.recent[model], answeredRequest{Outline: o, at: now, share: float64(cached) / float64(all)})
	if len(list) > mostRecent {
		list = list[1:]
	}
	a.recent[model] = list
}
