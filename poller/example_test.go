package poller_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/qpoll/qpoll/poller"
)

// ticker is a source that counts its polls.
type ticker struct{ polls int }

func (t *ticker) Poll(now int64) int {
	t.polls++
	return 1
}

// A poller runs on a thread of its own. What belongs to its core is touched
// there only.
func ExamplePoller_Start() {
	p, err := poller.New(poller.Config{Unpinned: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Start(); err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	t := &ticker{}
	ctx := context.Background()
	if err := p.Call(ctx, func() { p.Add(t) }); err != nil {
		log.Fatal(err)
	}
	var polls int
	for polls < 1000 {
		if err := p.Call(ctx, func() { polls = t.polls }); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("polled at least 1000 times")
	// Output: polled at least 1000 times
}

// A poller that is not started is stepped by its owner, with a clock of the
// owner's, and everything happens in a fixed order.
func ExamplePoller_Poll() {
	p, err := poller.New(poller.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	p.Add(&ticker{})
	p.AfterFunc(2*time.Microsecond, func() { fmt.Println("timer at", p.Now()) })
	for now := int64(0); now <= 3000; now += 1000 {
		fmt.Println("pass at", now, "did", p.Poll(now))
	}
	// Output:
	// pass at 0 did 1
	// pass at 1000 did 1
	// timer at 2000
	// pass at 2000 did 2
	// pass at 3000 did 1
}

func ExamplePoller_Post() {
	p, err := poller.New(poller.Config{Mailbox: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	for i := range 3 {
		if err := p.Post(func() { fmt.Println("function", i) }); err != nil {
			fmt.Println(err)
		}
	}
	p.Poll(0)
	// Output:
	// poller: mailbox full
	// function 0
	// function 1
}

// A program that measures leaves the warm-up out.
func ExampleStats_Sub() {
	p, err := poller.New(poller.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	p.Add(&ticker{})
	for now := int64(0); now < 10; now++ { // warm-up
		p.Poll(now * int64(time.Millisecond))
	}
	before := p.Stats()
	for now := int64(10); now < 15; now++ {
		p.Poll(now * int64(time.Millisecond))
	}
	s := p.Stats().Sub(before)
	fmt.Println(s.Passes, "passes,", s.Work, "work")
	// Output: 5 passes, 5 work
}

// A group has a poller on each core, and hands each of them what it is to
// poll.
func ExampleEach() {
	cores, err := poller.AllowedCores()
	if err != nil {
		log.Fatal(err)
	}
	g, err := poller.NewGroup(cores[:1], poller.Config{Idle: poller.Adaptive})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()

	tickers, err := poller.Each(context.Background(), g,
		func(ctx context.Context, p *poller.Poller) (*ticker, error) {
			t := &ticker{}
			return t, p.Call(ctx, func() { p.Add(t) })
		})
	fmt.Println(len(tickers), err)
	// Output: 1 <nil>
}

func ExampleParseCores() {
	for _, s := range []string{"0,2-5", "0x3d", "5-2"} {
		fmt.Println(poller.ParseCores(s))
	}
	// Output:
	// [0 2 3 4 5] <nil>
	// [0 2 3 4 5] <nil>
	// [] poller: bad configuration: cores "5-2": range "5-2" runs backwards
}
