package redact

import "encoding/binary"

// headLen is the length in bytes of a head: the beginning of a text, which
// decides which rules are tried there.
const headLen = 4

// index says which rules may match at a place, by the first bytes there. Its
// filter rules out nearly every place of a stream without a look at the map.
type index struct {
	filter [1 << (filterBits - 6)]uint64
	rules  map[uint32][]int    // by head
	starts map[uint32]struct{} // the proper prefixes of heads, with their length
}

// filterBits is the size of the filter, as a power of two. With 50 values there
// are some 20,000 heads, and the filter must stay nearly empty.
const (
	// filterBits is the binary logarithm of the filter's size. 50 values have
	// some 20,000 heads, and the filter must stay nearly empty.
	filterBits = 20
	mix        = 0x9E3779B1 // spreads heads over the filter; 2^32 divided by the golden ratio
)

func newIndex() *index {
	return &index{rules: map[uint32][]int{}, starts: map[uint32]struct{}{}}
}

func (x *index) addHead(head [headLen]byte, rule int) {
	key := binary.LittleEndian.Uint32(head[:])
	have := x.rules[key]
	// The same head is added twice in a row only for the same rule.
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
		x.starts[packShort(head[:n])] = struct{}{}
	}
}

// nextCandidate returns the first place from i on where a rule may match. A
// result fewer than headLen bytes before the end says nothing about that place.
func (x *index) nextCandidate(text []byte, i int) int {
	for ; i+headLen <= len(text); i++ {
		h := binary.LittleEndian.Uint32(text[i:]) * mix >> (32 - filterBits)
		if x.filter[h>>6]&(1<<(h&63)) != 0 {
			return i
		}
	}
	return i
}

func (x *index) rulesAt(text []byte) []int {
	return x.rules[binary.LittleEndian.Uint32(text)]
}

// mayBegin reports whether text, which is shorter than a head, may be the
// beginning of one.
func (x *index) mayBegin(text []byte) bool {
	_, ok := x.starts[packShort(text)]
	return ok
}

// packShort packs up to three bytes and their number into one word.
func packShort(b []byte) uint32 {
	key := uint32(len(b)) << 24
	for i, c := range b {
		key |= uint32(c) << (8 * i)
	}
	return key
}
