package main

import (
	"runtime"
	"slices"
	"testing"

	"github.com/qpoll/qpoll/poller"
)

func TestPlan(t *testing.T) {
	remote := "trtype:tcp traddr:a"
	for _, tt := range []struct {
		target             string
		allowed            []int
		cores, targetCores []int
		load, serve        []int
		shared             bool
	}{
		{embedded, []int{0, 1, 2, 3}, nil, nil, []int{0}, []int{1}, false},
		{embedded, []int{5}, nil, nil, []int{5}, []int{5}, true},
		{embedded, []int{0, 1}, []int{1}, nil, []int{1}, []int{0}, false},
		{embedded, []int{0, 1}, nil, []int{0}, []int{1}, []int{0}, false},
		{embedded, []int{0, 1}, []int{0, 1}, nil, []int{0, 1}, []int{1}, true},
		{embedded, []int{0, 1, 2}, []int{1, 2}, []int{0, 1}, []int{1, 2}, []int{0, 1}, true},
		{remote, []int{3, 4}, nil, nil, []int{3}, nil, false},
		{remote, []int{3, 4}, []int{3, 4}, nil, []int{3, 4}, nil, false},
	} {
		o := &options{target: tt.target, cores: tt.cores, targetCores: tt.targetCores}
		l, err := o.plan(tt.allowed)
		if err != nil || !slices.Equal(l.load, tt.load) || !slices.Equal(l.target, tt.serve) || l.shared != tt.shared {
			t.Errorf("%+v: %+v, %v", tt, l, err)
		}
		if idle := l.poller("x").Idle; (idle == poller.Adaptive) != tt.shared {
			t.Errorf("%+v: pollers are %v", tt, idle)
		}
	}
}

func TestProcessors(t *testing.T) {
	had := runtime.GOMAXPROCS(0)
	l := layout{load: make([]int, had), target: []int{0}}
	undo := l.processors()
	if got := runtime.GOMAXPROCS(0); got != had+3 {
		t.Errorf("%d processors for %d pollers", got, had+1)
	}
	undo()
	few := layout{}
	runtime.GOMAXPROCS(max(had, 2))
	few.processors()()
	if got := runtime.GOMAXPROCS(had); got != max(had, 2) {
		t.Errorf("%d processors where %d were enough", got, max(had, 2))
	}
}

func TestRanges(t *testing.T) {
	for _, tt := range []struct {
		in   []int
		want string
	}{{nil, ""}, {[]int{4}, "4"}, {[]int{0, 1, 2, 5, 7, 8}, "0-2,5,7-8"}} {
		if got := ranges(tt.in); got != tt.want {
			t.Errorf("%v is written %q", tt.in, got)
		}
	}
}
