package engine

// subscriber is a reader of frames; its channel is closed under the sampler's
// mutex only.
type subscriber struct {
	frames chan Frame
}

// Subscribe returns a channel that gets each complete frame once, and a
// function that ends the subscription. The channel is closed then, or when the
// sampler ends. A reader that falls more than buffer frames behind loses the
// oldest, so that it can't hold up the sampling.
func (s *Sampler) Subscribe(buffer int) (frames <-chan Frame, cancel func()) {
	sub := &subscriber{frames: make(chan Frame, max(buffer, 1))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		close(sub.frames)
		return sub.frames, func() {}
	}
	s.subscribers[sub] = struct{}{}
	return sub.frames, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.subscribers[sub]; ok {
			delete(s.subscribers, sub)
			close(sub.frames)
		}
	}
}

// publish gives the frame to the subscribers without waiting for them.
func (s *Sampler) publish(frame Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subscribers {
		for sent := false; !sent; {
			select {
			case sub.frames <- frame:
				sent = true
			default:
				select { // full: make room
				case <-sub.frames:
				default:
				}
			}
		}
	}
}
