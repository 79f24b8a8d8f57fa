package statestore

// dir is a directory of pages, or one of the 64 sub-directories of a table: the
// top bits of an index choose the page, so its order is hash order. A page of
// depth d stands in 2^(depth of the directory - d) places in a row.
//
// Invariant: the array behind pages is written only if own is the current
// version or no snapshot is live; else it is copied first, for a snapshot
// shares it.
type dir struct {
	pages []*page
	shift uint8 // 63 - depth
	// mask is one less than the groups of each page: pages grow to the largest
	// class before they split, so all have the same. It is here so that a look-up
	// need not wait for the header of the page to know which group to read.
	mask uint8
	own  uint32 // version in which the array was made or found unshared
}

// maxDepth bounds a directory. Hashes spread, so only more keys than memory
// holds, or keys made to collide, get there.
const maxDepth = 30

// absent stands where a directory has no page yet. It has no entries and is
// never written.
var absent = (&geometry{groupLen: groupHeader + groupSlots*16}).newPage(0)

var noPages = []*page{absent}

func newDir() dir { return dir{pages: noPages, shift: 63} }

func (d *dir) depth() uint8 { return 63 - d.shift }

func (d *dir) slot(x uint64) uint64 { return x >> 1 >> (d.shift & 63) }

func (d *dir) at(x uint64) *page { return d.pages[d.slot(x)] }

// unshare makes the array writable in this version.
func (d *dir) unshare(s *Store) {
	if d.own == s.version {
		return
	}
	if s.snapshotLive() || d.own == 0 {
		d.pages = append([]*page(nil), d.pages...)
	}
	d.own = s.version
}

// replace puts p in all places of the page that x leads to.
func (d *dir) replace(s *Store, x uint64, p *page) {
	d.unshare(s)
	d.fill(x, p.depth, p)
}

// fill puts p in all places whose index begins with the first depth bits of x.
func (d *dir) fill(x uint64, depth uint8, p *page) {
	n := uint64(1) << (d.depth() - depth)
	first := d.slot(x) &^ (n - 1)
	for i := first; i < first+n; i++ {
		d.pages[i] = p
	}
	d.mask = p.mask()
}

// deepen doubles the directory.
func (d *dir) deepen(s *Store) {
	if d.depth() == maxDepth {
		fail("state has more keys with almost the same hash than a page holds: directory depth %d is the limit", maxDepth)
	}
	pages := make([]*page, 2*len(d.pages))
	for i, p := range d.pages {
		pages[2*i], pages[2*i+1] = p, p
	}
	d.pages, d.own = pages, s.version
	d.shift--
}

// each yields every page of the directory once, in order. It reads nothing of a
// page after it was yielded: the writer may have changed it by then.
func (d *dir) each(yield func(*page) bool) bool {
	depth := d.depth()
	for i := 0; i < len(d.pages); {
		p := d.pages[i]
		step := 1
		if p != absent {
			step = 1 << (depth - p.depth)
			if !yield(p) {
				return false
			}
		}
		i += step
	}
	return true
}
