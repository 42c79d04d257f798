package consistency

// onSaveAt notes that a snapshot of an age is wanted; one of the present age is made at once.
func (s *Shard[V]) onSaveAt(m SaveAt) []Command[V] {
	switch {
	case m.Epoch != s.epoch || m.Age <= s.saved || s.saving == m.Age:
	case m.Age > s.age:
		s.saveAt[m.Age] = true
	case m.Age == s.age:
		s.saving = m.Age
		return []Command[V]{{Save: s.Snapshot()}}
	default:
		return []Command[V]{{ToBookkeeper: Passed{s.id, s.epoch, m.Age}}}
	}
	return nil
}

// SnapshotKept notes that a snapshot is where a loss of the shard leaves it.
func (s *Shard[V]) SnapshotKept(age Clock) []Command[V] {
	s.saved = max(s.saved, age)
	return []Command[V]{{ToBookkeeper: Saved{Shard: s.id, Epoch: s.epoch, Age: s.saved}}}
}

// Snapshot returns the shard's rows as they are after exactly the clocks before its age.
func (s *Shard[V]) Snapshot() *Snapshot[V] {
	n := &Snapshot[V]{Age: s.age, Values: map[Row]V{}, Next: map[Worker]Applied{}}
	for k, r := range s.rows {
		n.Values[k] = plantedPure(&r.pure, &r.visible).lend()
	}
	for w, t := range s.from {
		n.Next[Worker(w)] = Applied{Life: t.Life, Number: s.endOf(t)}
	}
	return n
}

// Approximate returns the rows as they are seen, with what is ahead (LazyTable, section 3.3); under an exact model that
// is nothing.
func (s *Shard[V]) Approximate() map[Row]V {
	values := map[Row]V{}
	for k, r := range s.rows {
		if values[k] = r.pure.lend(); len(r.ahead) > 0 && !s.pureOnly() {
			values[k] = r.visible.lend()
		}
	}
	return values
}
