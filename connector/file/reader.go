package file

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

// maxOpen is how many files of bounded input a reader has open at a time: a
// directory of many files must run out neither of memory nor of descriptors.
const maxOpen = 16

// reader reads its files in turn, each Poll from one file. Reading a local file
// is allowed on the caller, as a Poll reads at most readSize bytes; what is left
// to a goroutine of its own is to wait for a file to grow.
type reader[T any] struct {
	path   string
	codec  codec.Codec[T]
	follow bool
	max    int
	ready  chan struct{}
	watch  watcher

	active  []*input // polled in turn
	waiting []*input // bounded input above maxOpen; their files are closed
	turn    int
	spare   [][]byte // buffers of files that ended or wait for growth
}

// input is one file that is read.
type input struct {
	id, path  string
	f         *os.File
	l         lines
	end       int64    // a line that begins here or later is not read; -1: none
	at        position // while buffered is false
	buffered  bool     // l is in use
	lineKnown bool
	idle      *watched // not nil: read to its end, waits for growth
	err       error    // found behind records that had to be returned first
}

// Add opens the file and checks that it still is what was read up to s.Next.
func (r *reader[T]) Add(s connector.Split) error {
	at, err := decodePosition(s.Next)
	if err != nil {
		return fmt.Errorf("add %s: %w", s.ID, err)
	}
	for _, in := range slices.Concat(r.active, r.waiting) {
		if in.id == s.ID {
			return fmt.Errorf("add %s: the reader has it already", s.ID)
		}
	}
	path, err := r.resolve(s.ID)
	if err != nil {
		return fmt.Errorf("add %s at offset %d: %w", s.ID, s.Next.N, deleted(err))
	}
	in := &input{id: s.ID, path: path, end: -1, at: at, lineKnown: at.line >= 0}
	if s.End != nil {
		in.end = s.End.N
	}
	if err := in.open(); err != nil {
		return fmt.Errorf("add %s at offset %d: %w", s.ID, s.Next.N, err)
	}
	if !r.follow && len(r.active) >= maxOpen {
		in.close()
		r.waiting = append(r.waiting, in)
	} else {
		r.active = append(r.active, in)
	}
	r.signal()
	return nil
}

// resolve finds the file of a split.
func (r *reader[T]) resolve(id string) (string, error) {
	fi, err := os.Stat(r.path)
	switch {
	case err != nil:
		return "", err
	case fi.IsDir():
		path := filepath.Join(r.path, id)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && filepath.Base(r.path) == id {
			return "", directory(r.path) // it was the file
		}
		return path, nil
	case filepath.Base(r.path) != id:
		return "", fmt.Errorf("%s is another file: %w", r.path, ErrReplaced)
	}
	return r.path, nil
}

// open opens the file and checks it against the position.
func (in *input) open() error {
	f, err := os.Open(in.path)
	if err != nil {
		return deleted(err)
	}
	fi, err := f.Stat()
	if err == nil && fi.IsDir() {
		err = directory(in.path)
	}
	if err == nil {
		_, err = verify(f, in.at)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	in.f = f
	return nil
}

func (in *input) close() error {
	if in.f == nil {
		return nil
	}
	err := in.f.Close()
	in.f = nil
	return err
}

// Available implements connector.Reader.
func (r *reader[T]) Available() <-chan struct{} { return r.ready }

func (r *reader[T]) signal() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Poll implements connector.Reader.
func (r *reader[T]) Poll(b *connector.Batch[T], max int) (string, connector.Offset, error) {
	for range len(r.active) {
		if r.turn >= len(r.active) {
			r.turn = 0
		}
		in := r.active[r.turn]
		r.turn++
		if in.idle != nil && !in.idle.woken.Load() {
			continue
		}
		values, bad := len(b.Values), len(b.Bad)
		err := in.err
		if err == nil {
			err = r.read(in, b, max)
		}
		got := len(b.Values) > values || len(b.Bad) > bad
		switch {
		case err == nil && !got:
			if in.buffered {
				r.signal() // a long line, or many empty ones: more of it next time
			}
			continue
		case err == io.EOF:
			next := in.position().encode()
			r.remove(in)
			r.signal()
			return in.id, next, io.EOF
		case err != nil:
			in.err = err // for good
			if !got {
				return in.id, in.position().encode(), err
			}
		}
		r.signal()
		return in.id, in.position().encode(), nil
	}
	return "", connector.Offset{}, connector.ErrEmpty
}

// read appends at most max records of in. It returns io.EOF when in is done, and
// nil without records when there is nothing now.
func (r *reader[T]) read(in *input, b *connector.Batch[T], max int) error {
	if err := r.buffer(in); err != nil {
		return err
	}
	l := &in.l
	budget := readSize
	for n := 0; n < max; {
		if in.end >= 0 && l.pos >= in.end {
			return io.EOF
		}
		offset := l.pos
		line, ok := l.next()
		if !ok {
			if l.partial() > r.max {
				return r.tooLong(in, offset)
			}
			if budget <= 0 {
				return nil
			}
			got, err := in.f.ReadAt(l.space(), l.readPos())
			l.filled(got)
			budget -= got
			if got > 0 {
				continue
			}
			if err != io.EOF {
				return fmt.Errorf("read %s at offset %d: %w", in.path, l.readPos(), err)
			}
			ended, err := r.atEnd(in, n > 0)
			if err != nil || !ended {
				return err
			}
			if line, ok = l.rest(); !ok {
				return io.EOF
			}
		}
		if len(line) > r.max {
			l.unread(offset)
			return r.tooLong(in, offset)
		}
		if len(line) == 0 {
			continue
		}
		n++
		v, err := r.codec.Decode(line)
		if err != nil {
			b.Bad = append(b.Bad, connector.Bad{
				Raw:  bytes.Clone(line),
				Err:  err,
				From: in.where(l.line, offset),
			})
			continue
		}
		b.Values = append(b.Values, v)
	}
	return nil
}

// buffer makes the lines of in ready to be read. A file that waited for growth
// is checked again: it may have been cut and written anew meanwhile.
func (r *reader[T]) buffer(in *input) error {
	if in.buffered {
		return nil
	}
	if in.f == nil {
		if err := in.open(); err != nil {
			return fmt.Errorf("open %s at offset %d: %w", in.id, in.at.offset, err)
		}
	}
	tail, err := verify(in.f, in.at)
	if err != nil {
		return err
	}
	if n := len(r.spare); n > 0 {
		in.l.buf, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	in.l.reset(in.at.offset, max(in.at.line, 0), tail)
	in.buffered = true
	return nil
}

// unbuffer gives the buffer of in back; a partial line is read again later.
func (r *reader[T]) unbuffer(in *input) {
	if !in.buffered {
		return
	}
	in.at = in.position()
	if cap(in.l.buf) <= 2*(tailSize+readSize) {
		r.spare = append(r.spare, in.l.buf)
	}
	in.l = lines{}
	in.buffered = false
}

// atEnd decides what the end of the file means: done, to wait for more, or that
// bytes are gone which were there before.
func (r *reader[T]) atEnd(in *input, got bool) (done bool, err error) {
	fi, err := in.f.Stat()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", in.path, err)
	}
	seen := in.l.readPos()
	if fi.Size() < seen {
		return false, truncated(in.path, seen, fi.Size())
	}
	if fi.Size() < in.end {
		return false, fmt.Errorf("%s: had %d bytes when it was found, but has only %d: %d bytes are gone: %w",
			in.path, in.end, fi.Size(), in.end-fi.Size(), ErrTruncated)
	}
	switch was := in.idle; {
	case !r.follow:
		return true, nil
	case was != nil && was.replaced:
		return false, fmt.Errorf("%s: read up to offset %d, but the path names another file now: %w", in.path, in.l.pos, ErrReplaced)
	case was != nil && was.removed:
		return true, nil
	}
	if !got {
		r.unbuffer(in)
		in.idle = &watched{f: in.f, path: in.path, size: seen}
		r.watch.add(in.idle)
	}
	return false, nil
}

// remove takes a file that is done out of the turn, and lets a waiting one in.
func (r *reader[T]) remove(in *input) {
	r.unbuffer(in)
	in.close()
	for i := range r.active {
		if r.active[i] == in {
			r.active = append(r.active[:i], r.active[i+1:]...)
			if i < r.turn {
				r.turn--
			}
			break
		}
	}
	if len(r.waiting) > 0 {
		r.active = append(r.active, r.waiting[0])
		r.waiting = r.waiting[1:]
	}
}

// position is where in is read next.
func (in *input) position() position {
	if !in.buffered {
		return in.at
	}
	p := position{offset: in.l.pos, line: in.l.line, crc: crc32.Checksum(in.l.tail(), castagnoli), check: true}
	if !in.lineKnown {
		p.line = -1
	}
	return p
}

// where names a line by its number, counted from 1, and offset.
func (in *input) where(line, offset int64) string {
	if !in.lineKnown {
		return fmt.Sprintf("%s:offset %d", in.path, offset)
	}
	return fmt.Sprintf("%s:line %d (offset %d)", in.path, line, offset)
}

func (r *reader[T]) tooLong(in *input, offset int64) error {
	return fmt.Errorf("%s: the line is longer than %d bytes; raise MaxLine if it is no damage", in.where(in.l.line+1, offset), r.max)
}

// Close implements connector.Reader.
func (r *reader[T]) Close() error {
	r.watch.close()
	var errs []error
	for _, in := range slices.Concat(r.active, r.waiting) {
		if err := in.close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	r.active, r.waiting = nil, nil
	return errors.Join(errs...)
}
