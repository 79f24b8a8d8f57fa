package sim

import "slices"

// mutations break one rule each. The rule is a sentence of DESIGN.md or of the
// comments that hold it; S1 and S2 are the counterexamples that showed the need
// of the rule.
//
// Some rules are kept more than once, so that breaking one place has no effect
// that could be seen from outside: those mutations break all places, or have
// otherKeepers. docs/mutations.md goes through the rules one by one.
var mutations = []mutation{
	// Barriers.
	{"aligned-does-not-block", "A channel that delivered its barrier is blocked.", []edit{{
		"internal/checkpoint/barriers.go",
		"	if b.mode != AtLeastOnce {\n		b.channels[ch].blocked = bar.ID",
		"	if false {\n		b.channels[ch].blocked = bar.ID",
	}}},
	{"at-most-once-does-not-block", "AtMostOnce is aligned exactly as ExactlyOnce (S1-8 b).", []edit{{
		"internal/checkpoint/barriers.go",
		"	if b.mode != AtLeastOnce {\n		b.channels[ch].blocked = bar.ID",
		"	if b.mode == ExactlyOnce {\n		b.channels[ch].blocked = bar.ID",
	}}},
	{"gate-takes-from-blocked", "A blocked channel's data is received, but not processed.", []edit{{
		"internal/task/gate.go", "		if c.blocked || c.ended {\n			continue", "		if c.ended {\n			continue",
	}}},
	{"snapshot-at-first-barrier", "AtLeastOnce counts barriers: the snapshot is taken at the last one.", []edit{{
		"internal/checkpoint/alignment.go",
		"func (b *Barriers) aligned(a *alignment) bool {\n",
		"func (b *Barriers) aligned(a *alignment) bool {\n	if b.mode == AtLeastOnce {\n		return true\n	}\n",
	}}},
	{"at-least-once-blocks", "AtLeastOnce never blocks.", []edit{{
		"internal/checkpoint/barriers.go",
		"	if b.mode != AtLeastOnce {\n		b.channels[ch].blocked = bar.ID",
		"	if true {\n		b.channels[ch].blocked = bar.ID",
	}}},
	{"abort-keeps-blocked", "Abort releases the blocked channels.", []edit{{
		"internal/checkpoint/alignment.go",
		"	return append([]Action{ForwardCancel{id}}, b.unblock(id)...)",
		"	return []Action{ForwardCancel{id}}",
	}}},
	{"prepared-keeps-blocked", "On the last barrier: snapshot, unblock.", []edit{{
		"internal/checkpoint/barriers.go",
		"	as = append(as, b.unblock(id)...)\n	return append(as, b.beginNext()...)\n}\n\n// Fail says",
		"	return append(as, b.beginNext()...)\n}\n\n// Fail says",
	}}},
	{"aborted-barrier-begins", "Aborted ids are remembered, so that a barrier that comes later is swallowed.", []edit{{
		"internal/checkpoint/alignment.go",
		"	return id <= b.begun || b.aborted.has(id) && !b.isAligning(id)",
		"	return id <= b.begun",
	}}},
	{"newer-does-not-subsume", "A newer barrier subsumes the older ones that its channel has not delivered.", []edit{{
		"internal/checkpoint/alignment.go",
		"		if a.barrier.ID < id && !a.delivered[ch] {",
		"		if false {",
	}}},
	{"overtaken-barrier-begins", "A barrier whose id another channel has passed is subsumed.", []edit{{
		"internal/checkpoint/alignment.go",
		"		if c.last > id {",
		"		if false {",
	}}},
	{"end-is-no-barrier", "EndOfInput counts as barrier for every pending id.", []edit{{
		"internal/checkpoint/alignment.go",
		"		if !c.ended && !a.delivered[ch] {",
		"		if (!c.ended || true) && !a.delivered[ch] {",
	}}},
	{"complete-told-twice", "Complete reaches every operator once; an Abort heals a lost one, and repeats none.", []edit{{
		"internal/checkpoint/barriers.go", "	if id <= b.complete {", "	if id < b.complete {",
	}}},
	{"abort-told-twice", "Abort reaches every operator once, also the one whose subtask declined.", []edit{{
		"internal/task/barrier.go",
		"	if slices.Contains(t.aborted, id) {\n		return\n	}\n",
		"",
	}}},
	{"failing-operator-ends-telling", "One operator's failure does not keep the others from being told.", []edit{{
		"internal/task/barrier.go",
		"		t.log.Error(\"operator failed to take note of a checkpoint\", \"operator\", op.Name, \"checkpoint\", id, \"event\", what, \"err\", err)\n",
		"		t.log.Error(\"operator failed to take note of a checkpoint\", \"operator\", op.Name, \"checkpoint\", id, \"event\", what, \"err\", err)\n		break\n",
	}}},

	// Order in a subtask.
	{"records-while-preparing", "No record is processed between Begin and the end of the sync phase.", []edit{{
		"internal/task/work.go",
		"	case t.preparing != nil:\n		return t.waits(forPrepare)\n",
		"",
	}}},
	{"barrier-before-batch", "The barrier leaves behind all records that were emitted before it.", []edit{{
		"internal/operator/edge.go",
		"		e.lanes[i].seal()\n		e.lanes[i].push(el)",
		"		e.lanes[i].push(el)",
	}}},
	{"barrier-overtakes-overflow", "The overflow is drained in order, barriers in their place.", []edit{{
		"internal/operator/lane.go",
		"	if len(l.overflow) > 0 || !l.ch.Push(e) {",
		"	if !l.ch.Push(e) {",
	}}},
	{"prepare-not-awaited", "Prepare is awaited before the barrier leaves and the snapshot is taken.", []edit{{
		"internal/task/barrier.go",
		"since: now, waiting: len(t.preparers) + 1}",
		"since: now, waiting: 1}",
	}}},
	{"prepare-error-is-a-decline", "A failed Prepare ends the attempt, it is never only a decline.", []edit{{
		"internal/task/barrier.go",
		"		if err != nil {\n			t.fail(err)\n		}\n		if p.waiting--",
		"		if p.waiting--",
	}}},
	{"ack-before-durable", "The ack is sent when all parts are durable.", []edit{{
		"internal/task/snapshot.go",
		"	if s.waiting--; s.waiting > 0 {",
		"	if s.waiting--; s.waiting > 1 {",
	}}},
	{"sync-failure-acked", "An operator that cannot take its snapshot is a decline.", []edit{{
		"internal/task/snapshot.go",
		"		part, err := op.Op.Snapshot(b)\n		if err != nil {",
		"		part, err := op.Op.Snapshot(b)\n		if false {",
	}}},
	{"async-failure-acked", "A part that could not be written is a decline.", []edit{{
		"internal/task/snapshot.go",
		"	if err != nil && !s.dropped && t.phase < closing {",
		"	if false {",
	}}},
	{"state-object-unknown-is-durable", "An object is durable only when the store says so.", []edit{{
		"internal/statefile/object.go",
		"	err := o.w.Commit()\n	if err != nil {",
		"	err := o.w.Commit()\n	if err != nil && !errors.Is(err, storage.ErrNotWritten) {\n		err = nil\n	}\n	if err != nil {",
	}, {
		"internal/statefile/object.go", "import (\n", "import (\n	\"errors\"\n",
	}}},
	{"snapshot-sees-later-writes", "A page that a snapshot holds is not written in place.", []edit{{
		"internal/statestore/store.go",
		"		if !sn.released.Load() {\n			return true\n		}\n	}\n	return false\n}\n\n// Confirm",
		"	}\n	return false\n}\n\n// Confirm",
	}}},

	{"straddling-segment-not-restored", "Rescaling means reading other ranges: every segment that shares a hash with the subtask's.", []edit{{
		"internal/statestore/restore.go",
		"	if !seg.Range.Overlaps(r.t.s.cfg.Range) {",
		"	if own := r.t.s.cfg.Range; !own.Contains(seg.Range.Lo) {",
	}}},
	{"restore-takes-all-keys", "A subtask restores the keys of its range and no others.", []edit{{
		"internal/statestore/restore.go",
		"	return run.All(ctx, r.t.s.cfg.Range, r.hash, func(e statefile.Entry) error {",
		"	return run.All(ctx, statefile.Everything, r.hash, func(e statefile.Entry) error {",
	}}},

	// The coordinator.
	{"id-recurs", "The next id is above every id before, also of those that were given up.", []edit{{
		"internal/checkpoint/pending.go", "	c.counters.Failed++\n", "	c.counters.Failed++\n	c.next = p.id\n",
	}}},
	{"several-pending", "One checkpoint is pending at a time.", []edit{{
		"internal/checkpoint/trigger.go", "	if len(c.pending) > 0 || c.undecided {", "	if c.undecided {",
	}}},
	{"only-sources-triggered", "A subtask that has only finished inputs gets the trigger by mail.", []edit{{
		"internal/checkpoint/coordinator.go", "	return s.Source || !slices", "	return s.Source || false && !slices",
	}}},
	{"an-ack-not-awaited", "The manifest is written when all acks are there.", []edit{{
		"internal/checkpoint/pending.go", "	if len(p.acks) == len(c.order) {", "	if p.stats.LastAck == 0 && len(p.acks) >= len(c.order)-1 {",
	}}},
	{"complete-not-sent", "After the append, Complete goes to all subtasks.", []edit{{
		"internal/checkpoint/pending.go",
		"	as = append(as, SendComplete{Complete{id, c.cfg.Epoch}})\n",
		"",
	}}},
	{"abort-not-sent", "Every subtask is told of an abort.", []edit{{
		"internal/checkpoint/pending.go",
		"	if p.phase > PhaseEnumerators { // before, no subtask has heard of it",
		"	if false {",
	}}},
	{"commit-before-append", "The append is the commit point: sinks commit after it.", []edit{{
		"internal/checkpoint/pending.go",
		"	return []Action{Append{p.id, p.kind, c.latest, p.uncommitted}}",
		"	c.latest = p.id\n	return []Action{CommitSinks{p.id}, Append{p.id, p.kind, c.latest, p.uncommitted}}",
	}}},
	{"no-timeout", "A checkpoint whose ack never comes expires.", []edit{{
		"internal/checkpoint/pending.go",
		"	return c.abort(now, p, Failure{Reason: Expired})",
		"	return nil",
	}}},
	{"expired-while-appending", "Until decided: no abort.", []edit{{
		"internal/checkpoint/pending.go",
		"	p.timer = false\n	if p.phase == PhaseAppend {\n		return nil\n	}\n",
		"	p.timer = false\n",
	}}},
	{"failures-not-counted", "FailAfter consecutive failures end the attempt.", []edit{{
		"internal/checkpoint/policy.go", "	c.failures++\n", "",
	}}},
	{"failures-count-twice", "Failures count once per id against FailAfter, consecutive.", []edit{{
		"internal/checkpoint/policy.go", "	c.failures++\n", "	c.failures += 2\n",
	}}},
	{"failures-not-consecutive", "Failures count once per id against FailAfter, consecutive.", []edit{{
		"internal/checkpoint/pending.go", "	c.latest, c.ended, c.failures = p.id, now, 0", "	c.latest, c.ended = p.id, now",
	}}},
	{"final-before-all-ended", "The final checkpoint is triggered after all subtasks ended (S2-8 c).", []edit{{
		"internal/checkpoint/coordinator.go",
		"	return len(c.order) > 0 && !slices.ContainsFunc(c.order, func(s *subtask) bool { return !s.ended })",
		"	return slices.ContainsFunc(c.order, func(s *subtask) bool { return s.ended })",
	}}},
	{"final-not-retried", "An aborted final checkpoint is retried at once (S2-8 c).", []edit{{
		"internal/checkpoint/trigger.go",
		"	case c.allEnded():\n		return c.trigger(now, wish{kind: Final})",
		"	case c.allEnded() && c.counters.Failed == 0:\n		return c.trigger(now, wish{kind: Final})",
	}}},
	{"ended-subtask-leaves", "A subtask that ended stays alive until the final checkpoint is committed (S2-8 c).", []edit{{
		"internal/task/life.go",
		"	t.phase = ended\n	t.cfg.Lead.Ended(t.cfg.ID, t.cfg.Epoch)",
		"	t.cfg.Lead.Ended(t.cfg.ID, t.cfg.Epoch)\n	t.stop()",
	}}},
	{"done-before-committed", "The job ends when its last checkpoint is in the log and committed.", []edit{{
		"internal/checkpoint/policy.go",
		"	if last == 0 || !c.isCommitted(last) || c.uncommitted(last) != 0 {",
		"	if last == 0 {",
	}, {
		"internal/cluster/end.go",
		"|| a.works > 0 || a.telling {",
		"|| a.works > 0 && !a.succeeded || a.telling {",
	}}},
	{"uncommitted-disposed", "Until Committed, a checkpoint is not disposable (S1-2).", []edit{{
		"internal/checkpoint/retention.go",
		"		old := x.ID < cut && x.Committed && !x.Pinned",
		"		old := x.ID < cut && !x.Pinned",
	}, {
		"internal/ckptlog/view.go",
		"	case c.Committables && !c.Committed:\n		return",
		"	case false && c.Committed:\n		return",
	}}},

	// Sinks.
	{"abort-drops-committables", "Abort never touches a committable: it is part of every later snapshot (S1-1).", []edit{{
		"internal/operator/sink.go",
		"// Committed implements Operator.\n",
		"func (s *sink[T]) Abort(id checkpoint.ID) error {\n	s.unconfirmed = slices.DeleteFunc(s.unconfirmed, func(c checkpoint.Committable) bool { return c.Prepared == id })\n	return nil\n}\n\n// Committed implements Operator.\n",
	}, {
		"internal/operator/sink.go", "	\"fmt\"\n", "	\"fmt\"\n	\"slices\"\n",
	}}},
	{"abort-drops-records", "Abort never touches a writer: records before barrier id are before barrier id+1 too (S1-1).", []edit{{
		"internal/operator/sink.go",
		"// Committed implements Operator.\n",
		"func (s *sink[T]) Abort(id checkpoint.ID) error {\n	s.filling.Values = s.filling.Values[:0]\n	return nil\n}\n\n// Committed implements Operator.\n",
	}}},
	{"snapshot-of-own-committables", "A sink's snapshot holds every committable not yet confirmed, whatever its id (S1-2).", []edit{{
		"internal/operator/sink.go",
		"func (s *sink[T]) Snapshot(checkpoint.Barrier) (Snapshot, error) {\n	cs := make([]checkpoint.Committable, len(s.unconfirmed))\n	copy(cs, s.unconfirmed)\n",
		"func (s *sink[T]) Snapshot(b checkpoint.Barrier) (Snapshot, error) {\n	var cs []checkpoint.Committable\n	for _, c := range s.unconfirmed {\n		if c.Prepared == b.ID {\n			cs = append(cs, c)\n		}\n	}\n",
	}}},
	{"complete-confirms", "A committable leaves the sink's state only when its commit has returned (S1-2).", []edit{{
		"internal/operator/sink.go",
		"// Committed implements Operator.\n",
		"func (s *sink[T]) Complete(id checkpoint.ID) error { return s.Committed(id) }\n\n// Committed implements Operator.\n",
	}}},
	{"restore-does-not-commit", "A restore commits all that the checkpoint names before leftovers are removed (S1-2).", []edit{{
		"internal/cluster/attempt.go",
		"	if err := x.recoverSinks(ctx, a.epoch, a.lineage, pending); err != nil {",
		"	if err := x.recoverSinks(ctx, a.epoch, a.lineage, nil); err != nil {",
	}, {
		"internal/cluster/attempt.go",
		"		a.restored, pending = r, r.committables\n",
		"		a.restored, pending = r, r.committables\n		_ = pending\n",
	}}},
	{"final-restart-does-not-commit", "A restart from a final checkpoint commits what it names, then exits (S2-8 a).", []edit{{
		"internal/cluster/attempt.go",
		"	if err := x.recoverSinks(ctx, a.epoch, a.lineage, pending); err != nil {",
		"	if a.restored != nil && a.restored.final() {\n		return nil\n	}\n	if err := x.recoverSinks(ctx, a.epoch, a.lineage, pending); err != nil {",
	}}},
	{"leftovers-stay", "Recovery drops what older attempts left, in every attempt.", []edit{{
		"internal/cluster/attempt.go",
		"	if err := x.recoverSinks(ctx, a.epoch, a.lineage, pending); err != nil {",
		"	if a.restored == nil || a.restored.final() || a.epoch.Attempt > 1 {\n	} else if err := x.recoverSinks(ctx, a.epoch, a.lineage, pending); err != nil {",
	}}},
	{"own-committables-committed", "Sinks commit everything up to the id, whatever id it was prepared for (S1-2).", []edit{{
		"internal/cluster/commit.go",
		"			for _, c := range op.Committables {\n",
		"			for _, c := range op.Committables {\n				if c.Prepared != ack.ID {\n					continue\n				}\n",
	}}},
	{"writers-before-recovery", "A restore commits and drops before any writer opens (S1-2).", []edit{{
		"internal/cluster/attempt.go",
		"	if err := x.recoverSinks(ctx, a.epoch, a.lineage, pending); err != nil {\n		return err\n	}\n",
		"	x.env.Go(\"recover late\", func() { _ = x.env.Sleep(ctx, time.Second/4); _ = x.recoverSinks(ctx, checkpoint.Epoch{Generation: a.epoch.Generation, Attempt: a.epoch.Attempt + 1}, a.lineage, pending) })\n",
	}}},
	{"commit-gives-up", "A commit with unknown outcome is retried, it never drops the committable (S1-2).", []edit{{
		"internal/cluster/commit.go",
		"		failed(err)\n		if x.env.Sleep(ctx, delay) != nil {\n			return ended(ctx, err)\n		}",
		"		failed(err)\n		return nil",
	}}},
	{"one-sink-is-all", "Committed is appended only when every sink confirmed.", []edit{{
		"internal/cluster/commit.go",
		"			return fmt.Errorf(\"sink %q: commit %d committables: %w\", spec.Meta.Name, len(cs[node]), err)\n		}\n",
		"			return fmt.Errorf(\"sink %q: commit %d committables: %w\", spec.Meta.Name, len(cs[node]), err)\n		}\n		return nil\n",
	}}},

	// Sources.
	{"held-splits-forgotten", "A split that the enumerator has returned and no reader was handed is part of the checkpoint (S2-7).", []edit{{
		"internal/cluster/publish.go",
		"		g.Splits = append(g.Splits, enum.held[node]...)\n",
		"",
	}}},
	{"assignments-not-held", "From an enumerator's snapshot on, its assignments are held until that reader acked (S2-7).", []edit{{
		"internal/cluster/sources.go", "	if h.holds[subtask] > 0 {\n		return\n	}\n", "",
	}}},
	{"enumerator-not-restored", "The enumerator's state is part of the checkpoint.", []edit{{
		"internal/cluster/sources.go", "		if state != nil {\n			if err := e.Restore", "		if false {\n			if err := e.Restore",
	}}},
	{"position-not-restored", "A source goes on from the offset in the snapshot.", []edit{{
		"internal/operator/source.go",
		"	sp.N, sp.State = p.next.N, p.next.State\n",
		"	sp.State = p.next.State\n",
	}}},
	{"snapshot-amid-poll", "The offset is that of the records emitted: the next to read.", []edit{{
		"internal/operator/source.go",
		"	sp.N, sp.State = p.next.N, p.next.State\n",
		"	sp.N, sp.State = p.next.N+1, p.next.State\n",
	}}},
	{"emits-unreserved", "AtMostOnce: a source emits only below a reservation (S1-8).", []edit{{
		"internal/operator/source.go",
		"	if s.rt.Mode == checkpoint.AtMostOnce {",
		"	if s.rt.Mode == checkpoint.AtMostOnce && false {",
	}}},
	{"reserved-before-logged", "Records wait until the reservation is in the log (S1-8).", []edit{{
		"internal/cluster/reserve.go",
		"	a.reserves.asked = append(a.reserves.asked, reserveRequest{s, token})\n",
		"	x.deliver(a, s, task.Reserved{Token: token})\n	a.reserves.asked = append(a.reserves.asked, reserveRequest{s, token})\n",
	}}},
	{"reservation-ignored", "Recovery starts at the newest reservation, whatever is restored (S1-8 c).", []edit{{
		"internal/cluster/sources.go",
		"ok && r.N > s.N {",
		"ok && false {",
	}}},

	// The log.
	{"takeover-without-nonce", "Every \"exists\" is read back and compared by nonce (S2-2, model 16).", []edit{{
		"internal/ckptlog/takeover.go",
		"		if e.Nonce == f.Nonce {\n			return slot, nil",
		"		if e.Record.Kind() == KindTakeover {\n			return slot, nil",
	}}},
	{"append-without-nonce", "A record of another owner in the slot is a fence (S2-2, model 16).", []edit{{
		"internal/ckptlog/log.go",
		"	case e.Nonce == p.rec.Nonce:",
		"	case e.Nonce == p.rec.Nonce || p.void == nil:",
	}}},
	{"absent-is-failed", "After an unknown outcome, absent on read-back is not \"failed\" (S2-2, model 04).", []edit{{
		"internal/ckptlog/claim.go",
		"		cl.inFlight = true\n		werr := ctx.Err()",
		"		if errors.Is(rerr, storage.ErrNotFound) {\n			return Entry{}, fmt.Errorf(\"%w: %w\", storage.ErrNotWritten, rerr)\n		}\n		werr := ctx.Err()",
	}}},
	{"undecided-is-failed", "Until decided: no abort, no Complete, no other slot (S2-2).", []edit{{
		"internal/cluster/appends.go",
		"	for errors.Is(err, ckptlog.ErrUndecided) && ctx.Err() == nil {",
		"	if errors.Is(err, ckptlog.ErrUndecided) {\n		return storage.ErrNotWritten\n	}\n	for errors.Is(err, ckptlog.ErrUndecided) && ctx.Err() == nil {",
	}}},
	{"given-up-without-list", "Once giving up has begun, what stands in the slot counts only with a list (S2-2, model 19).", []edit{{
		"internal/ckptlog/log.go",
		"	case p.void != nil && (e.Nonce == p.rec.Nonce || e.Nonce == p.void.Nonce):\n		return l.conclude(ctx, p, e)\n",
		"	case p.void != nil && e.Nonce == p.void.Nonce:\n		return l.conclude(ctx, p, e)\n",
	}}},
	{"two-appends-at-once", "One create is outstanding.", []edit{{
		"internal/cluster/appends.go",
		"	x.logCalls.do(func(done func()) {\n		if x.finished {\n			return\n		}\n		x.async(name, func",
		"	new(serial).do(func(done func()) {\n		if x.finished {\n			return\n		}\n		x.async(name, func",
	}}},
	{"tail-probed", "The tail is listed, then climbed by create, never probed from 0 (S2-3, model 18).", []edit{{
		"internal/ckptlog/takeover.go",
		"	if len(slots) > 0 {\n		slot = slots[len(slots)-1] + 1\n	}\n",
		"",
	}}},
	{"restore-point-before-takeover", "A starter reads nothing it acts on before its Takeover is in the log (S2-1, model 02).", []edit{{
		"internal/ckptlog/takeover.go",
		"	if slot, err = c.climb(ctx, slot); err != nil {",
		"	early, _, earlyErr := read(ctx, c.Store, nil)\n	if slot, err = c.climb(ctx, slot); err != nil {",
	}, {
		"internal/ckptlog/takeover.go",
		"	l := &Log{Config: c, view: v, kinds: kinds, next: slot + 1}",
		"	if earlyErr == nil {\n		early.Generation, early.Owner, early.Tail = v.Generation, v.Owner, v.Tail\n		v = early\n	}\n	l := &Log{Config: c, view: v, kinds: kinds, next: slot + 1}",
	}}},
	{"takeover-not-verified", "After the Takeover: list, nothing above mine (S2-3, model 08).", []edit{{
		"internal/ckptlog/takeover.go",
		"	if err := l.Owned(ctx); err != nil {",
		"	if err := error(nil); err != nil {",
	}, {
		"internal/ckptlog/read.go",
		"		if upto != nil && len(slots) > 0 && slots[len(slots)-1] > *upto {",
		"		if false {",
	}}},
	{"takeovers-trimmed", "A Takeover is never deleted: the next slot of a paused owner must not come free (S2-3, model 07).", []edit{{
		"internal/ckptlog/trim.go",
		"		if k == KindTakeover {\n			continue",
		"		if false && k == KindTakeover {\n			continue",
	}}},
	{"genesis-trimmed", "Slot 0 is never deleted.", []edit{{
		"internal/ckptlog/trim.go",
		"		if slot == 0 || slot >= floor {",
		"		if slot >= floor {",
	}}},
	{"floor-forgets-reservations", "A Floor carries all that must survive.", []edit{{
		"internal/ckptlog/trim.go",
		"	if err := l.append(ctx, Floor{State: l.view.clone().State}); err != nil {",
		"	st := l.view.clone().State\n	st.Reservations = nil\n	if err := l.append(ctx, Floor{State: st}); err != nil {",
	}}},
	{"floor-forgets-checkpoints", "A Floor carries all that must survive.", []edit{{
		"internal/ckptlog/trim.go",
		"	if err := l.append(ctx, Floor{State: l.view.clone().State}); err != nil {",
		"	st := l.view.clone().State\n	st.Checkpoints = nil\n	if err := l.append(ctx, Floor{State: st}); err != nil {",
	}}},
	{"floor-forgets-seed", "A Floor carries all that must survive.", []edit{{
		"internal/ckptlog/trim.go",
		"	if err := l.append(ctx, Floor{State: l.view.clone().State}); err != nil {",
		"	st := l.view.clone().State\n	st.HashSeed++\n	if err := l.append(ctx, Floor{State: st}); err != nil {",
	}}},
	{"trimmed-before-floor", "The Floor is in the log before anything below it is deleted.", []edit{{
		"internal/ckptlog/trim.go",
		"	if err := l.append(ctx, Floor{State: l.view.clone().State}); err != nil {",
		"	if err := l.deleteBelow(ctx, l.next); err != nil {\n		return err\n	}\n	if err := l.append(ctx, Floor{State: l.view.clone().State}); err != nil {",
	}}},
	{"reads-below-floor", "Readers ignore what stands below the newest Floor.", []edit{{
		"internal/ckptlog/read.go",
		"		if next == 0 || e.Record.Kind() == KindFloor {",
		"		if next == 0 {",
	}}},
	{"fenced-goes-on", "A fenced coordinator stops; it rolls nothing back and is not retried.", []edit{{
		"internal/cluster/appends.go",
		"	return errors.Is(err, ckptlog.ErrVoided) ||",
		"	return errors.Is(err, ckptlog.ErrFenced) || errors.Is(err, ckptlog.ErrVoided) ||",
	}, {
		"internal/cluster/leader.go",
		"	return errors.Is(err, ckptlog.ErrFenced) || errors.Is(err, connector.ErrPermanent) ||",
		"	return errors.Is(err, connector.ErrPermanent) ||",
	}}},
	{"start-beside-owner", "A start is refused while the owner lives, unless it takes over.", []edit{{
		"internal/cluster/open.go",
		"	case x.opt.Takeover:",
		"	case true:",
	}}},

	// Attempts, names and collection.
	{"attempt-not-counted", "Every attempt has its own number; names are never reused.", []edit{{
		"internal/cluster/attempt.go", "	x.attempts++\n", "",
	}}},
	{"attempt-not-joined", "An attempt begins when nothing of the one before runs any more (S1-3 d).", []edit{{
		"internal/cluster/end.go",
		"!a.ending || !a.closed || !a.stopped ||",
		"!a.ending || !a.closed ||",
	}}},
	{"acks-of-other-attempts", "Acks of another attempt are refused (S1-3).", []edit{{
		"internal/checkpoint/pending.go",
		"	if a.Epoch != c.cfg.Epoch || c.subtasks[a.Subtask] == nil {",
		"	if c.subtasks[a.Subtask] == nil {",
	}, {
		"internal/cluster/lead.go",
		"		if l.x.att == l.a && e == l.a.epoch {",
		"		if l.x.att == l.a {",
	}}},
	{"mail-of-other-attempts", "Mail of another attempt is refused.", []edit{{
		"internal/task/life.go",
		"	if e == t.cfg.Epoch {\n		return true",
		"	if true || e == t.cfg.Epoch {\n		return true",
	}}},
	{"restart-before-decided", "A restart chooses what to restore only when no append is undecided.", []edit{{
		"internal/cluster/end.go",
		"!a.ending || !a.closed || !a.stopped ||",
		"!a.ending || !a.stopped ||",
	}}},
	{"names-without-random", "Names are never reused.", []edit{{
		"internal/cluster/publish.go",
		"	n := x.env.Nonce()\n	return checkpoint.ObjectName(",
		"	var n [16]byte\n	return checkpoint.ObjectName(",
	}}},
	{"manifest-unknown-is-durable", "The manifest is durable before the record names it.", []edit{{
		"internal/cluster/publish.go",
		"		if err != nil {\n			return fmt.Errorf(\"write manifest %s: %w",
		"		if err != nil && errors.Is(err, storage.ErrNotWritten) {\n			return fmt.Errorf(\"write manifest %s: %w",
	}}},
	{"collects-undecided", "Of its own generation a collector deletes only objects of ids that it has decided (S2-5).", []edit{{
		"internal/checkpoint/garbage.go",
		"	case o.Epoch.Attempt == own.Attempt && v.Decided != nil && v.Decided(o.ID):",
		"	case o.Epoch.Attempt == own.Attempt:",
	}}},
	{"collects-of-higher-generations", "Never an object of a higher generation, and ownership is proved after the list (S2-5).", []edit{{
		"internal/checkpoint/garbage.go",
		"	case o.Epoch.Generation > own.Generation:\n		return \"\", false // of a coordinator that has fenced this one\n",
		"	case o.Epoch.Generation > own.Generation:\n		return \"higher\", true\n",
	}, {
		"internal/cluster/collect.go",
		"		x.logCall(\"prove ownership of\", (*ckptlog.Log).Owned, func(err error) {\n			if err != nil || x.att != a {\n				a.collecting, a.littered = false, true\n				x.littered = x.littered || x.att != a // the next attempt sees to it\n				return\n			}\n			x.readHeld(a, listing, decided)\n		})\n",
		"		x.readHeld(a, listing, decided)\n",
	}}},
	{"deletes-before-disposing", "Dispose is appended first, objects are deleted after (S2-5).", []edit{{
		"internal/cluster/collect.go",
		"	x.appendRecord(ckptlog.Dispose{IDs: ids}, func(err error) {\n",
		"	var early []string\n	for _, id := range ids {\n		early = append(early, x.objects[id].names()...)\n	}\n	x.deleteObjects(early)\n	x.appendRecord(ckptlog.Dispose{IDs: ids}, func(err error) {\n",
	}}},
	{"disposed-not-deleted", "What only a disposed checkpoint holds is deleted.", []edit{{
		"internal/cluster/collect.go",
		"		x.deleteObjects(names)\n	})\n}\n\n// deleteObjects",
		"		_ = names\n	})\n}\n\n// deleteObjects",
	}}},

	// Timers.
	{"timers-not-snapshotted", "A timer is state: it is in the checkpoint.", []edit{{
		"internal/statestore/snapshot.go",
		"		w := newTableWriter(ctx, sn, v, p)\n",
		"		if v.t.timers != nil {\n			continue\n		}\n		w := newTableWriter(ctx, sn, v, p)\n",
	}}},
	{"restored-timers-do-not-fire", "What falls due while nothing runs fires after the restore.", []edit{{
		"internal/statestore/restore.go", "	if t.timers != nil {\n		t.rebuildTimers()", "	if false {\n		t.rebuildTimers()",
	}}},
	{"fired-timer-stays", "A timer fires once.", []edit{{
		"internal/statestore/timers.go", "	t.Delete()\n	return t, e.at, true", "	return t, e.at, true",
	}}},
	{"replaced-timer-fires", "A timer that was set anew does not fire at the time that it was set for before.", []edit{{
		"internal/statestore/timers.go", "*(*int64)(t.sp.tail(p, slot, off)) != e.at || ", "",
	}}},
	{"ended-operator-fires", "An operator that had ended before the checkpoint starts ended.", []edit{{
		"internal/task/task.go", "ok && (op.Restore == nil || !op.Restore.Finished) {", "ok {",
	}}},

	// What the user does.
	{"stop-leaves-subtasks", "A job that stops ends when no subtask of it runs any more.", []edit{{
		"internal/cluster/end.go", "|| !a.stopped || a.works > 0", "|| !a.stopped && !x.stopping || a.works > 0",
	}}},
	{"stop-leaves-commits", "A job that stops ends when no work of it calls a sink any more.", []edit{{
		"internal/cluster/end.go", "|| !a.stopped || a.works > 0", "|| !a.stopped || a.works > 0 && !x.stopping",
	}}},
	{"stop-forgets-the-lock", "A job that is stopped while it starts gives the lock back.", []edit{{
		"internal/cluster/leader.go", "	case a == nil && x.opening:", "	case false:",
	}}},
	{"from-ignores-commits", "Nobody goes back behind what a sink has committed without accepting repeats.", []edit{{
		"internal/cluster/open.go", "	if !x.opt.AcceptRepeats && (", "	if false && (",
	}}},
	{"fresh-start-crossed", "Nobody goes back across a fresh start in AtMostOnce without accepting repeats: the reservations are forgotten.", []edit{{
		"internal/cluster/open.go", "x.opt.Mode == checkpoint.AtMostOnce && x.view.AcrossFresh(from)", "false",
	}}},
	{"left-branch-not-committed", "What the newest checkpoint of a branch names is committed before the branch is left.", []edit{{
		"internal/cluster/open.go", "	if !ok || latest.Committed || !latest.Committables {", "	if true {",
	}}},
	{"newest-of-any-lineage", "A job goes on from the newest checkpoint of the lineage that is continued.", []edit{{
		"internal/ckptlog/view.go", "		if v.Checkpoints[i].Lineage == v.Lineage {", "		if true {",
	}}},
	{"fresh-start-not-logged", "A fresh start is a lineage of its own.", []edit{{
		"internal/cluster/open.go", "	return x.branch(ctx, ckptlog.Restore{})", "	return nil",
	}}},
	{"pinned-disposed", "What is pinned is never disposed of.", []edit{{
		"internal/checkpoint/retention.go",
		"		old := x.ID < cut && x.Committed && !x.Pinned",
		"		old := x.ID < cut && x.Committed",
	}}},
	{"floor-forgets-pins", "A Floor carries all that must survive.", []edit{{
		"internal/ckptlog/trim.go",
		"	if err := l.append(ctx, Floor{State: l.view.clone().State}); err != nil {",
		"	st := l.view.clone().State\n	st.Pins = nil\n	if err := l.append(ctx, Floor{State: st}); err != nil {",
	}}},
}

// otherKeepers are, by mutation, edits that break what else keeps its rule: with
// the mutation alone, nothing could be seen from outside. It is the rule that is
// tested and not these, since a seed that notices all together must find nothing
// when only these are broken.
var otherKeepers = map[string][]edit{
	// The log refuses to dispose of it too.
	"pinned-disposed": {{
		"internal/ckptlog/view.go", "	case v.Pinned(id):\n		return \"it is pinned\"", "	case false:\n		return \"it is pinned\"",
	}},
	"newer-does-not-subsume": abortsComeLate,
	// One subtask of two gives every third id up, so that its barriers are missing.
	"overtaken-barrier-begins": slices.Concat(abortsComeLate, []edit{{
		"internal/task/work.go",
		"		t.apply(t.barriers.Barrier(ch.index, e.Barrier, now))",
		"		if t.cfg.ID.Index == 1 && e.Barrier.ID%3 == 0 {\n			t.apply(t.barriers.Fail(e.Barrier.ID, checkpoint.Busy, \"every third\"))\n			return\n		}\n		t.apply(t.barriers.Barrier(ch.index, e.Barrier, now))",
	}, {
		"internal/task/work.go", "	\"github.com/staunchdev/staunch/internal/element\"\n",
		"	\"github.com/staunchdev/staunch/internal/checkpoint\"\n	\"github.com/staunchdev/staunch/internal/element\"\n",
	}}),
}

// abortsComeLate breaks what else gives an older id up where a newer one comes:
// the cancel marker in the channel ahead of the newer barrier does nothing, and
// the coordinator tells of aborted ids behind the next complete one.
var abortsComeLate = []edit{{
	"internal/checkpoint/barriers.go",
	"	if b.isAligning(id) {\n		b.counters.Aborted++\n	}\n	return b.giveUp(id)\n}\n\n// EndOfInput",
	"	return nil\n}\n\n// EndOfInput",
}, {
	"internal/checkpoint/coordinator.go", "	counters CoordinatorCounters\n}\n", "	counters CoordinatorCounters\n	late     []Action\n}\n",
}, {
	"internal/checkpoint/pending.go",
	"		as = append(as, SendAbort{Abort{p.id, c.cfg.Epoch, c.latest, f.Reason}})",
	"		c.late = append(c.late, SendAbort{Abort{p.id, c.cfg.Epoch, c.latest, f.Reason}})",
}, {
	"internal/checkpoint/pending.go",
	"	as = append(as, SendComplete{Complete{id, c.cfg.Epoch}})\n",
	"	as = append(as, SendComplete{Complete{id, c.cfg.Epoch}})\n	as, c.late = append(as, c.late...), nil\n",
}}
