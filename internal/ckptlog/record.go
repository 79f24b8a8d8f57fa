package ckptlog

import (
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Kind is the kind of a record.
type Kind uint8

const (
	KindGenesis Kind = iota + 1
	KindTakeover
	KindCheckpoint
	KindCommitted
	KindReserve
	KindPin
	KindUnpin
	KindRestore
	KindResolve
	KindDispose
	KindVoid
	KindFloor
)

var kindNames = [...]string{"", "genesis", "takeover", "checkpoint", "committed", "reserve", "pin", "unpin",
	"restore", "resolve", "dispose", "void", "floor"}

func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Record is one entry of the log.
type Record interface {
	Kind() Kind
}

// Genesis is the record of slot 0: it says which job the log belongs to.
type Genesis struct {
	Job      string   `cbor:"1,keyasint"`
	JobID    [16]byte `cbor:"2,keyasint"` // tells two jobs of one name apart
	HashID   uint8    `cbor:"3,keyasint"`
	HashSeed uint64   `cbor:"4,keyasint"`
}

// Takeover begins a generation, whose number is the slot of the record.
type Takeover struct {
	Owner string `cbor:"1,keyasint"` // for messages: host, process, start
}

// Checkpoint says that a checkpoint is complete. This append is its commit point.
type Checkpoint struct {
	ID       checkpoint.ID    `cbor:"1,keyasint"`
	Lineage  uint64           `cbor:"2,keyasint"`
	Parent   checkpoint.ID    `cbor:"3,keyasint,omitempty"` // 0: none
	Epoch    checkpoint.Epoch `cbor:"4,keyasint"`
	Purpose  checkpoint.Kind  `cbor:"5,keyasint,omitempty"`
	Manifest Manifest         `cbor:"6,keyasint"`
	// Committables says that the manifest names committables, so that the
	// checkpoint is needed until it is Committed.
	Committables bool `cbor:"7,keyasint,omitempty"`
}

// Manifest names the manifest of a checkpoint, and what it must look like.
type Manifest struct {
	Name string `cbor:"1,keyasint"`
	Size int64  `cbor:"2,keyasint"`
	CRC  uint32 `cbor:"3,keyasint"` // crc32c of the whole object
}

// Committed says that every sink has committed everything prepared up to ID on
// the branch that ends at ID.
type Committed struct {
	ID      checkpoint.ID `cbor:"1,keyasint"`
	Lineage uint64        `cbor:"2,keyasint"`
}

// Reserve lets AtMostOnce sources emit what lies below the given positions.
type Reserve struct {
	Splits []Reservation `cbor:"1,keyasint"`
}

// Reservation is how far one split may have been emitted.
type Reservation struct {
	Source string `cbor:"1,keyasint"`
	Split  string `cbor:"2,keyasint"`
	N      int64  `cbor:"3,keyasint"`
	State  []byte `cbor:"4,keyasint,omitempty"`
}

// Pin keeps a checkpoint until Unpin: a savepoint, one being restored, one that
// the user named.
type Pin struct {
	Name string        `cbor:"1,keyasint"`
	ID   checkpoint.ID `cbor:"2,keyasint"`
}

// Unpin takes a Pin back.
type Unpin struct {
	Name string `cbor:"1,keyasint"`
}

// Restore begins a lineage, whose number is the slot of the record. From 0 is a
// fresh start: no checkpoint and no reservation counts any more.
type Restore struct {
	From    checkpoint.ID `cbor:"1,keyasint"`
	Lineage uint64        `cbor:"2,keyasint"` // that From belongs to
}

// Resolve is an operator's decision about a committable that no sink can decide.
type Resolve struct {
	Operator    string   `cbor:"1,keyasint"`
	Committable string   `cbor:"2,keyasint"`
	Decision    Decision `cbor:"3,keyasint"`
}

// Decision is what becomes of a committable.
type Decision uint8

const (
	CommitIt Decision = iota + 1
	RollBack
)

func (d Decision) String() string {
	switch d {
	case CommitIt:
		return "commit"
	case RollBack:
		return "roll back"
	}
	return fmt.Sprintf("decision %d", uint8(d))
}

// Dispose gives checkpoints up: they can no longer be restored or pinned, and
// what only they name may be deleted.
type Dispose struct {
	IDs []checkpoint.ID `cbor:"1,keyasint"`
}

// Void fills a slot whose record was given up. ID is the checkpoint that the
// record was for, 0 for a record of another kind.
type Void struct {
	ID checkpoint.ID `cbor:"1,keyasint,omitempty"`
}

// Floor replaces all that stands below it.
type Floor struct {
	State State `cbor:"1,keyasint"`
}

func (Genesis) Kind() Kind    { return KindGenesis }
func (Takeover) Kind() Kind   { return KindTakeover }
func (Checkpoint) Kind() Kind { return KindCheckpoint }
func (Committed) Kind() Kind  { return KindCommitted }
func (Reserve) Kind() Kind    { return KindReserve }
func (Pin) Kind() Kind        { return KindPin }
func (Unpin) Kind() Kind      { return KindUnpin }
func (Restore) Kind() Kind    { return KindRestore }
func (Resolve) Kind() Kind    { return KindResolve }
func (Dispose) Kind() Kind    { return KindDispose }
func (Void) Kind() Kind       { return KindVoid }
func (Floor) Kind() Kind      { return KindFloor }
