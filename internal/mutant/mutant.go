// Package mutant names the bugs that the simulator can plant, so that a test
// can prove that each of them would be noticed. They are there only in a build
// with the tag "mutants": without it On is false for all of them, and the
// compiler leaves them out.
//
// It owns names only and must not import anything.
package mutant

// Bug is a rule of the engine that is broken on purpose.
type Bug int

// The bugs, by the numbers that the simulator's command line uses.
const (
	None Bug = iota

	LateCountDropped  // rows folded between the stop command and its arrival are not counted
	MergedTwice       // a partial result that arrives twice is merged twice
	StaleEpoch        // a report from an older epoch is accepted
	CursorStuck       // a split's cursor does not advance after a merge
	BelowFloor        // a step is cut while a split is below the floor
	MovedCountedTwice // a moved split is folded by its old and its new owner
	NoHashCheck       // a fetched split is taken without comparing its hash
	UnboundedWait     // a wait has no bound
	TermUnchecked     // what was done for an earlier life of the job is accepted
	JournalTwice      // what was committed before a restart is applied twice
	LostCounted       // rows of a split that was lost count as merged
	UncommittedResume // a restarted job goes on from a step that was not committed
	StaleState        // an executor goes on from what it has of a split's state, merged or not
	LeaseTwice        // two results of one piece are merged

	// When a step ends.
	RatioIgnored       // R_s is not looked at
	MissingIgnored     // a step goes on however much is missing
	FloorUnbounded     // the wait for the floor is bounded by StepTimeout
	CollectUnbounded   // collecting is bounded by StepTimeout
	FloorSkipped       // splits below the floor are given up at once
	StopUnsent         // the stop command is never sent
	RequestIgnored     // a step is cut before any task has finished
	RatioOnce          // R_s is looked at only when the first task finishes
	StopTwice          // the stop command is sent with every report after it
	LostInRatio        // the counts of a lost executor stay in R_p
	CollectSkipped     // what has not arrived when a step is cut is given up at once
	TerminationIgnored // a step in which nothing is left to read waits for its bound
	WholeGoesOn        // bsp goes on without what was lost
	RecoverForgotten   // what is missing is not handed out again
	RequestByReport    // any report counts as a finished task
	DroppedUncounted   // rows that were folded in vain are not counted
	DroppedTwice       // they are counted when they are reported, and when they arrive

	// What is reported and merged.
	ConstantNEff    // N_eff is the number of rows
	NEffByAll       // N_eff is weighted by all splits, missing ones too
	ShareByLive     // the share that is reported leaves out missing splits
	CountUnchecked  // an accumulator whose count is not the reported one is merged
	TermRemoved     // epochs do not begin with the term of the job's life
	AttemptOnly     // the attempt alone reports whether a report is current
	TwoFetches      // a split that is on its way is fetched a second time
	FetchedUnnamed  // a damaged copy is reported as sound, under its own hash
	MissingUnnamed  // the report names no missing split
	WeightsIgnored  // N_eff goes by rows where results go by weights
	CoverageSummed  // what leased pieces say that they folded is that of the last one only
	StateForgotten  // the row state of a split is not kept when it was merged
	ReportHalved    // an executor reports half of what it has processed
	StopAnyStep     // a stop command stops whatever runs
	LimitIgnored    // a batch folds all rows
	DeadlineLearned // deadline cuts at the time of the first step for ever
	AutoStuck       // auto never changes the ratio

	// Data prioritization.
	ExchangeAll        // every split moves after every step
	CursorCapped       // a cursor does not wrap round, but begins anew
	PassAdvances       // an evaluation pass advances the cursors
	TimesByMost        // process times are the most, not the least
	LiteralUnthrifty   // the threshold of process times is not looked at
	PaperUnguarded     // a split swaps again before its last swap could act
	RateUncooled       // a split moves again within its cool-down
	MoveAtOnce         // a move takes effect in the middle of a step
	ReplicaForgotten   // a replica is fetched again
	CursorMoved        // a moved split begins at its first row
	FixedCursorsMove   // cursors move although they are off
	WrongPack          // what a step merged goes to the first pack's ledger
	RestoreWithoutPack // after a restart only the first pack's progress is restored

	// Leases.
	LeaseEternal   // a lease never expires, nor is overdue
	PieceForgotten // a piece whose holder is lost is not granted again
	IncludeAll     // an executor hands in all that it has folded
	LeaseRepeated  // an agent folds leases that come twice twice
	AwaitedForEver // a result that was asked for is waited for without end
	GetterAwaited  // a copy that was asked for is waited for without end

	// Placement and retry.
	HolderKept       // a lost executor still counts as a holder
	RetryUnbounded   // failures are not counted
	RetryNeverReset  // failures are not forgotten when a split succeeds
	RetrySameAgain   // a split goes back to the executor that failed with it
	ExclusionNever   // an executor that fails often is not excluded
	ExclusionForEver // an exclusion never ends
	ExcludedUsed     // an excluded executor is given splits
	DrainedEarly     // an executor is said to be drained while it has splits
	DrainingUsed     // a draining executor is given splits
	DrainForgotten   // splits that could not be moved at once stay
	DrainedAway      // an absent executor is reported drained at once, and admitted later
	DamagedFromPeer  // a split that arrived damaged is fetched from a peer again
	ReadyEarly       // a pack is open before all its splits are held
	NewcomerIdle     // an executor that joins late gets nothing
	ForeignPlanTaken // an executor with another plan takes part
	UngatheredStart  // the job begins before its executors have joined
	HoldingsMixed    // a holder of a split of one pack counts as one of all packs

	// Actions.
	TaskCountedTwice  // a task that ends twice counts twice
	TaskForgotten     // the tasks of a lost executor are not given again
	TaskOfOlderCall   // a result of an earlier action is taken
	TaskOverload      // an executor is given all tasks at once
	SpeculateOnSame   // a second attempt goes to the slow executor
	SpeculateAll      // every task is attempted as often as there are slots
	SpeculateNever    // slow tasks are not attempted a second time
	TaskRetriedAlways // a failing task is tried without end
	TaskRetriedNever  // a task that fails once fails the job
	TaskSameExecutor  // a failed task goes back to the executor that failed with it
	LostInputRetried  // a task whose input is gone is tried again
	HolderIgnored     // tasks go to any executor, whichever holds their split
	HungKept          // a task that does not get on is waited for without end
	HungEarly         // it is given up at a tenth of its time
	HungUnwoken       // no wake-up is requested for the end of its time
	HungSameExecutor  // it is tried again where it hangs
	BytesUncounted    // bytes that a task moves are no progress

	// What the event log keeps.
	TapeCountsLost // counts that decided nothing are not recorded before what did
	TapeTicksLost  // passing of time that decided something is not recorded
	TapePartsLost  // how many parts a result has is not recorded

	// Attempts.
	AttemptStays // a pass by leases has the attempt of the step before, where no executor held the split

	// The lifecycle of jobs and executors.
	LifeTermStays         // a process has the term of the one before
	LifeTermForgotten     // a driver that is started again begins with the first term
	LifeStartUnwritten    // a process is started before it is written down
	LifeTwoProcesses      // a process that hangs is not waited for when it is killed
	LifeAnySays           // what an earlier process says of its end is taken
	LifeSilenceIsDone     // a process that ends without a word has done its job
	LifeEndUnwritten      // a job has ended although that could not be written down
	LifeDoneResumed       // a job that is done is resumed
	LifeRestartsUncounted // a process is started again without end
	LifeLostBlamed        // a process that has lost the driver has used a restart
	LifePauseUnwoken      // no wake-up is requested for a process's restart
	LifePauseShort        // the pause between starts does not grow
	LifeCancelAwaited     // a cancelled process that goes on is not killed
	LifeCancelUnwritten   // a second cancellation is acknowledged before the first is written down
	LifePoolIgnored       // the jobs of a pool run together
	LifeMaxJobsIgnored    // more jobs run than may
	LifeUnfair            // who has many jobs running goes before who has few
	LeasesUnwaited        // who is elected starts jobs at once
	LeaseFromAnswer       // a lease is counted from the answer
	RestartedVotes        // a driver that was started again votes at once
	IncompleteVotes       // a driver votes that has lost its journal
	CopiesUnneeded        // a copy too few suffices
	OldCopiesTaken        // copies are taken of a driver of an earlier term
	GoesOnEarlier         // a job goes on from an earlier checkpoint than was committed
	PastIgnored           // a job goes on from what an earlier process has written beyond what was committed
	LeaseUnverified       // a lease is extended although the driver has not led since it was asked
	SilentIgnored         // a driver begins a cluster without those that are silent
	AnyTermFollowed       // an executor takes orders of a driver of an earlier term
	LifeTimeoutIgnored    // a job runs longer than it may
	LifeDirectoryShared   // a job is given a directory that is there
	LifeUnfitAsked        // an unfit executor is asked for runners
	LifeNeverLeftAlone    // an executor whose runners end is asked without a pause
	LifeLeftForEver       // an executor that was left alone is not asked again
	LifeHopelessGoesOn    // a job goes on whose runners end everywhere
	LifeAnyRunner         // the end of an earlier runner counts as that of the last
	LifeDrainingAsked     // a draining executor is asked for runners
	LifeDrainedEarly      // an executor is said to be drained while it has runners
	LifeDrainedNever      // an executor without runners is not said to be drained
	LifePruneAtOnce       // a job that has just ended is removed
	LifeReadersIgnored    // a job is removed while its files are read
	LifeRemoveUnwritten   // directories go before the journal has forgotten the jobs
	LifeLastStepLost      // the last step of a job that ends is not written down
	LifeBeyondForgotten   // a job that takes too much between two of its processes goes on

	// The stages of a plan.
	StageParentsSkipped // a call runs before the stages that it reads
	StageLossIgnored    // what is lost is taken for there
	StageCopyIgnored    // what another executor holds, too, is taken for lost
	StageMadeWhole      // all of a stage is made again where a part is lost
	StageTriedForEver   // what is lost again and again is made again without end
	StageGaveUpEarly    // a call gives up although it gets on
	StageRoundRemade    // map tasks of its own make a loop's round again

	// Shares of an executor's slots.
	SharesUnweighted  // weights are ignored
	SharesNeverPaused // no job is paused
	SharesOwedForEver // an idle job is owed all that others had
	SharesTurnEndless // the job that has its turn keeps it
	SharesKeptForEver // a slot is kept for an idle job

	// Tables with bounded staleness.
	TableStale           // a read misses one clock more than it may
	TableAhead           // a worker runs one clock further ahead than it may
	TableTwice           // a batch that comes twice counts twice
	TableLastFirst       // of updates that were held back the last is seen first
	TableFlightForgotten // the value bound forgets updates that have left
	TableStrongIsWeak    // what only some have seen is not bounded
	TableLargeStuck      // an update larger than the value bound is never admitted
	TableHalfClock       // a snapshot has what is ahead of its clock
	TableEvictsLog       // a row that is evicted takes the log of its updates with it
	TableSeenEarly       // an update that was sent is taken for seen
	TableNotBack         // what a worker has added is not taken back when it goes on elsewhere
	TableOwnForgotten    // a worker does not see its own updates that have left
	TableOlderTaken      // a client takes an older value for a newer one
	TableLogDropped      // logs go before a snapshot has them
	TableOpenEarly       // a shard that was begun anew answers before its clients have let go
	TableNewerSeen       // reads of bsp see what is newer
	TableLossIgnored     // a shard is begun anew although a log that it needs is lost
	TableNotAgain        // a batch that is lost is not sent again
	TableTooEarly        // updates leave before the end of their clock
	TableOverBudget      // more leaves than bandwidth allows
	TableNoEviction      // the cache grows without bound

	// RapidReassignment.
	HelpTakenTwice     // what a helper has done is taken each time that it says so
	HelpAfterCancel    // a helper begins what was cancelled
	HelperLossIgnored  // what a lost helper was to do does not come back
	HelpCancelUnwaited // a range is done by its worker before the helper has said that it will not
	HelpBeforeOwn      // a helper helps before its own work is done
	HelpCancelLost     // a cancellation that is lost is not sent again
	HelpCompletedLost  // that help is completed is not said again
	HelpBeyondTail     // more is offered than helpers hold

	bugs
)

// Count is the number of bugs.
const Count = int(bugs) - 1
