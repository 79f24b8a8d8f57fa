package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// Probe makes sure that the store can do what a job will ask of it, by doing it
// with an object under "probe/": a job that cannot write its checkpoints must be
// refused at the start and not run without any. It also proves that a second
// create is refused, which is what all fencing stands on. An error names the
// store, the operation and the reason.
func Probe(ctx context.Context, s Store) error {
	var nonce [12]byte
	rand.Read(nonce[:])
	name := "probe/" + hex.EncodeToString(nonce[:])
	content := []byte("staunch probe " + name)
	fault := func(doing string, err error) error {
		return fmt.Errorf("%s cannot be used: %s %s: %w", s, doing, name, err)
	}

	if err := s.Create(ctx, name, content); err != nil {
		return fault("create", err)
	}
	err := probe(ctx, s, name, content, fault)
	// What was made is removed whatever the checks said.
	if derr := s.Delete(ctx, name); derr != nil && err == nil {
		err = fault("delete", derr)
	}
	if err != nil {
		return err
	}
	if _, err := s.Stat(ctx, name); !errors.Is(err, ErrNotFound) {
		return fault("look for the deleted object", errOr(err, "it is still there"))
	}
	return nil
}

func probe(ctx context.Context, s Store, name string, content []byte, fault func(string, error) error) error {
	got, err := s.ReadAt(ctx, name, 0, -1)
	if err != nil {
		return fault("read", err)
	}
	if !bytes.Equal(got, content) {
		return fault("read", errors.New("it holds other bytes than were written"))
	}
	infos, err := s.List(ctx, "probe/")
	if err != nil {
		return fault("list", err)
	}
	if !slices.Contains(infos, Info{name, int64(len(content))}) {
		return fault("list", errors.New("the list does not show what was just created"))
	}
	if err := s.Create(ctx, name, []byte("a second create")); !errors.Is(err, ErrExists) {
		return fault("create a second time", errOr(err, "it was not refused: two owners could both believe to own a job"))
	}
	return nil
}

// errOr is err, or what is wrong if there is none.
func errOr(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}
