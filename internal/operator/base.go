package operator

import "github.com/staunchdev/staunch/internal/checkpoint"

// Base is an operator that keeps nothing: embed it and add what is needed.
type Base struct{}

func (Base) Open(*Runtime) error                           { return nil }
func (Base) Finish() error                                 { return nil }
func (Base) Snapshot(checkpoint.Barrier) (Snapshot, error) { return nil, nil }
func (Base) Complete(checkpoint.ID) error                  { return nil }
func (Base) Abort(checkpoint.ID) error                     { return nil }
func (Base) Committed(checkpoint.ID) error                 { return nil }
func (Base) Close() error                                  { return nil }
