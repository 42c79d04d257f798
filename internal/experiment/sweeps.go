package experiment

import (
	"slices"
	"strconv"
	"strings"
)

// What sweeps say of themselves.
const (
	aboutSweep = "Seconds of computed time of an iteration: those of a run less those of its first ten, over the " +
		"rest; medians over seeds of the law. Ideal is slots that are always busy, at the speeds that the law gives " +
		"them. Idle is the share of their time in which slots waited, helped that of a worker's rows which others " +
		"have processed for it, both of the whole run; the objective is that at its end. Where workers lead astray " +
		"and begin again, the pass that they begin with is in their time."
	aboutFlexRR = "A worker on each of sixteen slots. BSP is ssp with slack 0, SSP and FlexRR have slack 1, BSP RR " +
		"is FlexRR without slack. The paper's figures are of MF, LDA and MLR (softmax) on 128 workers."
)

// Sweeps returns those that volley lab run knows, by name.
func Sweeps(s Size, seeds int) map[string]*Sweep {
	all := map[string]*Sweep{}
	for _, of := range []map[string]*Sweep{flexrrs(s, seeds), lazytables(s, seeds), petuumScaling(s)} {
		for name, sweep := range of {
			all[name] = sweep
		}
	}
	return all
}

// alone returns a law for workers that have a slot each.
func alone(workers int, paces ...string) Law {
	return Law{Paces: paces, Flags: []string{"--executors", strconv.Itoa(workers)}, Splits: workers}
}

// flexrrWays are those of FlexRR's figures, in their order.
var flexrrWays = []Way{stepwise("BSP", "ssp", "--slack", "0"), stepwise("SSP", "ssp", "--slack", "1"),
	stepwise("BSP RR", "flexrr", "--slack", "0"), stepwise("FlexRR", "flexrr", "--slack", "1")}

// stepwise returns a way of workers whose steps are of few rows, so that a clock has a hundred of them. Those of lda
// and mf are a few words, and a few users' ratings.
func stepwise(name, policy string, more ...string) Way {
	return Way{name, func(j *Job) []string {
		flags := slices.Concat([]string{"--sync", policy}, more)
		if j.Verb == "lda" || j.Verb == "mf" {
			return flags
		}
		return append(flags, "--batch", "8")
	}}
}

// slowed returns points at which a law slows slots down by some percentages.
func slowed(law func(percent int) string, seeds int, percents ...int) (all []Point) {
	for _, d := range percents {
		paces := seeded(law(d)+":", seeds)
		if d == 0 {
			paces = []string{evenly(flexrrWorkers)}
		}
		all = append(all, Point{strconv.Itoa(d) + " %", alone(flexrrWorkers, paces...)})
	}
	return all
}

const flexrrWorkers = 16

// evenly returns a law by which every slot has speed 1, which is of as many rows as the job says.
func evenly(workers int) string { return "static:1" + strings.Repeat(",1", workers-1) }

func slowWorker(d int) string { return "slow-worker:" + strconv.Itoa(d) }

// flexrrs returns the figures of FlexRR's section 5.
func flexrrs(s Size, seeds int) map[string]*Sweep {
	jobs := chosenJobs(s, "softmax", "logistic", "kmeans")
	delays := []int{0, 50, 100, 200, 300, 400}
	about := []string{aboutSweep, aboutFlexRR}
	base := func(title string, jobs []Job, points []Point, more ...string) *Sweep {
		return &Sweep{Title: title, About: append(about[:2:2], more...), Jobs: jobs, Points: points, Ways: flexrrWays,
			Clocks: 40}
	}
	fig7 := base("FlexRR, figure 7: time of an iteration by how much slow workers are slowed",
		append(jobs, theirs(s)...), slowed(slowWorker, seeds, delays...),
		"The paper: BSP grows linearly; SSP hides what its slack covers; FlexRR is nearly Ideal up to "+
			"400 %, where helpers do 19 to 22 % of the work.")
	fig8 := base("FlexRR, figure 8: convergence by how much slow workers are slowed",
		append(jobs, theirs(s)...), slowed(slowWorker, seeds, 0, 200, 400), "The paper: FlexRR needs 114 "+
			"iterations where BSP needs 112 (MF), and 42 to 44 where BSP needs 41 (LDA).")
	fig8.Reach = true
	fig9 := base("FlexRR, figure 9: machines that other work disrupts", jobs[:1], slowed(func(d int) string {
		return "disrupted:" + strconv.Itoa(d) + ":3p"
	}, seeds, 0, 100, 200, 400), "A fifth of the machines, drawn anew every three balanced passes. The paper: SSP and "+
		"BSP RR each take away up to 49 and 42 % of BSP's time, FlexRR matches Ideal, up to 63 % less.")
	fig10 := base("FlexRR, figure 10: times of iterations by a power law", jobs[:1], nil, "The smaller the "+
		"exponent, the longer the delays. The paper at 11: SSP 39, BSP RR 40 and FlexRR 48 % less than BSP (MF).")
	for _, alpha := range []string{"11", "7", "4"} {
		fig10.Points = append(fig10.Points, Point{"α " + alpha, alone(flexrrWorkers, seeded("power-law:"+alpha+":",
			seeds)...)})
	}
	fig10.Theirs = map[string]map[string]string{"α 11": {"SSP": "0.61 of BSP's", "BSP RR": "0.60", "FlexRR": "0.52"}}
	fig12 := base("FlexRR, figure 12: half of the machines have three quarters of the work", jobs[:1], []Point{
		{"even", alone(flexrrWorkers, evenly(flexrrWorkers))}, {"uneven", alone(flexrrWorkers, "uneven")}},
		"As speeds: half of the slots have a third of the others'. The paper: SSP takes 54 % longer than without, "+
			"FlexRR is close to Ideal.")
	fig12.Theirs = map[string]map[string]string{"uneven": {"SSP": "1.54 of even", "FlexRR": "close to Ideal"}}
	fig13 := base("FlexRR, figure 13: parts of a clock that helpers may do", jobs[:1],
		slowed(slowWorker, seeds, 100, 400), "Here helpers hold all rows. The paper, without delays: with a quarter "+
			"of the data close to all of it, and much better than SSP.")
	fig13.Ways = []Way{flexrrWays[1]}
	for _, tail := range []string{"0.1", "0.25", "0.5", "1"} {
		fig13.Ways = append(fig13.Ways, stepwise("tail "+tail, "flexrr", "--slack", "1", "--reassign-tail", tail))
	}
	fig11 := base("FlexRR, figure 11: how much its parameters matter", jobs[:1], slowed(slowWorker, seeds, 100, 400),
		"The paper: with three helpers or more nearly Ideal; follow-ups of any size but none, though large ones do "+
			"worse where delays are long; 100 to 10,000 checks an iteration.")
	fig11.Ways = sensitivity()
	return map[string]*Sweep{"flexrr-fig7": fig7, "flexrr-fig8": fig8, "flexrr-fig9": fig9, "flexrr-fig10": fig10,
		"flexrr-fig11": fig11, "flexrr-fig12": fig12, "flexrr-fig13": fig13}
}

// theirs returns jobs of FlexRR's own evaluation, with enough documents and users for a clock, which is a sixteenth of
// these and, of factorizations, a part of that.
func theirs(s Size) []Job {
	lda, mf := topics(Size{Rows: 5 * s.Rows}, 20), factors(s)
	mf.Data.Flags = []string{"--rows", strconv.Itoa(10 * s.Rows), "--users", strconv.Itoa(5 * s.Rows), "--items",
		"1000"}
	mf.Rate = 10_000
	return []Job{lda, mf}
}

// sensitivity returns ways of FlexRR by its parameters, each of which varies alone (table 1).
func sensitivity() (ways []Way) {
	add := func(flag string, values ...string) {
		for _, v := range values {
			ways = append(ways, stepwise(flag[2:]+" "+v, "flexrr", "--slack", "1", flag, v))
		}
	}
	add("--helpers", "0", "1", "2", "3", "4", "8", "15")
	add("--reassign-first", "0.0125", "0.025", "0.05", "0.15")
	add("--reassign-trigger", "0.1", "0.2", "0.4")
	add("--reassign-checks", "20", "100", "1000")
	return ways
}

// chosenJobs returns jobs by their names.
func chosenJobs(s Size, names ...string) (out []Job) {
	for _, name := range names {
		for _, j := range Jobs(s, 1) {
			if j.Name == name {
				out = append(out, j)
			}
		}
	}
	return out
}

// topics returns LDA on documents with planted topics, and factors matrix factorization: rates are of documents and
// of ratings.
func topics(s Size, k int) Job {
	documents := strconv.Itoa(max(1000, s.Rows/10))
	return Job{Name: "lda", Verb: "lda", Data: Data{"documents", []string{"--rows", documents, "--words", "2000", "--k",
		strconv.Itoa(k)}, "lda-c"}, Flags: []string{"--topics", strconv.Itoa(k)}, Rate: 200, Endless: true}
}

func factors(s Size) Job {
	return Job{Name: "mf", Verb: "mf", Data: Data{"als", []string{"--rows", strconv.Itoa(5 * s.Rows), "--users",
		strconv.Itoa(1 + s.Rows/10), "--items", strconv.Itoa(1 + s.Rows/50)}, "parquet"},
		Flags: []string{"--rank", "8", "--reg", "0.05"}, Rate: 100_000}
}

// stale returns a way of LazyTable's: {wpc, slack}.
func stale(wpc, slack int) Way {
	return syncs("{"+strconv.Itoa(wpc)+", "+strconv.Itoa(slack)+"}", "ssp", "--slack", strconv.Itoa(slack), "--wpc",
		strconv.Itoa(wpc))
}

// lazytables returns the figures of LazyTable's section 5.
func lazytables(s Size, seeds int) map[string]*Sweep {
	lda, mf := topics(s, 20), factors(s)
	about := []string{aboutSweep, "{wpc, slack}: iterations of a clock, and clocks that a worker may be ahead of the " +
		"slowest; {1, 0} is BSP, {n, 0} the paper's A-BSP. A worker on each of eight slots, on links of a gigabit a " +
		"second. The paper has 64 machines, the NYTimes documents and 100 topics."}
	links := "+link:125MB/s+latency:1ms"
	quiet := []Point{{"no stragglers", alone(lazyWorkers, "rate:"+strconv.Itoa(lda.Rate)+links)}}
	jitter := []Point{{"a little jitter", alone(lazyWorkers, suffixed(seeded("slow-worker:50:", seeds), links)...)}}
	fig3 := &Sweep{Title: "LazyTable, figure 3: staleness in topic modelling", Jobs: []Job{lda}, Reach: true,
		Points: append(quiet, jitter...), Clocks: 80, About: append(about[:2:2], "The paper, to a log-likelihood of "+
			"−9.5e8: {1, 0} 236.2 s, {2, 0} 206.6, {4, 0} 237.0, {1, 3} 222.7, {2, 1} 193.7.", aboutLoad),
		Ways: []Way{stale(1, 0), stale(2, 0), stale(4, 0), stale(8, 0), stale(1, 1), stale(1, 3), stale(1, 7),
			stale(2, 1), syncs("asp", "asp")}}
	fig3.Theirs = map[string]map[string]string{"no stragglers": {"{1, 0}": "236.2 s", "{2, 0}": "206.6 s",
		"{4, 0}": "237.0 s", "{1, 3}": "222.7 s", "{2, 1}": "193.7 s"}}
	fig4 := &Sweep{Title: "LazyTable, figure 4: what of an iteration is waiting, in topic modelling", Jobs: []Job{lda},
		Points: fig3.Points, Clocks: 80, Ways: fig3.Ways, About: append(about[:2:2], "Waiting is the idle share of an "+
			"iteration's seconds: for stragglers, and for rows that are fresh enough. The paper: what staleness "+
			"takes away is waiting, and the less is left of it the less more staleness helps.")}
	fig5 := &Sweep{Title: "LazyTable, figure 5: staleness in matrix factorization", Jobs: []Job{mf}, Reach: true,
		Points: jitter, Clocks: 40, About: append(about[:2:2], "The paper: MF tolerates less staleness, and SSP with "+
			"slack 1 is best.", aboutLoad),
		Ways: []Way{syncs("{1, 0}", "ssp", "--slack", "0"), syncs("{1, 1}", "ssp", "--slack", "1"),
			syncs("{1, 3}", "ssp", "--slack", "3"), syncs("asp", "asp")}}
	straggling := []Way{stale(1, 0), stale(2, 0), stale(1, 1)}
	fig6 := &Sweep{Title: "LazyTable, figure 6: threads that are delayed in turn", Jobs: []Job{lda}, Clocks: 42,
		Ways: straggling, About: append(about[:2:2], "Machine m sleeps at iteration m, for a number of balanced "+
			"passes. The paper: BSP's time of an iteration grows by the delay, A-BSP {2, 0}'s by half of it, SSP "+
			"{1, 1}'s by an eighth or so (a machine's share) while the slack covers the delay, 1.4 iterations, and "+
			"by half beyond.")}
	for _, d := range []string{"0", "0.5", "1", "2", "4"} {
		law := "delayed:" + d + "p"
		if d == "0" {
			law = "rate:" + strconv.Itoa(lda.Rate)
		}
		fig6.Points = append(fig6.Points, Point{d + " passes", alone(lazyWorkers, law+links)})
	}
	fig7 := &Sweep{Title: "LazyTable, figure 7: work in the background", Jobs: []Job{lda}, Clocks: 42, Ways: straggling,
		About: append(about[:2:2], "In slots of time of a length each machine is at half its speed with a "+
			"probability of 10 %. The paper: ideally 5 % longer; SSP is close to that where slots are up to an "+
			"iteration.")}
	for _, d := range []string{"0.1", "0.5", "1", "2", "4"} {
		fig7.Points = append(fig7.Points, Point{"slots of " + d + " passes", alone(lazyWorkers,
			suffixed(seeded("disrupter:"+d+"p:", seeds), links)...)})
	}
	fig8 := &Sweep{Title: "LazyTable, figure 8: what messages cost the processors, in topic modelling",
		Jobs: []Job{lda}, Clocks: 42, Ways: []Way{stale(2, 0), stale(1, 1), stale(1, 0)},
		About: append(about[:2:2], "Messages of tables are written and read by cores to spare, or by those of the "+
			"slots, at a number of bytes a second, before these go on. An executor here pushes about 330 MB/s over "+
			"loopback with a core for each process (make bench-push). The paper, with 4 threads of an application "+
			"on 8 cores and on 4: cores to spare make little difference to A-BSP, but make SSP, which has twice as "+
			"many clocks, much faster.")}
	for _, rate := range []string{"", "330MB/s", "10MB/s", "1MB/s"} {
		p := Point{"cores to spare", alone(lazyWorkers, "rate:"+strconv.Itoa(lda.Rate)+links)}
		if rate != "" {
			p = Point{"slots' own, " + rate, alone(lazyWorkers, p.Law.Paces[0]+"+handling:"+rate)}
		}
		fig8.Points = append(fig8.Points, p)
	}
	fig9 := &Sweep{Title: "LazyTable, figure 9: prefetching", Jobs: []Job{lda, mf}, Clocks: 30,
		About: append(about[:2:2], "Under {1, 1}. The paper: prefetching takes most of the waiting away, of MF most."),
		Points: []Point{{"1 ms", alone(lazyWorkers, evenly(lazyWorkers)+links)},
			{"20 ms", alone(lazyWorkers, evenly(lazyWorkers)+"+link:125MB/s+latency:20ms")}},
		Ways: []Way{syncs("aggressive", "ssp", "--slack", "1"),
			syncs("conservative", "ssp", "--slack", "1", "--prefetch", "conservative"),
			syncs("off", "ssp", "--slack", "1", "--prefetch", "off")}}
	return map[string]*Sweep{"lazytable-fig3": fig3, "lazytable-fig4": fig4, "lazytable-fig5": fig5,
		"lazytable-fig6": fig6, "lazytable-fig7": fig7, "lazytable-fig8": fig8, "lazytable-fig9": fig9}
}

const (
	lazyWorkers = 8
	aboutLoad   = "Reached is the first report whose objective (minus log-likelihood of a token's word, squared " +
		"error) is no more than a thousandth above BSP's last, after a number of iterations at that way's seconds " +
		"each; – is that it never was."
)

func suffixed(all []string, by string) (out []string) {
	for _, s := range all {
		out = append(out, s+by)
	}
	return out
}

// petuumScaling returns figure 5 of Petuum: LDA by more and more workers.
func petuumScaling(s Size) map[string]*Sweep {
	lda := topics(s, 50)
	sweep := &Sweep{Title: "Petuum, figure 5: LDA by the number of workers", Jobs: []Job{lda}, Clocks: 22,
		About: []string{aboutSweep, "Links of a gigabit a second. Times Ideal is what is lost to messages and " +
			"waiting, so that the speedup by n workers is n over it. The paper has 2,000 topics and 8 to 32 cores, " +
			"and a curve near linear."},
		Ways: []Way{syncs("cap(1)", "cap", "--slack", "1"), syncs("vap", "vap", "--value-bound", "64"),
			syncs("bsp", "bsp")}}
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		sweep.Points = append(sweep.Points, Point{strconv.Itoa(n) + " workers", alone(n,
			"rate:"+strconv.Itoa(lda.Rate)+"+link:125MB/s+latency:1ms")})
	}
	return map[string]*Sweep{"petuum-scaling": sweep}
}
