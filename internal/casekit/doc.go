// Package casekit has what the tests of cases from practice (TestCase_*) are
// made of: a scripted source, gates, a store whose calls fail on command, a
// transactional log, taps on operators, and a recorder of what a run tells.
//
// Everything in it is made for testing/synctest: whoever waits is blocked on a
// channel, so that the clock of a bubble moves on.
package casekit
