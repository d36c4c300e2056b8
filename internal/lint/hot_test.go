package lint

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// loadStd lists and builds what the texts of these tests import.
var loadStd = sync.OnceValues(func() (*Checker, error) {
	std := slices.Collect(maps.Keys(coldPackages))
	return NewChecker(".", "example.com/m", append(std, "iter", "runtime", "sync/atomic", "time")...)
})

func checker(t *testing.T) *Checker {
	t.Helper()
	c, err := loadStd()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkHotText runs the hot rules on the files of one package. The type
// checker sees those that are neither tests nor named in leaveOut.
func checkHotText(t *testing.T, files map[string]string, leaveOut ...string) []Problem {
	t.Helper()
	tr := tree(t, files)
	c := checker(t)
	problems, err := CheckHot(tr, func(dir string) (*Package, error) {
		src := make(map[string][]byte)
		for name, text := range files {
			if path.Dir(name) == dir && !strings.HasSuffix(name, "_test.go") && !slices.Contains(leaveOut, name) {
				src[name] = []byte(text)
			}
		}
		return c.Check("example.com/m/"+dir, src)
	})
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// hotLines are single statements of a hot function, each with the start of its
// report; an empty report means that the line is allowed.
var hotLines = []struct{ line, want string }{
	{`defer q.reap()`, "defer"},
	{`go q.reap()`, "go statement"},
	{`q.done = func(n int) {}`, "function literal"},
	{`q.ch <- 1`, "channel send"},
	{`<-q.ch`, "channel receive"},
	{`close(q.ch)`, "close"},
	{`for range q.ch {}`, "range over a channel"},
	{`for range q.seq {}`, "range over a function"},
	{`q.ch = make(chan int)`, "make of a channel"},
	{`_ = q.byID[3]`, "map access"},
	{`q.byID[3] = 4`, "map access"},
	{`delete(q.byID, 3)`, "delete"},
	{`clear(q.byID)`, "clear of a map"},
	{`for range q.byID {}`, "range over a map"},
	{`q.byID = make(named)`, "make of a map"},
	{`q.byID = named{}`, "map literal"},
	{`var _ map[int]int`, "map type"},
	{`q.mu.Lock()`, "sync.Lock"},
	{`q.Unlock()`, "sync.Unlock"},
	{`q.once.Do(q.reap)`, "sync.Do"},
	{`_ = clock.Now()`, "time.Now"},
	{`clock.Sleep(3)`, "time.Sleep"},
	{`_ = clock.Since(q.t)`, "time.Since"},
	{`q.n.Add(1)`, "atomic read-modify-write Add"},
	{`q.n.Swap(1)`, "atomic read-modify-write Swap"},
	{`q.n.CompareAndSwap(1, 2)`, "atomic read-modify-write CompareAndSwap"},
	{`atomic.AddUint32(&q.raw, 1)`, "atomic read-modify-write AddUint32"},
	{`atomic.OrUint32(&q.raw, 1)`, "atomic read-modify-write OrUint32"},
	{`_ = q.rng.Uint32()`, "math/rand/v2.Uint32"},
	{`runtime.Gosched()`, "runtime.Gosched"},
	{`_ = q.name.String()`, "fmt.String"},

	{`q.n.Store(q.n.Load() + 1)`, ""},
	{`atomic.StoreUint32(&q.raw, atomic.LoadUint32(&q.raw))`, ""},
	{`q.t = q.t.Add(clock.Second)`, ""},
	{`q.list = append(q.list, 1)`, ""},
	{`clear(q.list)`, ""},
	{`for range q.list {}`, ""},
	{`_ = q.list[0]`, ""},
	{`q.done(3)`, ""},
	{`runtime.KeepAlive(q)`, ""},
}

// hotTypes is the cold file of the package that hotLines are checked in: what
// a rule must see through is declared here.
const hotTypes = `package q

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

type named map[int]int

type queue struct {
	sync.Mutex
	mu   sync.RWMutex
	once sync.Once
	ch   chan int
	byID named
	n    atomic.Uint64
	raw  uint32
	rng  *rand.Rand
	t    time.Time
	list []int
	seq  iter.Seq[int]
	done func(int)
	name fmt.Stringer
}

func (q *queue) reap() {}
`

func TestHotReports(t *testing.T) {
	const head = `package q

//qpoll:hot

import (
	"runtime"
	"sync/atomic"
	clock "time"
)

var _ = clock.Second
var _ = runtime.KeepAlive
var _ atomic.Bool

func (q *queue) poll() {
`
	for _, tt := range hotLines {
		hot := head + "\t" + tt.line + "\n}\n"
		at := fmt.Sprintf("q/hot.go:%d: hot path: %s", strings.Count(head, "\n")+1, tt.want)
		var want []string
		if tt.want != "" {
			want = []string{at}
		}
		t.Run(tt.line, func(t *testing.T) {
			expect(t, checkHotText(t, map[string]string{"q/hot.go": hot, "q/types.go": hotTypes}), want...)
		})
		// The same line in a file that is not hot is none of our business.
		cold := strings.Replace(hot, "//qpoll:hot\n", "", 1)
		expect(t, checkHotText(t, map[string]string{"q/hot.go": cold, "q/types.go": hotTypes}))
	}
}

func TestHotSelect(t *testing.T) {
	hot := "//qpoll:hot\n\npackage q\n\nfunc f() {\n\tselect {}\n}\n"
	expect(t, checkHotText(t, map[string]string{"q/hot.go": hot}), "q/hot.go:6: hot path: select")
}

func TestHotImports(t *testing.T) {
	for _, p := range slices.Sorted(maps.Keys(coldPackages)) {
		hot := "//qpoll:hot\n\npackage q\n\nimport _ \"" + p + "\"\n"
		expect(t, checkHotText(t, map[string]string{"q/hot.go": hot}), "q/hot.go:5: hot path: import of "+p)
	}
}

func TestHotExemptions(t *testing.T) {
	const head = "//qpoll:hot\n\npackage q\n\nimport \"time\"\n\nfunc f() time.Time {\n"
	for _, tt := range []struct{ name, text, want string }{
		{"exempted", head + "\treturn time.Now() //qpoll:cold once per pass\n}\n", ""},
		{"no reason", head + "\treturn time.Now() //qpoll:cold\n}\n", "q/hot.go:8: //qpoll:cold needs a reason"},
		{"another line", head + "\t//qpoll:cold once per pass\n\treturn time.Now()\n}\n", "q/hot.go:8: //qpoll:cold exempts nothing|q/hot.go:9: hot path: time.Now"},
		{"unused", head + "\treturn time.Time{} //qpoll:cold once per pass\n}\n", "q/hot.go:8: //qpoll:cold exempts nothing"},
		{"not hot", "package q\n\nvar x = 1 //qpoll:cold why\n", "q/hot.go:3: //qpoll:cold exempts nothing"},
		{"unknown", "package q\n\nvar x = 1 //qpoll:warm why\n", "q/hot.go:3: unknown directive"},
		{"with a space", "// qpoll:hot\n\npackage q\n", "q/hot.go:1: unknown directive"},
		{"with words", "//qpoll:hot path\n\npackage q\n", "q/hot.go:1: unknown directive"},
		{"too late", "package q\n\nvar x = 1\n\n//qpoll:hot\n\nvar y = 2\n", "q/hot.go:5: //qpoll:hot belongs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			if tt.want != "" {
				want = strings.Split(tt.want, "|")
			}
			expect(t, checkHotText(t, map[string]string{"q/hot.go": tt.text}), want...)
		})
	}
}

func TestHotMisplacedFiles(t *testing.T) {
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	files := map[string]string{
		"q/hot_test.go":                     "//qpoll:hot\n\npackage q\n",
		"q/tagged.go":                       "//go:build never\n\n//qpoll:hot\n\npackage q\n",
		"q/q.go":                            "package q\n",
		"q/load_" + other + ".go":           "//qpoll:hot\n\npackage q\n\nvar x = 1 //qpoll:cold seen elsewhere\n",
		"q/store_" + runtime.GOARCH + ".go": "//qpoll:hot\n\npackage q\n\nfunc f() { defer g() }\n\nfunc g() {}\n",
	}
	problems := checkHotText(t, files, "q/tagged.go", "q/load_"+other+".go")
	expect(t, problems, "q/hot_test.go: a test file", "q/tagged.go: a hot file must be", "q/store_"+runtime.GOARCH+".go:5: hot path: defer")
}

func TestHotFilesReports(t *testing.T) {
	tr := tree(t, map[string]string{
		"q/hot.go":  "package q\n\n//qpoll:hot\n",
		"q/cold.go": "package q\n",
	})
	expect(t, CheckHotFiles(tr, []string{"q/hot.go", "q/cold.go", "q/gone.go"}), "q/cold.go: listed", "q/gone.go: listed")
	if n := len(HotFiles(tr)); n != 1 {
		t.Errorf("%d hot files, want 1", n)
	}
}

func TestHotLoadError(t *testing.T) {
	tr := tree(t, map[string]string{"q/hot.go": "package q\n\n//qpoll:hot\n"})
	broken := errors.New("broken")
	if _, err := CheckHot(tr, func(string) (*Package, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestCheckerErrors(t *testing.T) {
	c := checker(t)
	if _, err := c.Load("no/such/package"); err == nil {
		t.Error("no error for a package that does not exist")
	}
	if _, err := c.Check("example.com/m/q", map[string][]byte{"q/q.go": []byte("package q\n\nvar x int = \"s\"\n")}); err == nil {
		t.Error("no error for code that does not type-check")
	}
}
