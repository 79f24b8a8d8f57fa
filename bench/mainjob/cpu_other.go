//go:build !linux

package main

import "time"

// userTime and threadTime are not known here.
func userTime() time.Duration   { return 0 }
func threadTime() time.Duration { return 0 }
