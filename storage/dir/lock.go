package dir

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrLocked says that a living process holds a lock.
var ErrLocked = errors.New("locked")

// LockedError is an ErrLocked that knows by whom.
type LockedError struct {
	Holder string // what the holder wrote; "" if that cannot be read
}

func (e *LockedError) Error() string {
	if e.Holder == "" {
		return "held by another process"
	}
	return "held by " + e.Holder
}

// Is makes a LockedError an ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Lock locks the file and not its name. Whoever waits at the file while another
// removes it has locked nothing, so the name is looked at again afterwards.
func (o *osFS) Lock(name, text string) (func(), error) {
	for {
		f, err := o.root.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
		if err != nil {
			return nil, err
		}
		held, err := tryLock(f)
		if err != nil || held {
			holder := make([]byte, 200)
			n, _ := f.ReadAt(holder, 0)
			f.Close()
			if err != nil {
				return nil, fmt.Errorf("lock %s: %w", name, err)
			}
			return nil, &LockedError{strings.TrimSpace(string(holder[:n]))}
		}
		mine, err1 := f.Stat()
		there, err2 := o.root.Lstat(name)
		if err1 != nil || err2 != nil || !os.SameFile(mine, there) {
			f.Close()
			continue
		}
		if text != "" {
			err = f.Truncate(0)
			if err == nil {
				_, err = f.WriteAt([]byte(text), 0)
			}
			if err != nil {
				f.Close()
				return nil, err
			}
		}
		return func() { f.Close() }, nil
	}
}
