package file

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/connectortest"
)

func TestSourceConforms(t *testing.T) {
	for _, follow := range []bool{false, true} {
		t.Run(fmt.Sprintf("follow=%v", follow), func(t *testing.T) {
			dir := t.TempDir()
			connectortest.Source(t,
				func(*testing.T) connector.Source[item] {
					s := NewSource(dir, codec.JSON[item]())
					s.Follow, s.PollEvery = follow, time.Millisecond
					return s
				},
				func(t *testing.T, n int) {
					for f := range 3 {
						content := ""
						for i := f; i < n; i += 3 {
							content += fmt.Sprintf("{\"n\":%d,\"text\":\"t\"}\r\n\n", i)
						}
						writeFile(t, filepath.Join(dir, fmt.Sprintf("%d.jsonl", f)), content)
					}
				})
		})
	}
}

func TestSourceWithoutNewlineAtTheEndConforms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	connectortest.Source(t,
		func(*testing.T) connector.Source[string] { return Lines(path) },
		func(t *testing.T, n int) {
			content := "first"
			for i := range n - 1 {
				content += fmt.Sprintf("\nline %d", i)
			}
			writeFile(t, path, content)
		})
}
