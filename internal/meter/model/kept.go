package model

import (
	"hash/maphash"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

const (
	blockSize  = 1 << 10 // bytes of a request that are compared at once
	keptFor    = 5 * time.Minute
	mostPriors = 4 // conversations that go on at the same time, for each model
)

var blockSeed = maphash.MakeSeed()

// outline is what is remembered of the text of a request: its blocks, counted
// from the beginning and from the end.
type outline struct{ front, back []uint64 }

func outlineOf(body []byte) outline {
	var o outline
	for i := 0; i+blockSize <= len(body); i += blockSize {
		o.front = append(o.front, maphash.Bytes(blockSeed, body[i:i+blockSize]))
		o.back = append(o.back, maphash.Bytes(blockSeed, body[len(body)-i-blockSize:len(body)-i]))
	}
	return o
}

// common is how many bytes two requests have in common before and behind what is
// new in one of them.
func (o outline) common(p outline) int64 {
	n := same(o.front, p.front) + same(o.back, p.back)
	return int64(min(n, len(o.front), len(p.front))) * blockSize
}

func same(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// prior is a request that was answered.
type prior struct {
	outline

	at    time.Time
	share float64 // of its input that the provider had in its cache, or put there
}

// kept estimates how many tokens of a request the provider will read from its
// cache, which no budget of tokens counts: those that an earlier request had as
// well, as far as the provider kept that one. Without it, each call of a long
// conversation would have to be funded as if nothing of it had been read before.
func (a *Account) kept(model string, o outline, now time.Time) int64 {
	defer a.lock()()
	var most int64
	for _, p := range a.priors[model] {
		if now.Sub(p.at) < keptFor {
			most = max(most, int64(float64(o.common(p.outline)/bytesPerToken)*p.share))
		}
	}
	return most
}

// remember notes a request that was answered, with its usage as the provider says it.
func (a *Account) remember(model string, o outline, u loop.Usage, now time.Time) {
	all, cached := u.Input+u.CacheRead+u.CacheWrite, u.CacheRead+u.CacheWrite
	if u.Source != loop.UsageMetered || cached == 0 {
		return
	}
	defer a.lock()()
	list := append(a.priors[model], prior{outline: o, at: now, share: float64(cached) / float64(all)})
	if len(list) > mostPriors {
		list = list[1:]
	}
	a.priors[model] = list
}
