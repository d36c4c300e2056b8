package lab

import (
	"context"
	"runtime"
	"sync"
)

// RunAll runs each scenario with all of its contenders, on as many cores as Go
// has. Reports are in the order of the scenarios, whatever ended first.
func RunAll(ctx context.Context, scenarios []Scenario) ([]*Report, error) {
	type job struct{ scenario, contender int }
	var jobs []job
	reports := make([]*Report, len(scenarios))
	for i := range scenarios {
		sc := &scenarios[i]
		reports[i] = &Report{Scenario: sc, Results: make([]*Result, len(sc.contenders()))}
		for c := range sc.contenders() {
			jobs = append(jobs, job{i, c})
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	take := func() (job, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(jobs) || ctx.Err() != nil {
			return job{}, false
		}
		next++
		return jobs[next-1], true
	}
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for j, ok := take(); ok; j, ok = take() {
				sc := &scenarios[j.scenario]
				r, err := run(ctx, sc, sc.contenders()[j.contender])
				if err != nil {
					cancel(err)
					return
				}
				reports[j.scenario].Results[j.contender] = r
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return reports, nil
}
