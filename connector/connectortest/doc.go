// Package connectortest is the conformance suite of sources and sinks. What
// passes it keeps the promises that the engine builds exactly-once upon.
package connectortest
