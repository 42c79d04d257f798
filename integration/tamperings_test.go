package integration

// Objectives are what the data gives.
var falseObjectives = []tampering{
	{"every objective is 0.001", "absp", "steps: values.objective = 0.001", "objective"},
	{"one objective is a little less", "absp", "step 7: values.objective * 0.999999", "objective"},
	{"values are gone", "absp", "steps: values delete", "objective|values"},
	{"a value that was not reported", "absp", "step 5: values.full_objective = 0.5", "full_objective"},
	{"the last pass's objective", "absp", "final: objective = 0.001", "objective"},
	{"the last pass has no objective", "absp", "final: objective delete", "objective"},
	{"the last step's objective", "newton", "last: values.objective = 0.001", "objective"},
	{"every dual", "deadline", "steps: values.dual = 0.7", "dual"},
	{"every gap", "deadline", "steps: values.gap * 0.001", "gap"},
	{"objectives of steps and passes alike", "deadline", "steps: values.objective * 0.9; evals: objective * 0.9",
		"objective"},
	{"costs", "kmeans", "steps: values.objective * 0.5", "objective|cost"},
	{"costs of passes", "kmeans", "evals: objective * 0.5", "objective|cost"},
	{"errors of sweeps", "als", "steps: values.objective * 0.5", "objective"},
	{"one objective under steal", "steal", "step 3: values.objective + 0.01", "objective"},
}

// A step ends when Algorithm 1 says so.
var falseStops = []tampering{
	{"no step was cut", "absp", "steps: cut = false", "cut"},
	{"one step was not cut", "absp", "step 5: cut = false", "cut"},
	{"a whole step was cut", "bsp", "step 5: cut = true", "cut"},
	{"a whole step was cut, under steal", "steal", "step 5: cut = true", "cut"},
	{"R_p is zero", "absp", "steps: share_first = 0; steps: share_stop = 0", "share_(first|stop)|R_p"},
	{"R_p at one stop", "absp", "step 5: share_stop = 0.9", "share_stop|R_p"},
	{"R_p at one first finisher", "absp", "step 5: share_first = 0.49", "share_first|R_p"},
	{"R_p at the first finisher of bsp", "bsp", "steps: share_first = 0.99", "share_first|R_p"},
	{"R_p of half-sweeps", "als", "steps: share_first = 0.9", "share_first|R_p"},
	{"R_p of Lloyd's steps", "kmeans", "steps: share_stop = 1", "share_stop|R_p"},
	{"nobody was waited for at the floor", "floor", "with cut: waits.1.took_ns = 0", "wait|floor"},
	{"the deadline was another", "deadline",
		"step 5: phases_ns.compute + 1000000; step 5: waits.0.took_ns + 1000000; step 5: waits.1.since_ns + 1000000",
		"deadline|stop|wait"},
	{"the stop came later", "absp", "step 5: phases_ns.compute + 2000000; step 5: phases_ns.wait + 2000000; step 5: " +
		"waits.0.took_ns + 2000000; step 5: waits.1.since_ns + 2000000", "stop|wait"},
	{"nothing is missing", "missing", "steps: missing = []", "missing|floor"},
	{"less is missing", "missing", "step 4: missing = [5]", "missing|floor"},
	{"rows folded in vain are forgotten", "missing", "steps: dropped_rows = 0", "dropped"},
	{"rows are said to be dropped", "absp", "last: dropped_rows = 500", "dropped"},
	{"reports are said to be stale", "absp", "steps: stale_reports = 7", "stale"},
	{"tasks are said to be retried", "absp", "step 4: retried = 2", "retried"},
	{"tasks are said to be retried, under steal", "steal", "step 4: retried = 1", "retried"},
}

// The options are those that the run obeyed.
var falseOptions = []tampering{
	{"a higher ratio than it was cut at", "absp", "header: options.ratio = 0.59", "share_stop"},
	{"a lower ratio", "absp", "header: options.ratio = 0.4", "ratio|R_s|stop"},
	{"no floor", "floor", "header: options.min_rows = 1; header: options.min_share = 0", "floor|wait|min_rows"},
	{"another grace", "absp", "header: options.grace_ns * 10", "grace|wait|bound"},
	{"another timeout", "absp", "header: options.step_timeout_ns * 2", "timeout|wait|bound"},
	{"no cursors", "absp", "header: options.cursor = false", "cursor|10.2"},
	{"weighting by rows", "absp", `header: options.weighting = "rows"`, "weighting|parameters"},
	{"deadline for absp", "absp", `header: options.sync = "deadline"`, "sync|deadline|polic|cut|stop"},
	{"steal for bsp", "bsp", `header: options.sync = "steal"`, "sync|steal|polic|lease"},
	{"bsp for steal", "steal", `header: options.sync = "bsp"`, "sync|bsp|polic|lease"},
	{"no exchange", "moves", `header: options.exchange = "off"`, "exchange|move"},
	{"another threshold", "moves", "header: options.exchange_threshold = 5", "threshold|exchange|move"},
	{"fewer executors", "absp", "header: options.executors = 5", "executor"},
	{"more slots", "moves", "header: options.slots = 4", "slot"},
	{"batches", "bsp", "header: options.batch_fraction = 0.5", "batch|10.1|rows"},
	{"another job", "absp", `header: job = "svm"`, "job|svm"},
	{"another penalty", "absp", "header: args.Reg = 0.02", "parameters|objective"},
	{"an argument that is none", "absp", "header: args.Momentum = 0.9", "arguments"},
	{"an argument of another spelling", "absp", "header: args.reg = 0.01; header: args.Reg delete", "arguments"},
	{"another plan", "absp", `header: plan = "` + zeros + `"`, "plan"},
	{"another row in a split", "absp", "header: n.0 + 1; rederive", "split 0|rows|parameters"},
	{"fewer entries in a split", "als", "header: entries.0 + -1", "entries|progress"},
	{"rows are sparse", "absp", "header: entries = [9,9,9,9,9,9]", "entries"},
	{"rows have weights", "bsp", "header: weights = [250,250,250,250,250,250,250,250,250,250,250,250]", "weigh"},
	{"other data", "absp", `header: splits.0 = "` + zeros + `"`, "split 0"},
	{"other data in the second pack", "als", `pack: splits.0 = "` + zeros + `"`, "split 0"},
	{"another row in the second pack", "als", "pack: n.0 + 1", "split 0|rows|progress"},
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// No option is zero that stands for another value when a job is made of it.
var emptyOptions = []tampering{
	{"no fewest rows", "floor", "header: options.min_rows = 0", "options"},
	{"no smallest ratio", "auto", "header: options.min_ratio = 0", "options"},
	{"no interval", "moves", "header: options.exchange_interval = 0", "options"},
	{"no bandwidth", "moves", "header: options.exchange_bandwidth = 0", "options"},
	{"no failures of a task", "absp", "header: options.max_task_failures = 0", "options"},
	{"no time to gather", "absp", "header: options.gather_ns = 0", "options"},
	{"no clock", "absp", `header: options.clock = ""`, "clock"},
	{"another clock", "absp", `header: options.clock = "Virtual"`, "clock"},
}

// Splits move when the exchange says so, and lie where they were moved to.
var falseMoves = []tampering{
	{"moves are erased", "moves", "steps: moves delete", "move|exchange"},
	{"one move is erased", "moves", "with moves: moves delete", "move|exchange"},
	{"a move to another executor", "moves", `with moves: moves.0.to = "executor-2"`, "move|exchange"},
	{"a move of another split", "moves", "with moves: moves.0.split = 5", "move|exchange"},
	{"bytes that did not travel", "moves", "with moves: moves.1.role = true", "role|move|exchange"},
	{"a move that never was", "absp", `step 3: moves = [{"split":1,"from":"executor-1","to":"executor-0"}]`,
		"move|exchange"},
	{"moves of auto are erased", "auto", "with moves: moves delete", "move|exchange"},
	{"a split lies elsewhere", "moves", "last: placement = [0,0,0,0,0,0]; last: executors = " +
		"[\"executor-0\",\"executor-1\",\"executor-2\"]", "placement|owner|split"},
	{"placement is forgotten", "moves", "steps: placement delete; steps: executors delete", "placement|owner"},
	{"an executor of another name", "moves", `step 1: executors.0 = "executor-9"`, "executor"},
	{"the time of moves", "moves", "steps: phases_ns.exchange = 0", "exchange|move"},
}

// Waits and times are those of the events that ended them.
var falseWaits = []tampering{
	{"bounds of ten minutes", "absp", "steps: waits.*.bound_ns = 600000000000", "bound"},
	{"no waits", "absp", "steps: waits = []", "wait"},
	{"one wait is gone", "floor", "with cut: waits = []", "wait"},
	{"a wait twice as long", "absp", "step 5: waits.0.took_ns * 2", "wait|took"},
	{"a wait for something else", "absp", `step 5: waits.0.for = "lost splits"`, "wait"},
	{"faster steps", "absp", "steps: phases_ns.compute * 0.5", "compute|phase|stop"},
	{"no stragglers", "bsp", "steps: phases_ns.wait = 0", "wait|phase"},
	{"faster results", "absp", "steps: phases_ns.collect * 0.1", "collect|phase|wait"},
	{"an update that is over before it begins", "absp", "step 5: phases_ns.update = -5", "update"},
	{"an update during the next step", "absp", "step 5: phases_ns.update = 5000000", "update"},
	{"an update that takes for ever", "absp", "step 5: phases_ns.update = 9223372036854775807", "update"},
	{"a faster pass", "absp", "final: took_ns * 0.1", "took|wait"},
	{"a pass without waits", "deadline", "evals: waits = []", "wait"},
	{"bounds under steal", "steal", "steps: waits.*.bound_ns * 0.5", "bound"},
}

// Auto chooses its ratio from the gradients, and no other policy chooses one.
var falseRatios = []tampering{
	{"a ratio that was never raised", "auto", "steps: ratio = 0.5", "ratio"},
	{"one ratio", "auto", "step 4: ratio = 0.75", "ratio"},
	{"the reason", "auto", `step 4: why = "kept: splits' gradients differ by 0.1, their mean is 1 long"`,
		"why|gradient|reason|ratio"},
	{"no reason", "auto", "steps: why delete", "why|gradient|reason|ratio"},
	{"the first ratio", "auto", "header: options.ratio = 0.4", "ratio"},
	{"a ratio where none is chosen", "absp", "steps: ratio = 0.5", "ratio"},
}

// What was merged is accounted for.
var falseAccounts = []tampering{
	{"a row more", "absp", "step 5: c.0 + 1", "10.1|split 0"},
	{"a row more, folded too", "absp", "last: c.0 + 1; last: folded.0 + 1; rederive", "parameters|10.1|split 0"},
	{"a row fewer, all the way", "absp", "step 5: c.1 + -1; step 5: folded.1 + -1; rederive", "c: the log has"},
	{"one N_eff", "absp", "step 5: neff * 1.001", "n_?eff"},
	{"one share", "absp", "step 5: share + 0.01", "share"},
	{"entries", "als", "step 3: entries.0 + -1", "entries|progress"},
	{"attempts", "absp", "steps: attempt.0 + 1", "attempt"},
	{"a later attempt", "bsp", "last: attempt.0 + 3", "attempt"},
	{"epochs", "absp", "steps: epoch.* + 1000", "epoch"},
	{"an earlier epoch", "absp", "step 6: epoch.0 = 1", "epoch|10.[45]"},
	{"iterations", "absp", "step 5: iteration = 99", "iteration"},
	{"iterations, all of them", "bsp", "steps: iteration + 1", "iteration"},
	{"the node of a pass", "absp", "final: node + 1", "node"},
	{"the iteration of a pass without an objective", "absp", "evals: iteration = 77", "iteration"},
	{"the iteration of the pass for moments", "absp", "eval 1: iteration = 3", "iteration"},
	{"the iteration of a pass", "absp", "final: iteration = 3", "iteration"},
	{"the parameters of a step", "absp", `last: params = "` + zeros + `"`, "parameters"},
	{"the parameter of a pass", "absp", `final: params = "` + zeros + `"`, "parameter"},
	{"a pass that left rows out", "absp", "final: c.0 + -1; final: folded.0 + -1", "10.3|rows"},
	{"a step twice", "absp", "twice step 5", "step 5|10.4"},
	{"a step twice, renumbered", "absp", "twice step 5; renumber; rederive", "parameters|10.4"},
	{"no step 5", "absp", "drop step 5; renumber; rederive", "do not end a step"},
	{"no first pass", "absp", "drop eval 1", "pass|line|evaluation"},
	{"no resumption", "resumed", "drop resume", "attempt|resume|epoch"},
	{"it resumed from other cursors", "resumed", "resume: cursor.0 + 5", "cursor"},
	{"it resumed from another step", "resumed", "resume: step + 1", "resume"},
	{"the epoch after a resumption", "resumed", "last: epoch.* + -4294967296", "epoch"},
}

// A run ends where its own rules end it.
var falseEnds = []tampering{
	{"cut short at step 10", "absp", "after 10", "end|stop|goes on|go on"},
	{"cut short, of fewer iterations", "absp", "after 10; header: args.MaxIterations = 10",
		"end|stop|goes on|go on|evaluation|pass"},
	{"the last pass is gone", "absp", "drop final", "end|stop|goes on|go on|evaluation|pass"},
	{"cut short, by tolerance", "bsp", "after 6", "end|stop|goes on|go on|tolerance"},
	{"it was to have more iterations", "absp", "header: args.MaxIterations = 1000", "end|stop|iteration|kind of step"},
	{"it ended by tolerance", "absp", `footer: stopped_by = "tolerance"`, "stopped|tolerance"},
	{"it was interrupted", "absp", `footer: stopped_by = "interrupted"`, "stopped|interrupted"},
	{"it ran out of time", "absp", `footer: stopped_by = "max-time"`, "stopped|max-time"},
	{"it ended by its limit", "bsp", `footer: stopped_by = "max-iterations"`, "stopped|max-iterations"},
	{"its reports are gone", "absp", "steps: reports delete; evals: reports delete", "reports"},
	{"its reports are said to be too many", "absp", "step 5: reports delete", "reports"},
	{"all reports are said to be too many", "absp",
		"steps: reports delete; evals: reports delete; steps: reports_left_out = true; evals: reports_left_out = true",
		"reports"},
	{"reports of another step", "absp", `step 5: reports = "AAAA"`, "reports"},
	{"another tolerance", "bsp", "header: args.Tol = 1e-12", "end|stop|tolerance|parameters"},
	{"a greater tolerance", "bsp", "header: args.Tol = 0.01", "end|stop|tolerance|parameters"},
	{"a limit of time that was not kept", "absp", "header: args.MaxTime = 1", "max-time|end|stop|steps|parameters"},
}
