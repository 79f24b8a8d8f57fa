// Package ckptlog is the log of a job's history: small immutable records, one
// object each, in the store that holds the job's state. Whoever writes it by
// the rules below owns the job, and there is no other fence.
//
// A record is at slot n if the object log/n holds it. Slots are filled in order
// by conditional creates. The rules, which an exhaustive model has shown to be
// enough (and each of them to be needed):
//
//  1. One create is outstanding at a time. Each record carries a nonce of its
//     own; "exists" and unknown outcomes are read back and compared by it.
//  2. While an outcome is undecided the same record is repeated in the same
//     slot; or a Void is tried there, and whichever of the two is then found, a
//     list has to show that nothing stands above it. Until then nothing else is
//     written.
//  3. A starter creates its Takeover, then reads everything below, then lists:
//     only if nothing stands above its Takeover may it act on what it read.
//  4. Trimming appends a Floor that carries all that must survive, then deletes
//     what is below it, ascending; never slot 0, never a Takeover.
//  5. Readers ignore what stands below the newest Floor. That the log is empty
//     is proved only by winning slot 0.
//  6. A fenced owner stops. It rolls nothing back.
//
// All code here blocks in calls of the store and in Config.Wait, starts no
// goroutine and reads no clock, so that a simulator can run several owners as
// coroutines that switch there.
package ckptlog
