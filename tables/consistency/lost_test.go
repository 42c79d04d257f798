package consistency

import (
	"testing"
	"time"
)

var two = Options{Model: SSP(1), Workers: 2, Shards: 2, Again: time.Second, Patience: time.Minute}

// TestAShardIsNotOpenBeforeItHasWhatIsComplete: were a worker begun again before that, other shards would count its
// clocks twice.
func TestAShardIsNotOpenBeforeItHasWhatIsComplete(t *testing.T) {
	t.Parallel()
	k := NewBookkeeper(two, []Client{1, 2}, func(w Worker) Client { return Client(w) + 1 })
	for s := range 2 {
		for w := range Worker(2) {
			k.Step(Have{s, 1, w, 1, 3}, 0)
		}
	}
	place := func(Worker) Client { return 2 }
	k.ShardLost(0, place)
	k.Step(Left{1, 0, 2}, 0)
	k.Step(Left{2, 0, 2}, 0)
	begun := 0
	for _, m := range k.ClientLost(1, place) {
		if m.Begin != nil {
			begun++
		}
	}
	if begun != 2 || k.Complete() != 0 {
		t.Errorf("%d shards go back to the snapshot, complete are %d", begun, k.Complete())
	}
}

// TestAnEarlierLifeIsNotFolded: a shard that is begun anew knows the lives of workers.
func TestAnEarlierLifeIsNotFolded(t *testing.T) {
	t.Parallel()
	o := two
	o.Shards = 1
	from := &Snapshot[float64]{Age: 6, Values: map[Row]float64{}, Next: map[Worker]Applied{0: {1, 6}, 1: {1, 6}}}
	lives := []Restart{{Worker: 0, Life: 2, Clock: 6, On: 2}, {Worker: 1, Life: 1}}
	s := NewShard(Beginning{Epoch: 2, Age: 6, Lives: lives}, o, numbers{}, from)
	s.Step(Complete{Age: 9}, 0)
	batch := func(w Worker, life Life, number int, x float64) {
		s.Step(Batch[float64]{Client: Client(life), Worker: w, Life: life, Clock: 6, Number: number, Ends: true,
			Updates: []Update[float64]{{0, x}}}, 0)
	}
	batch(1, 1, 7, 1)
	batch(0, 1, 7, 100) // of a client that was taken for lost
	batch(0, 2, 1, 10)
	if got := s.Snapshot().Values[0]; got != 11 || s.Age() != 7 {
		t.Errorf("clock 6 is %v, want 11, of the age %d", got, s.Age())
	}
}

// TestALifeGoesByItsEra: after all have gone back, a worker is not ahead by what was complete before.
func TestALifeGoesByItsEra(t *testing.T) {
	t.Parallel()
	o := two
	o.Model = BSP()
	c := NewClient(1, o, numbers{})
	c.Step(Assignment{Client: 1, Restart: Restart{Worker: 0, Life: 1}}, 0)
	c.Step(Complete{Age: 9}, 0)
	c.Step(Assignment{Client: 1, Restart: Restart{Worker: 0, Life: 2, Clock: 6}, Complete: Complete{Era: 1, Age: 6}}, 0)
	n := 0
	for ; c.MayBegin(0, 0) && n < 9; n++ {
		c.Finish(0, 0)
	}
	if n != 1 {
		t.Errorf("under bsp it does %d clocks that no other has begun", n)
	}
}

// TestALateSnapshotIsTakenAllTheSame: one of the present age is made at once, and one that was passed is given up.
func TestALateSnapshotIsTakenAllTheSame(t *testing.T) {
	t.Parallel()
	s := NewShard(Beginning{Epoch: 1}, Options{Workers: 1, Shards: 1}, numbers{}, nil)
	for c := range Clock(3) {
		s.Step(Batch[float64]{Client: 1, Life: 1, Clock: c, Number: int(c) + 1, Ends: true}, 0)
	}
	s.Step(Complete{Age: 3}, 0)
	if out := s.Step(SaveAt{1, 3}, 0); len(out) != 1 || out[0].Save == nil || out[0].Save.Age != 3 {
		t.Errorf("%+v for the present age", out)
	}
	if out := s.Step(SaveAt{1, 2}, 0); len(out) != 1 || out[0].ToBookkeeper != (Passed{0, 1, 2}) {
		t.Errorf("%+v for one that was passed", out)
	}
}

// TestTheBoundHoldsOverLives: what a worker has added in an earlier life, and not everyone has seen, counts.
func TestTheBoundHoldsOverLives(t *testing.T) {
	t.Parallel()
	o := Options{Model: VAP(3, false), Workers: 1, Shards: 1, Again: time.Second}
	s := NewShard(Beginning{Epoch: 1}, o, numbers{}, nil)
	s.Step(Read{Client: 9, Watch: 1}, 0)
	s.Step(Batch[float64]{Client: 1, Life: 1, Number: 1, Ends: true, Updates: []Update[float64]{{0, 3}}}, 0)
	again := Restart{Life: 2, Clock: 1, On: 2}
	s.Step(again, 0)
	c := NewClient(2, o, numbers{})
	c.Step(Assignment{Client: 2, Restart: again}, 0)
	if c.Inc(0, 0, 3, 0) {
		t.Error("3 are not seen by client 9, and 3 more are admitted within 3")
	}
	for _, out := range s.Step(Seen{Client: 9, Watch: 1, Version: 1}, 0) {
		if out.ToClient != nil && out.ToClient.To == 2 {
			c.Step(out.ToClient.Message, 0)
		}
	}
	for _, out := range s.Tick(time.Minute) {
		if out.ToClient != nil && out.ToClient.To == 2 {
			c.Step(out.ToClient.Message, 0)
		}
	}
	if !c.Inc(0, 0, 3, 0) {
		what, _ := c.Waits(0)
		t.Error("all have seen it, and it waits for", what)
	}
}
