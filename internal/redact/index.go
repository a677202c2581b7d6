package redact

import "encoding/binary"

// headLen is how many bytes decide whether a rule is worth trying.
const headLen = 4

// index says which rules may match at a place, by the first bytes there. Its
// filter says "perhaps" or "no" for nearly every byte of a stream without
// looking further.
type index struct {
	filter [1 << (filterBits - 6)]uint64
	rules  map[uint32][]int    // by head
	starts map[uint32]struct{} // of heads that are cut short, with their length
}

// filterBits is the size of the filter, as a power of two. With 50 values there
// are some 20,000 heads, and the filter must stay nearly empty.
const (
	filterBits = 20
	mix        = 0x9E3779B1 // spreads heads over the filter; 2^32 divided by the golden ratio
)

func newIndex() *index {
	return &index{rules: map[uint32][]int{}, starts: map[uint32]struct{}{}}
}

func (x *index) add(head [headLen]byte, rule int) {
	key := binary.LittleEndian.Uint32(head[:])
	have := x.rules[key]
	// The ways to spell a beginning repeat themselves within one rule only.
	if len(have) > 0 && have[len(have)-1] == rule {
		return
	}
	x.rules[key] = append(have, rule)
	if len(have) > 0 {
		return
	}
	h := key * mix >> (32 - filterBits)
	x.filter[h>>6] |= 1 << (h & 63)
	for n := 1; n < headLen; n++ {
		x.starts[short(head[:n])] = struct{}{}
	}
}

// next returns the first place from i on where a rule may match. If that is
// fewer than headLen bytes before the end, nothing is known of it.
func (x *index) next(text []byte, i int) int {
	for ; i+headLen <= len(text); i++ {
		h := binary.LittleEndian.Uint32(text[i:]) * mix >> (32 - filterBits)
		if x.filter[h>>6]&(1<<(h&63)) != 0 {
			return i
		}
	}
	return i
}

func (x *index) at(text []byte) []int {
	return x.rules[binary.LittleEndian.Uint32(text)]
}

// begins says whether text, which is shorter than a head, may become one.
func (x *index) begins(text []byte) bool {
	_, ok := x.starts[short(text)]
	return ok
}

// short is up to three bytes and their number in one word.
func short(b []byte) uint32 {
	key := uint32(len(b)) << 24
	for i, c := range b {
		key |= uint32(c) << (8 * i)
	}
	return key
}
