package checkpoint

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
)

// Origin says which try at which checkpoint wrote an object. Every name
// carries it, and random bytes besides: names are never used twice and never
// made from content, so whoever collects objects knows by the name alone
// whether somebody may still be about to use it.
type Origin struct {
	Lineage uint64
	Epoch   Epoch
	ID      ID
}

func (o Origin) String() string {
	return fmt.Sprintf("L%d-G%d-A%d-C%d", o.Lineage, o.Epoch.Generation, o.Epoch.Attempt, o.ID)
}

// ObjectPrefix and ManifestPrefix are where objects with runs and where
// manifests are.
const (
	ObjectPrefix   = "obj/"
	ManifestPrefix = "ckpt/"
)

// ObjectName names an object with runs.
func ObjectName(o Origin, random []byte) string { return objectName(ObjectPrefix, o, random) }

// ManifestName names a manifest.
func ManifestName(o Origin, random []byte) string { return objectName(ManifestPrefix, o, random) }

func objectName(prefix string, o Origin, random []byte) string {
	if len(random) == 0 {
		panic("checkpoint: object name without random bytes")
	}
	return fmt.Sprintf("%s%v-%s", prefix, o, hex.EncodeToString(random))
}

// No number has a leading zero, so that a name has one reading and an origin
// one spelling.
var namePattern = regexp.MustCompile(`^(?:obj|ckpt)/L(0|[1-9]\d*)-G(0|[1-9]\d*)-A(0|[1-9]\d*)-C(0|[1-9]\d*)-(?:[0-9a-f]{2})+$`)

// ParseName returns the origin of an object or manifest. It says false for any
// other name: such an object is not ours to touch.
func ParseName(name string) (o Origin, ok bool) {
	match := namePattern.FindStringSubmatch(name)
	if match == nil {
		return Origin{}, false
	}
	var n [4]uint64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(match[i+1], 10, 64); err != nil {
			return Origin{}, false
		}
	}
	return Origin{Lineage: n[0], Epoch: Epoch{n[1], n[2]}, ID: ID(n[3])}, true
}
