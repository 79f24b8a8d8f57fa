//go:build unix && !solaris && !aix

package dir

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks f until it is closed, or says that another open file holds it.
func tryLock(f *os.File) (held bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return true, nil
		default:
			return false, err
		}
	}
}
