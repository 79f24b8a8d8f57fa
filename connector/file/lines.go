package file

import (
	"bytes"
	"hash/crc32"
)

const (
	// tailSize is how much of what stands before a position its checksum covers.
	tailSize = 4 << 10
	// readSize is how much is read from a file at a time.
	readSize = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// lines cuts the bytes of a file, read in any pieces, into lines.
//
// Invariants:
//  1. buf[start:end] is what was read and not yet returned; buf[start] stands at
//     byte pos of the file, after line terminated lines.
//  2. The min(pos, tailSize) bytes before start are those before pos in the file.
//  3. buf[start:scanned] holds no newline.
type lines struct {
	buf                 []byte
	start, scanned, end int
	pos, line           int64
	read                int // how much to read at a time; 0: readSize
}

// reset sets the position; tail is what stands before it, at most tailSize bytes.
func (l *lines) reset(pos, line int64, tail []byte) {
	if l.read == 0 {
		l.read = readSize
	}
	if cap(l.buf) == 0 {
		l.buf = make([]byte, tailSize+l.read)
	}
	n := copy(l.buf, tail)
	l.start, l.scanned, l.end = n, n, n
	l.pos, l.line = pos, line
}

// next returns the next line that ends with a newline, without it. The line is
// valid until space is called.
func (l *lines) next() ([]byte, bool) {
	i := bytes.IndexByte(l.buf[l.scanned:l.end], '\n')
	if i < 0 {
		l.scanned = l.end
		return nil, false
	}
	return l.take(l.scanned+i, 1), true
}

// rest returns what follows the last newline, if anything: at the end of a file
// that will not grow it is a line.
func (l *lines) rest() ([]byte, bool) {
	if l.start == l.end {
		return nil, false
	}
	return l.take(l.end, 0), true
}

// take returns buf[start:to] without a trailing \r, and moves behind it and the
// newline.
func (l *lines) take(to, newline int) []byte {
	b := l.buf[l.start:to]
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	l.pos += int64(to + newline - l.start)
	l.line++
	l.start = to + newline
	l.scanned = l.start
	return b
}

// unread puts the last line, which began at offset, back.
func (l *lines) unread(offset int64) {
	l.start -= int(l.pos - offset)
	l.scanned = l.start
	l.pos = offset
	l.line--
}

// partial is how much of a line is there without its newline, once next said no.
func (l *lines) partial() int { return l.end - l.start }

// space returns room to read into; what was read is told by filled. It moves
// what must stay to the front, so that the buffer grows only with a long line.
func (l *lines) space() []byte {
	if len(l.buf)-l.end < l.read/2 {
		keep := l.start - int(min(l.pos, tailSize))
		if n := l.end - keep; len(l.buf)-n < l.read/2 {
			grown := make([]byte, max(2*len(l.buf), n+l.read))
			copy(grown, l.buf[keep:l.end])
			l.buf = grown
		} else {
			copy(l.buf, l.buf[keep:l.end])
		}
		l.start -= keep
		l.scanned -= keep
		l.end -= keep
	}
	b := l.buf[l.end:]
	return b[:min(len(b), l.read)]
}

func (l *lines) filled(n int) { l.end += n }

// readPos is where in the file the next read begins.
func (l *lines) readPos() int64 { return l.pos + int64(l.end-l.start) }

// tail is what stands before the position, at most tailSize bytes.
func (l *lines) tail() []byte {
	return l.buf[l.start-int(min(l.pos, tailSize)) : l.start]
}
