package lab

import "math"

// The inverse of the exponential distribution, in steps; fixed point, so that
// every machine draws the same.
const (
	expSteps = 4096
	expOne   = 1 << 20
)

var expTable = func() (t [expSteps]int64) {
	for i := range t {
		t[i] = int64(math.Round(-math.Log(1-float64(i)/expSteps) * expOne))
	}
	return t
}()

// expTail is what is known to be exceeded when the last step is drawn.
var expTail = int64(math.Round(math.Log(expSteps) * expOne))

// exponential draws a time of the given mean, in nanoseconds.
func (s *sim) exponential(mean float64) int64 {
	const fraction = 20
	tail := int64(0)
	for {
		bits := s.rng.Uint64()
		step := bits % expSteps
		if step == expSteps-1 { // the same distribution again, farther out
			tail += expTail
			continue
		}
		part := int64(bits >> (64 - fraction))
		x := expTable[step] + (expTable[step+1]-expTable[step])*part>>fraction
		return int64(float64(tail+x) * mean / expOne)
	}
}
