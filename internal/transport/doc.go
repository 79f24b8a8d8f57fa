// Package transport carries elements between the subtasks of one process: a
// channel is a Ring with one producer and one consumer, and needs no lock.
//
// Blocking a channel is not taking from its ring: what the producer sends is
// still received until the ring is full, and only then the producer stalls.
package transport
