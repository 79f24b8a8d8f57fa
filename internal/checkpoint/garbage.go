package checkpoint

// GarbageView is what a collector knows. It must have read the log to its tail
// and proved its ownership after the objects were listed: what was referred to
// in between is then in the log that it read.
type GarbageView struct {
	// Epoch is the collector's own. One that owns nothing, such as the offline
	// verb, gives the newest generation of the log and Attempt 0: then only
	// lower generations are touched.
	Epoch Epoch
	// Held names what every checkpoint that was not disposed of refers to: its
	// manifest and its objects; also what a restore that goes on still reads.
	Held map[string]bool
	// Disposed names what checkpoints in Dispose records referred to.
	Disposed map[string]bool
	// Decided says whether an id of the own attempt has ended: nothing will
	// refer to what is left of it. Nil: of none.
	Decided func(ID) bool
}

// Delete is an object that may go, and why.
type Delete struct {
	Name string
	Why  string
}

// Garbage decides which of the listed objects may be deleted, by names and
// manifests and never by time of day. An object of a higher generation, one
// whose name says nothing, and one of an own id that is not decided stay.
func Garbage(listing []string, v GarbageView) []Delete {
	var ds []Delete
	for _, name := range listing {
		if v.Held[name] {
			continue
		}
		if o, ok := ParseName(name); ok {
			if why, ok := v.dead(name, o); ok {
				ds = append(ds, Delete{name, why})
			}
		}
	}
	return ds
}

// dead says whether nobody can still come to refer to an object that no
// retained checkpoint holds.
func (v GarbageView) dead(name string, o Origin) (why string, ok bool) {
	own := v.Epoch
	switch {
	case o.Epoch.Generation > own.Generation:
		return "", false // of a coordinator that has fenced this one
	case v.Disposed[name]:
		return "its checkpoint was disposed of", true
	case o.Epoch.Generation < own.Generation:
		return "no checkpoint refers to it and its generation has ended", true
	case o.Epoch.Attempt < own.Attempt:
		return "no checkpoint refers to it and its attempt has ended", true
	case o.Epoch.Attempt == own.Attempt && v.Decided != nil && v.Decided(o.ID):
		return "no checkpoint refers to it and its checkpoint has ended", true
	}
	return "", false
}
