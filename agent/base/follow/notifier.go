package follow

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Notifier wakes readers when a file in one of their folders changes. One Notifier serves the whole
// process, because the kernel limits the inotify instances of a user.
//
// The goroutine in Run owns the event queue; mu guards the subscriptions. A wake-up is a hint:
// readers also poll, so a lost event only costs a delay.
type Notifier struct {
	watcher *fsnotify.Watcher
	log     *slog.Logger

	mu      sync.Mutex
	waiting map[string]map[chan struct{}][]string // by folder: the files; empty: all
}

// NewNotifier returns a Notifier that watches nothing yet. The error names the kernel's limit if
// that is the cause. Without a Notifier readers poll.
func NewNotifier(log *slog.Logger) (*Notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch for file changes: %w", err)
	}
	return &Notifier{watcher: w, log: log, waiting: map[string]map[chan struct{}][]string{}}, nil
}

// Run delivers wake-ups until ctx is done, then closes the watcher.
func (n *Notifier) Run(ctx context.Context) {
	defer n.watcher.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case ev, ok := <-n.watcher.Events:
			if !ok {
				return
			}
			n.wake(filepath.Dir(ev.Name), filepath.Base(ev.Name))
			n.wake(ev.Name, "") // the folder itself was removed or renamed
		case err, ok := <-n.watcher.Errors:
			if !ok {
				return
			}
			// An overflow only reports that events were lost: wake everybody.
			n.log.Debug("file change events lost", "err", err)
			n.wakeAll()
		}
	}
}

// Subscribe returns a channel that receives after something in folder changed, or only after one of
// the named files changed, and a function that ends the subscription.
func (n *Notifier) Subscribe(folder string, files ...string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	return ch, n.Wake(ch, folder, files...)
}

// Wake is like Subscribe, but with a channel that has room for one wake-up and may serve several
// folders.
func (n *Notifier) Wake(ch chan struct{}, folder string, files ...string) (cancel func()) {
	folder = filepath.Clean(folder)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[folder] == nil {
		n.waiting[folder] = map[chan struct{}][]string{}
		if err := n.watcher.Add(folder); err != nil {
			n.log.Debug("no change events, polling instead", "folder", folder, "err", err)
		}
	}
	n.waiting[folder][ch] = files
	return func() { n.unsubscribe(folder, ch) }
}

func (n *Notifier) unsubscribe(folder string, ch chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiting[folder], ch)
	if len(n.waiting[folder]) == 0 {
		delete(n.waiting, folder)
		_ = n.watcher.Remove(folder) // fails harmlessly if the folder is gone
	}
}

// wake wakes those that wait for a file in folder, or all if the file is unknown.
func (n *Notifier) wake(folder, file string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ch, files := range n.waiting[folder] {
		if file != "" && len(files) > 0 && !slices.Contains(files, file) {
			continue
		}
		select {
		case ch <- struct{}{}:
		default: // a wake-up is already pending
		}
	}
}

func (n *Notifier) wakeAll() {
	n.mu.Lock()
	folders := slices.Collect(maps.Keys(n.waiting))
	n.mu.Unlock()
	for _, f := range folders {
		n.wake(f, "")
	}
}
