package operator

import (
	"context"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
)

// ackSnapshot is a snapshot that was taken whole in the sync phase.
type ackSnapshot struct{ ack checkpoint.OperatorAck }

func (s *ackSnapshot) Write(context.Context, *statefile.Packer) (checkpoint.OperatorAck, error) {
	return s.ack, nil
}

func (s *ackSnapshot) Release() {}
