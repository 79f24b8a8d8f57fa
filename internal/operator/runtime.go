package operator

// counter returns a counter of the operator, also where nobody collects them.
func (rt *Runtime) counter(name string) *Counter {
	if rt.Counter == nil {
		return new(Counter)
	}
	return rt.Counter(name)
}

// restoredRecords is the count that this subtask goes on from: the whole job's
// is given to one subtask, so that the sum over all of them stays right.
func (rt *Runtime) restoredRecords() int64 {
	if rt.Restore == nil || rt.Instance.Subtask != 0 {
		return 0
	}
	return rt.Restore.Op.Records
}
