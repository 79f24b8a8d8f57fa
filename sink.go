package staunch

import (
	"reflect"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
)

// To ends a stream in a sink.
func To[T any](s Stream[T], name string, sink connector.Sink[T], opts ...Option) {
	s.use("To")
	j := s.job
	n := j.identity("sink", name, opts)
	n.Sink = &graph.SinkInfo{}
	connect(s, n)
	if isNil(sink) {
		j.fault("%s is nil", n.label)
		return
	}
	spec := sink.Spec()
	*n.Sink = graph.SinkInfo{
		Key: spec.Key, Fenced: spec.Fenced, TransactionTimeout: spec.TransactionTimeout,
		Readers: spec.Readers, System: spec.System, Why: spec.Why,
	}
	switch spec.Kind {
	case connector.AtLeastOnce:
		n.Sink.Kind = graph.SinkAtLeastOnce
	case connector.Idempotent:
		n.Sink.Kind = graph.SinkIdempotent
		if len(spec.Key) == 0 {
			j.fault("%s says Idempotent but names no key by which a record overwrites itself", n.label)
		}
	case connector.Transactional:
		n.Sink.Kind = graph.SinkTransactional
		c, ok := sink.(connector.Committer)
		if !ok {
			j.fault("%s says Transactional but %T has no Commit and Recover", n.label, sink)
		}
		n.committer = c
	default:
		j.fault("%s says it is of kind %d, which there is not", n.label, spec.Kind)
	}
	if f, ok := sink.(connector.Fencer); ok {
		n.fencer = f
	} else if spec.Fenced {
		j.fault("%s says Fenced but %T has no Fence", n.label, sink)
	}
	n.renewer, _ = sink.(connector.Renewer)
	n.make = func(name string, _ [][]any) operator.Made {
		return operator.NewSink(operator.SinkConfig[T]{Name: name, Writer: sink.Writer})
	}
}

// isNil says whether an interface holds nothing, or a nil pointer, which would
// fail later and far from its cause.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
