package cluster

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// repeatsPause is how long something that was logged is not logged again.
const repeatsPause = time.Minute

// repeats gathers what fails again and again in the same way, as everything does
// while a store is away: the first is logged at once, the others by one line a
// minute that says how many they were. Work off the loop logs too.
type repeats struct {
	mu   sync.Mutex
	said map[string]*repeated
}

type repeated struct {
	at   int64 // of the last line
	more int   // since then
}

// again says whether text is to be logged now, and how many like it were not
// since the last time.
func (r *repeats) again(now int64, text string) (say bool, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := shape(text)
	s := r.said[key]
	if s != nil && time.Duration(now-s.at) < repeatsPause {
		s.more++
		return false, 0
	}
	if s != nil {
		more = s.more
	}
	if r.said == nil {
		r.said = map[string]*repeated{}
	}
	for k, old := range r.said { // what has not come again for long is forgotten
		if time.Duration(now-old.at) >= 2*repeatsPause && old.more == 0 {
			delete(r.said, k)
		}
	}
	r.said[key] = &repeated{at: now}
	return true, more
}

// shape is a text without what differs each time it comes: names of objects,
// ids and sizes are words with digits.
func shape(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		if strings.ContainsAny(w, "0123456789") {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

// sayGathered logs, unless the same was logged within the last minute. What
// decides that is text and why; about may differ.
func (x *Execution) sayGathered(level slog.Level, text, why string, about ...any) {
	say, more := x.repeats.again(x.env.Now(), text+": "+why)
	if !say {
		level = slog.LevelDebug
	}
	if more > 0 {
		about = append(about, "more", more) // like it, since it was logged last
	}
	x.log.Log(context.Background(), level, text, about...)
}

// warn logs that something under ctx has failed and what becomes of it. That
// ctx has ended is no failure: it was we who ended it.
func (x *Execution) warn(ctx context.Context, text string, err error, about ...any) {
	about = append(about, "err", err)
	if cancelled(ctx, err) {
		x.log.Debug(text, about...)
		return
	}
	x.sayGathered(slog.LevelWarn, text, err.Error(), about...)
}
