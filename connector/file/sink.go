package file

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

// Sink writes segments into a directory, one a subtask and checkpoint in which
// there were records, one record a line. They are written in Dir/.staging and
// get their name in Dir at commit, so that Dir/*.jsonl is what is committed and
// nothing else. It is Transactional. Nothing in Dir is ever overwritten.
//
// The directory may be shared by several jobs and operators, and moved between
// two runs. It must be on one file system.
type Sink[T any] struct {
	Dir   string
	Codec codec.Codec[T] // nil: codec.JSON
	Ext   string         // empty: .jsonl
	// SetAside moves, when the job is started fresh, what earlier runs have
	// committed into a hidden directory beside the staged segments. Without it
	// the new run's segments come beside the old ones.
	SetAside bool

	disk Disk // nil: the real one
}

// NewSink writes lines of c into files of dir.
func NewSink[T any](dir string, c codec.Codec[T]) *Sink[T] {
	return &Sink[T]{Dir: dir, Codec: c, Ext: ".jsonl"}
}

// WithDisk puts d in the place of the operating system's file system: tests
// record its calls, or make them fail. It returns s.
func (s *Sink[T]) WithDisk(d Disk) *Sink[T] {
	s.disk = d
	return s
}

// Spec implements connector.Sink.
func (s *Sink[T]) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Transactional, System: "file " + s.Dir}
}

// Writer implements connector.Sink.
func (s *Sink[T]) Writer(_ context.Context, i connector.Instance) (connector.Writer[T], error) {
	if err := mkdirAll(s.fs(), s.staging()); err != nil {
		return nil, fmt.Errorf("make output directory: %w", err)
	}
	w := &writer[T]{disk: s.fs(), dir: s.staging(), i: i, codec: s.Codec, ext: s.Ext}
	if w.codec == nil {
		w.codec = codec.JSON[T]()
	}
	if w.ext == "" {
		w.ext = ".jsonl"
	}
	return w, nil
}

// staged is the Data of a committable, whose ID is the final name. Names are
// relative to Dir.
type staged struct {
	Size int64  `cbor:"1,keyasint"`
	CRC  uint32 `cbor:"2,keyasint"` // CRC-32C
}

// Commit gives staged segments their names. The directory is synced once for all
// of them.
//
// They are linked, and lose their staged names when the new ones are durable. A
// rename would be one call, but only most file systems promise that no sync
// parts its two halves: a writer that stages the next segment syncs the staging
// directory at any time, so the old name could be gone for good before the new
// one is there to stay.
func (s *Sink[T]) Commit(_ context.Context, cs []connector.Committable) error {
	if len(cs) == 0 {
		return nil
	}
	for _, c := range cs {
		if err := s.publish(c); err != nil {
			return fmt.Errorf("commit segment %s: %w", c.ID, err)
		}
	}
	// Also where nothing was linked: a commit that failed between link and sync is
	// tried again, and must not return before its link is durable.
	if err := s.fs().SyncDir(s.Dir); err != nil {
		return fmt.Errorf("commit %d segments to %s: %w", len(cs), s.Dir, err)
	}
	for _, c := range cs {
		// Not synced: a staged name that comes back is removed by the next attempt.
		if err := s.fs().Remove(filepath.Join(s.staging(), c.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("commit segment %s: %w", c.ID, err)
		}
	}
	return nil
}

// publish links one segment. Four cases, by what stands where: staged only is
// the usual one; final only was committed before; neither is lost; both is a
// copy of what is committed, or a foreign file that took the name.
func (s *Sink[T]) publish(c connector.Committable) error {
	var want staged
	if err := cbor.Unmarshal(c.Data, &want); err != nil {
		return fmt.Errorf("read the committable: %w", err)
	}
	from, to := filepath.Join(s.staging(), c.ID), filepath.Join(s.Dir, c.ID)
	src, srcErr := s.fs().Stat(from)
	if srcErr != nil && !errors.Is(srcErr, fs.ErrNotExist) {
		return srcErr
	}
	dst, dstErr := s.fs().Stat(to)
	if dstErr != nil && !errors.Is(dstErr, fs.ErrNotExist) {
		return dstErr
	}
	switch {
	case dstErr == nil:
		return s.compare(to, dst.Size(), want)
	case srcErr != nil:
		return fmt.Errorf("%d bytes are neither in %s nor in %s: %w", want.Size, s.staging(), s.Dir, connector.ErrLost)
	case src.Size() != want.Size:
		return fmt.Errorf("staged with %d bytes, but %s has %d: %w", want.Size, from, src.Size(), connector.ErrLost)
	}
	err := s.fs().Link(from, to)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		err = s.fs().Rename(from, to) // there are no hard links here: exFAT, SMB
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		// A coordinator that was succeeded, but does not know it yet, may commit
		// the same segment at the same time.
		if fi, statErr := s.fs().Stat(to); statErr == nil {
			return s.compare(to, fi.Size(), want)
		}
	}
	return err
}

// compare checks that a file under a final name is the segment of that name.
func (s *Sink[T]) compare(name string, size int64, want staged) error {
	if size != want.Size {
		return foreign(name, fmt.Sprintf("%d bytes and not %d", size, want.Size))
	}
	f, err := s.fs().Open(name)
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	_, err = io.Copy(sum, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if sum.Sum32() != want.CRC {
		return foreign(name, fmt.Sprintf("crc32c %08x and not %08x", sum.Sum32(), want.CRC))
	}
	return nil
}

// foreign is permanent: a file that is not overwritten stays until somebody has
// decided what it is.
func foreign(name, differs string) error {
	return connector.Permanent(fmt.Errorf("%s exists with %s: another history of the job wrote it; move it away, and start again", name, differs))
}

// Recover commits pending, then removes what older attempts of this operator
// staged and no checkpoint names. Files of an attempt that is not older stay: a
// coordinator that was succeeded must not remove what its successor stages.
func (s *Sink[T]) Recover(ctx context.Context, i connector.Instance, pending []connector.Committable) error {
	if err := s.Commit(ctx, pending); err != nil {
		return err
	}
	names, err := s.fs().List(s.staging())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list staged segments: %w", err)
	}
	for _, name := range names {
		generation, attempt, ok := attemptOf(i, name)
		older := generation < i.Generation || generation == i.Generation && attempt < i.Attempt
		if !ok || !older {
			continue
		}
		if err := s.fs().Remove(filepath.Join(s.staging(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove staged segment: %w", err)
		}
	}
	return nil
}

func (s *Sink[T]) staging() string { return filepath.Join(s.Dir, stagingDir) }

func (s *Sink[T]) fs() Disk {
	if s.disk == nil {
		return osDisk{}
	}
	return s.disk
}
