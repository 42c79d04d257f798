package executor

import (
	"errors"
	"sync"
)

// Shared holds values that tasks of one process share, such as the small side
// of a join or the rows of a cached partition: each is made once, by the first
// task that needs it, and the least recently used are evicted.
type Shared struct {
	// Room is how many bytes of values are kept; 0 is DefaultShared.
	Room   int64
	mu     sync.Mutex
	values map[string]*sharedValue
	bytes  int64
	uses   uint64
}

// DefaultShared is how many bytes of values are kept by default.
const DefaultShared = 1 << 30

type sharedValue struct {
	once  sync.Once
	value any
	err   error
	bytes int64
	used  uint64
	// version distinguishes values of one name.
	version string
}

func (s *Shared) get(name, version string, bytes int64, make func() (any, error)) (any, error) {
	if bytes > s.room() {
		return make() // it is larger than all values together may be
	}
	for {
		v, mine := s.entry(name, version, bytes), false
		v.once.Do(func() {
			mine, v.err = true, errPanicked // unless make returns
			v.value, v.err = make()
		})
		if v.err == nil {
			return v.value, nil
		}
		if s.forget(name, v); mine { // the others try themselves: an executor that ends fails what its tasks make
			return nil, v.err
		}
	}
}

func (s *Shared) entry(name, version string, bytes int64) *sharedValue {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	v := s.values[name]
	if v != nil && v.version != version {
		s.bytes -= v.bytes
		delete(s.values, name)
		v = nil
	}
	if v == nil {
		if s.values == nil {
			s.values = map[string]*sharedValue{}
		}
		v = &sharedValue{bytes: bytes, version: version}
		s.makeRoom(bytes)
		s.values[name] = v
		s.bytes += bytes
	}
	v.used = s.uses
	return v
}

func (s *Shared) room() int64 {
	if s.Room == 0 {
		return DefaultShared
	}
	return s.Room
}

// makeRoom evicts the least recently used values; s.mu is held.
func (s *Shared) makeRoom(bytes int64) {
	for s.bytes+bytes > s.room() && len(s.values) > 0 {
		var oldest string
		for name, v := range s.values {
			if o := s.values[oldest]; o == nil || v.used < o.used {
				oldest = name
			}
		}
		s.bytes -= s.values[oldest].bytes
		delete(s.values, oldest)
	}
}

// errPanicked is the error of a value whose maker has panicked.
var errPanicked = errors.New("the task that was to make it has panicked")

func (s *Shared) forget(name string, v *sharedValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[name] == v {
		s.bytes -= v.bytes
		delete(s.values, name)
	}
}
