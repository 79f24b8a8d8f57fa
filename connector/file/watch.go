package file

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// watched is a file that was read to its end. The watcher writes replaced and
// removed before it sets woken, and does not touch the file after that.
type watched struct {
	f                 *os.File
	path              string
	size              int64 // of the file when it was read to its end
	woken             atomic.Bool
	replaced, removed bool
}

// watcher looks at watched files at an interval, on a goroutine of its own that
// runs from the first add to close, and calls wake when one has changed.
// Polling and not inotify: it works on every system and on network mounts.
type watcher struct {
	every time.Duration
	wake  func()

	mu   sync.Mutex
	list []*watched
	stop chan struct{}
	done chan struct{}
}

func (w *watcher) add(f *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, f)
	if w.stop == nil {
		w.stop, w.done = make(chan struct{}), make(chan struct{})
		go w.run(w.stop)
	}
}

func (w *watcher) run(stop <-chan struct{}) {
	defer close(w.done)
	t := time.NewTicker(w.every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			w.look()
		}
	}
}

// look wakes what has changed and takes it off the list.
func (w *watcher) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.list[:0]
	for _, f := range w.list {
		if f.changed() {
			f.woken.Store(true)
			w.wake()
		} else {
			kept = append(kept, f)
		}
	}
	clear(w.list[len(kept):])
	w.list = kept
}

// changed says whether there is anything for the reader to find out. What it
// cannot stat is for the reader to fail on.
func (f *watched) changed() bool {
	open, err := f.f.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.removed = true
	case err == nil && !os.SameFile(open, named):
		f.replaced = true
	}
	return f.removed || f.replaced || open.Size() != f.size
}

// close ends the goroutine and waits for it.
func (w *watcher) close() {
	w.mu.Lock()
	stop := w.stop
	w.stop = nil
	w.mu.Unlock()
	if stop != nil {
		close(stop)
		<-w.done
	}
}
