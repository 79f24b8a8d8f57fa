package file

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// cutLine is a line and the offset behind it.
type cutLine struct {
	text string
	next int64
	line int64
	crc  uint32
}

// reference cuts content the plain way.
func reference(content []byte) (all []cutLine) {
	var pos, n int64
	for _, l := range bytes.SplitAfter(content, []byte("\n")) {
		if len(l) == 0 {
			continue
		}
		pos += int64(len(l))
		n++
		text := bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))
		crc := crc32.Checksum(content[max(0, pos-tailSize):pos], castagnoli)
		all = append(all, cutLine{string(text), pos, n, crc})
	}
	return all
}

// cutting reads content from pos in pieces, as an input does.
func cutting(content []byte, pos, line int64, read int, piece func() int) (all []cutLine) {
	l := lines{read: read}
	l.reset(pos, line, content[max(0, pos-tailSize):pos])
	add := func(b []byte) {
		all = append(all, cutLine{string(b), l.pos, l.line, crc32.Checksum(l.tail(), castagnoli)})
	}
	for {
		if b, ok := l.next(); ok {
			add(b)
			continue
		}
		p := l.readPos()
		if p == int64(len(content)) {
			break
		}
		room := l.space()
		n := copy(room, content[p:min(p+int64(piece()), int64(len(content)))])
		l.filled(n)
	}
	if b, ok := l.rest(); ok {
		add(b)
	}
	return all
}

func compareCuts(t *testing.T, content []byte, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	read := 2 + rnd.IntN(300) // a small buffer moves often
	most := 1 + rnd.IntN(read)
	piece := func() int { return 1 + rnd.IntN(most) }
	want := reference(content)
	check := func(from int64, got, want []cutLine) {
		t.Helper()
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("seed %d, from %d: line %d of %d, want %d lines: %s", seed, from, i, len(got), len(want), describe(got, want, i))
			}
		}
	}
	check(0, cutting(content, 0, 0, read, piece), want)
	if len(want) > 0 { // and from any position in it
		at := rnd.IntN(len(want))
		check(want[at].next, cutting(content, want[at].next, want[at].line, read, piece), want[at+1:])
	}
}

func describe(got, want []cutLine, i int) string {
	s := ""
	if i < len(got) {
		s += fmt.Sprintf("got %.60q next %d line %d crc %08x ", got[i].text, got[i].next, got[i].line, got[i].crc)
	}
	if i < len(want) {
		s += fmt.Sprintf("want %.60q next %d line %d crc %08x", want[i].text, want[i].next, want[i].line, want[i].crc)
	}
	return s
}

// Any chunking gives the lines, offsets, numbers and checksums of the plain cut.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"), uint64(1))
	f.Add([]byte("\r\n\r\r\n\n"), uint64(2))
	f.Add(bytes.Repeat([]byte("0123456789\n"), 500), uint64(3))
	f.Fuzz(func(t *testing.T, content []byte, seed uint64) {
		// The reference sums up to tailSize bytes a line, so long inputs are slow
		// and add nothing: the buffers are at most 300 bytes.
		compareCuts(t, content[:min(len(content), 1<<10)], seed)
	})
}

func TestLinesLongerThanTheBuffer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		var content []byte
		for len(content) < 5*tailSize {
			content = append(content, bytes.Repeat([]byte{'x'}, rnd.IntN(1<<(1+rnd.IntN(13))))...)
			content = append(content, '\n')
		}
		compareCuts(t, content, rnd.Uint64())
	}
}
