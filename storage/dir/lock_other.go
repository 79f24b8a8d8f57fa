//go:build !unix || solaris || aix

package dir

import (
	"errors"
	"os"
)

// tryLock refuses: without a lock that ends with its process, two owners could
// run on one directory, and the files of a living one would be removed.
func tryLock(*os.File) (held bool, err error) {
	return false, errors.New("the directory store needs flock, which this system does not have")
}
