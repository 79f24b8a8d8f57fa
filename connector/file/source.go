// Package file reads files line by line, and writes segments that become
// visible at commit.
//
// The source is replayable: a position is a byte offset together with a
// checksum of the bytes before it, so that a file that was cut or exchanged
// since a checkpoint is an error that names the gap, not silent loss. The sink
// is transactional: segments are staged in a hidden directory, fsynced when they
// are prepared, and linked into place when their checkpoint is committed.
package file

import (
	"context"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

const (
	defaultMaxLine   = 16 << 20
	defaultPollEvery = 100 * time.Millisecond
)

// Source reads a file, or each file of a directory as a split, line by line.
// In a directory the regular files whose names do not begin with a dot are
// read, those of subdirectories are not. A line ends with \n or \r\n; empty
// lines are skipped.
//
// Without Follow a file ends where it ended when it was found, and a last line
// without newline is a line. With Follow a file goes on when it grows, files
// that appear in the directory are read too, and a line counts once its newline
// is there. A followed file that is removed ends; one that is cut, or whose path
// names another file, is an error.
//
// A file that was cut, replaced or deleted since a checkpoint fails the job at
// once (ErrTruncated, ErrReplaced, ErrDeleted), with what is gone, when it is
// opened to go on; without Follow one that is deleted or renamed over while it is
// read is read to its end. A path at which there was nothing yet is tried again by
// the restart policy.
type Source[T any] struct {
	Path   string
	Codec  codec.Codec[T] // of one line; nil: codec.JSON
	Follow bool           // go on when the file grows, and read new files of the directory

	// MaxLine is the longest line in bytes; a longer one is an error. 0: 16 MiB.
	MaxLine int
	// PollEvery is how often a followed file is looked at that was read to its
	// end. 0: 100 ms.
	PollEvery time.Duration
}

// NewSource reads path.
func NewSource[T any](path string, c codec.Codec[T]) *Source[T] {
	return &Source[T]{Path: path, Codec: c}
}

// Lines reads path as lines of text.
func Lines(path string) *Source[string] { return NewSource(path, codec.Text()) }

// Spec implements connector.Source.
func (s *Source[T]) Spec() connector.SourceSpec {
	return connector.SourceSpec{Replayable: true, Bounded: !s.Follow, System: "file " + s.Path}
}

// Enumerator implements connector.Source.
func (s *Source[T]) Enumerator(context.Context, connector.Instance) (connector.Enumerator, error) {
	return &enumerator{path: s.Path, follow: s.Follow, known: make(map[string]*knownFile)}, nil
}

// Reader implements connector.Source.
func (s *Source[T]) Reader(context.Context, connector.Instance) (connector.Reader[T], error) {
	r := &reader[T]{
		path:   s.Path,
		codec:  s.Codec,
		follow: s.Follow,
		max:    s.MaxLine,
		ready:  make(chan struct{}, 1),
	}
	if r.codec == nil {
		r.codec = codec.JSON[T]()
	}
	if r.max <= 0 {
		r.max = defaultMaxLine
	}
	every := s.PollEvery
	if every <= 0 {
		every = defaultPollEvery
	}
	r.watch = watcher{every: every, wake: r.signal}
	return r, nil
}
