package staunch

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
	"github.com/staunchdev/staunch/storage/memstore"
)

// The schemes that every binary has. Others are linked by importing their
// package.
func init() {
	storage.Register("file", openDir)
	storage.Register("mem", openMemory)
}

// openDir opens a directory: file:///path, or a bare path.
func openDir(_ context.Context, location string) (storage.Store, error) {
	path, err := dirPath(location)
	if err != nil {
		return nil, err
	}
	return dir.Open(path)
}

// dirPath is the path of a directory's URL.
func dirPath(location string) (path string, err error) {
	path = location
	if strings.HasPrefix(location, "file:") {
		u, err := url.Parse(location)
		if err != nil {
			return "", err
		}
		if u.Host != "" && u.Host != "localhost" {
			return "", fmt.Errorf("a file URL is of this machine, not of %q: file:///path", u.Host)
		}
		if path = u.Path; path == "" {
			path = u.Opaque
		}
	}
	return path, nil
}

// memories are the disks of mem: URLs with a name. They live as long as the
// process, so that a second run finds what the first one left.
var memories struct {
	sync.Mutex
	disks map[string]*memstore.Disk
}

// openMemory opens a store in memory: mem: is a new one, mem:name is shared.
func openMemory(_ context.Context, location string) (storage.Store, error) {
	name := strings.TrimPrefix(location, "mem:")
	if name == "" {
		return memstore.New(), nil
	}
	memories.Lock()
	defer memories.Unlock()
	if memories.disks == nil {
		memories.disks = map[string]*memstore.Disk{}
	}
	if memories.disks[name] == nil {
		memories.disks[name] = memstore.NewDisk()
	}
	return memories.disks[name].Open(), nil
}

// locker is a store that can keep a second owner out while the first one lives.
type locker interface {
	Lock(name string) (release func(), err error)
}
