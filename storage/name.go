package storage

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrName says that a name cannot be one of an object.
var ErrName = errors.New("storage: bad name")

// ErrUnreachable says that the store itself could not be reached: it tells
// nothing about the objects in it, and is never to be read as "empty".
var ErrUnreachable = errors.New("storage: the store cannot be reached")

const (
	maxName = 1024 // the least limit of the object stores in use
	maxPart = 240  // what file systems allow, less what a store adds
)

// CheckName says what is wrong with name, wrapping ErrName; nil if nothing is.
// Every store calls it before it does anything, so that a name that works in
// one works in all. Parts that begin with a dot belong to the store itself.
func CheckName(name string) error {
	fault := func(why string) error { return fmt.Errorf("%w %q: %s", ErrName, name, why) }
	switch {
	case name == "":
		return fault("it is empty")
	case len(name) > maxName:
		return fault(fmt.Sprintf("it is longer than %d bytes", maxName))
	case name[0] == '/':
		return fault("it is absolute")
	case !utf8.ValidString(name):
		return fault("it is not UTF-8")
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return fault("it has an empty part")
		case part == "." || part == "..":
			return fault(fmt.Sprintf("it has the part %q", part))
		case part[0] == '.':
			return fault(fmt.Sprintf("its part %q begins with a dot", part))
		case len(part) > maxPart:
			return fault(fmt.Sprintf("a part is longer than %d bytes", maxPart))
		case strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`\:*?"<>|`, r) }):
			return fault(`it has a control character or one of \:*?"<>|`)
		}
	}
	return nil
}
