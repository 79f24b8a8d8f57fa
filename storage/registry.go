package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Opener opens the store that a URL names.
type Opener func(ctx context.Context, url string) (Store, error)

var registry struct {
	sync.Mutex
	openers map[string]Opener
}

// Register makes a scheme known to Open. It is for the init function of the
// package that implements it; a second registration panics.
func Register(scheme string, open Opener) {
	registry.Lock()
	defer registry.Unlock()
	if _, ok := registry.openers[scheme]; ok {
		panic(fmt.Sprintf("storage: scheme %q is registered twice", scheme))
	}
	if registry.openers == nil {
		registry.openers = map[string]Opener{}
	}
	registry.openers[scheme] = open
}

// Open opens the store that url names. A scheme that nothing in the binary has
// registered is an error that lists those which are there.
func Open(ctx context.Context, url string) (Store, error) {
	open, err := opener(url)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("open storage %q: %w", url, err)
	}
	return s, nil
}

// Check says whether Open knows the scheme of url. It does no I/O.
func Check(url string) error {
	_, err := opener(url)
	return err
}

func opener(url string) (Opener, error) {
	scheme := Scheme(url)
	registry.Lock()
	defer registry.Unlock()
	if open, ok := registry.openers[scheme]; ok {
		return open, nil
	}
	var known []string
	for s := range registry.openers {
		known = append(known, s)
	}
	slices.Sort(known)
	return nil, fmt.Errorf("storage %q: scheme %q is not linked: this version has no such store (it has: %s); a package of your own can bring it by storage.Register", url, scheme, strings.Join(known, ", "))
}

// Scheme is the scheme of a URL, or "file" for a bare path. A single letter is
// a drive, not a scheme.
func Scheme(url string) string {
	i := strings.IndexByte(url, ':')
	if i < 2 {
		return "file"
	}
	for j, c := range []byte(url[:i]) {
		switch {
		case 'a' <= c && c <= 'z', j > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return "file"
		}
	}
	return url[:i]
}
