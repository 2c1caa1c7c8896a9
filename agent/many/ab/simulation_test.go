package ab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/analysis"
	"github.com/benchwatch/benchwatch/internal/simulation"
)

// machine is a throughput over the seconds of some hours, as public logs and shared machines show it.
type machine struct {
	name string
	// dependence of neighbouring seconds, whose standard deviation is 4 %.
	dependence float64
	// wander is the standard deviation of a level that changes over ten minutes, drift the change in
	// an hour, wave the amplitude over a day.
	wander, drift, wave float64
	// bursts are neighbours that take 20 % for 10 to 60 s, so many in an hour; a periodic one comes
	// every period seconds for half of them.
	bursts int
	period int
	// restless is the standard deviation of what the blocks of the second arm differ by themselves.
	restless float64
	// tails: the noise of the seconds has Student's distribution with 3 degrees of freedom, and one second in 200 is a
	// stall.
	tails bool
	// undecided is the share of comparisons that do not find 5 % within the hour, if that is more than 5 %.
	undecided float64
}

var machines = []machine{
	{name: "steady, seconds depend little", dependence: 0.3},
	{name: "steady, seconds depend much", dependence: 0.9},
	{name: "level wanders", dependence: 0.6, wander: 0.03},
	{name: "drift and daily wave", dependence: 0.6, wander: 0.01, drift: -0.2, wave: 0.15},
	{name: "heavy tails and stalls", dependence: 0.6, wander: 0.02, tails: true},
	{name: "a neighbour that comes and goes", dependence: 0.6, wander: 0.02, bursts: 40, undecided: 0.35},
	{name: "a periodic neighbour, 18 s", dependence: 0.3, period: 18},
	{name: "a periodic neighbour, as long as a pair", dependence: 0.3, period: 24},
	{name: "a periodic neighbour, 36 s", dependence: 0.3, period: 36, undecided: 0.16},
	{name: "a periodic neighbour, 44 s", dependence: 0.3, period: 44, undecided: 0.2},
	{name: "a periodic neighbour, as long as a round", dependence: 0.3, period: 60, undecided: 0.13},
	{name: "the second arm has three times the noise", dependence: 0.3, restless: 0.05},
	{name: "dependence, wander, drift, wave and tails", dependence: 0.8, wander: 0.03, drift: -0.1, wave: 0.1, tails: true},
	{name: "all together", dependence: 0.8, wander: 0.03, drift: -0.1, wave: 0.1, tails: true, bursts: 20, undecided: 0.13},
}

// seconds returns n seconds of the machine, around 1.
func (m *machine) seconds(random *rand.Rand, n int) []float64 {
	noise := simulation.Process{Dependence: m.dependence}.Values(random, n)
	level := simulation.Process{Dependence: math.Exp(-1.0 / 600)}.Values(random, n)
	phase := random.Float64()
	values := make([]float64, n)
	for i := range values {
		hours := float64(i) / 3600
		v := 0.04 * noise[i]
		if m.tails { // about the same spread, and far outliers
			v = 0.025 * noise[i] / math.Sqrt((math.Pow(random.NormFloat64(), 2)+math.Pow(random.NormFloat64(), 2)+math.Pow(random.NormFloat64(), 2))/3)
		}
		values[i] = (1 + m.drift*hours) * (1 + m.wave*math.Sin(2*math.Pi*(hours/24+phase))) * math.Exp(m.wander*level[i]) * max(0.02, 1+v)
		if m.tails && random.IntN(200) == 0 {
			values[i] = 0
		}
		if m.period > 0 && (i+int(phase*float64(m.period)))%m.period < m.period/2 {
			values[i] *= 0.9
		}
	}
	for range m.bursts * n / 3600 {
		at := random.IntN(n)
		for i := at; i < min(n, at+10+random.IntN(50)); i++ {
			values[i] *= 0.8
		}
	}
	return values
}

const (
	simulatedBlock, simulatedCut, simulatedGap = 10, 1, 2 // seconds
	simulatedHours                             = 1
)

// trial is one comparison on a machine: its estimates after each pair.
type trial struct {
	plan     Plan
	values   []float64
	random   *rand.Rand
	restless float64
	// effect is the ratio of the second arm; carryOver is the share that a block loses after a block
	// of the second arm.
	effect, carryOver float64

	blocks []Block
	at     int
	round  int
}

// block runs a block, and reports whether there is time for it.
func (s *trial) block(arm string, round int) bool {
	end := s.at + simulatedBlock
	if end > len(s.values) {
		return false
	}
	sum := 0.0
	for _, v := range s.values[s.at+simulatedCut : end] {
		sum += v / (simulatedBlock - simulatedCut)
	}
	if arm == "b" {
		sum *= s.effect * math.Exp(s.restless*s.random.NormFloat64())
	}
	if len(s.blocks) > 0 && s.blocks[len(s.blocks)-1].Arm == "b" {
		sum *= 1 - s.carryOver
	}
	s.blocks = append(s.blocks, Block{Arm: arm, Round: round, Measured: map[string]float64{"tps": sum}, Seconds: simulatedBlock + simulatedGap})
	s.at = end + simulatedGap
	return true
}

// run calls after each pair until that returns false or the time is over.
func (s *trial) run(after func() bool) {
	for ; ; s.round++ {
		order := s.plan.Round(s.round)
		if !s.block(s.plan.alias(order[0]), -1) {
			return
		}
		for i, arm := range order {
			if !s.block(arm, s.round) || i%2 == 1 && !after() {
				return
			}
		}
	}
}

func newTrial(m *machine, seed uint64, effect float64) *trial {
	random := rand.New(rand.NewPCG(seed, math.MaxUint64)) // the plan draws from the numbers of its rounds
	return &trial{
		plan:   Plan{Arms: []Arm{{Name: "a"}, {Name: "b"}}, Seed: seed, Measure: "tps", Limit: 0.05, MaxSeconds: 3600},
		values: m.seconds(random, simulatedHours*3600), random: random, restless: m.restless, effect: effect,
	}
}

// The interval misses the true ratio at any time in at most 5 % of the comparisons, and A against A
// is called different in no more, whatever the machine does: drift, waves, bursts, heavy tails, and
// neighbours that keep time with the blocks.
func TestFalseVerdicts(t *testing.T) {
	repeat := simulation.Repeats(t, 60)
	for i := range machines {
		m := &machines[i]
		different, missed, missedFive := 0, 0, 0
		for seed := range uint64(repeat) {
			one := newTrial(m, seed, 1)
			isDifferent, isMissed := false, false
			one.run(func() bool {
				e := one.plan.Compare(one.blocks, "tps").Arms[0]
				isMissed = isMissed || e.Low.Known && (e.Low.Value > 1 || e.High.Value < 1)
				isDifferent = isDifferent || e.Verdict == Different
				return !isDifferent
			})
			five := newTrial(m, seed+1e6, 0.95)
			five.run(func() bool {
				e := five.plan.Compare(five.blocks, "tps").Arms[0]
				if e.Low.Known && (e.Low.Value > 0.95 || e.High.Value < 0.95) {
					missedFive++
					return false
				}
				return true
			})
			if isDifferent {
				different++
			}
			if isMissed {
				missed++
			}
		}
		t.Logf("%-42s A/A called different %.2f %%, interval ever without 1 %.2f %%, ever without 0.95 %.2f %% of %d", m.name,
			simulation.Percent(different, repeat), simulation.Percent(missed, repeat), simulation.Percent(missedFive, repeat), repeat)
		simulation.CheckShare(t, m.name+", A/A", different, repeat, alpha, 3)
		simulation.CheckShare(t, m.name+", coverage of 1", missed, repeat, alpha, 3)
		simulation.CheckShare(t, m.name+", coverage of 0.95", missedFive, repeat, alpha, 3)
	}
}

// Orders of 4 and 4 runs.
const (
	alternating = "abababab"
	successive  = "aaaabbbb" // as if the first arm's were of an earlier job
)

// fourAndFour reports whether 4 and 4 runs of this length and order differ by the rank test of
// compare.
func fourAndFour(m *machine, order string, seed uint64, effect float64, seconds int) bool {
	random := rand.New(rand.NewPCG(seed, 1))
	values := m.seconds(random, 8*(seconds+simulatedGap))
	var runs [2][]float64
	for i, arm := range order {
		sum := 0.0
		for _, v := range values[i*(seconds+simulatedGap)+simulatedCut : i*(seconds+simulatedGap)+seconds] {
			sum += v / float64(seconds-simulatedCut)
		}
		if arm == 'b' {
			sum *= effect * math.Exp(m.restless*math.Sqrt(simulatedBlock/float64(seconds))*random.NormFloat64())
		}
		runs[arm-'a'] = append(runs[arm-'a'], sum)
	}
	return analysis.CompareRanks(runs[0], runs[1]).Both() <= 0.05
}

// fourAndFourNeed returns the minutes of the shortest 4 and 4 runs that find a difference in at least half of the
// comparisons, and call equal arms different in at most 5 % (and what chance adds); infinite if none does.
func fourAndFourNeed(m *machine, order string, effect float64, repeat int) (minutes float64, lengths string) {
	minutes = math.Inf(1)
	for _, seconds := range []int{30, 60, 120, 300, 600, 1200} {
		found, wrong := 0, 0
		for seed := range uint64(repeat) {
			if fourAndFour(m, order, seed, effect, seconds) {
				found++
			}
			if fourAndFour(m, order, seed+1e6, 1, seconds) {
				wrong++
			}
		}
		lengths += fmt.Sprintf(", %d s %.0f %% (A/A %.0f %%)", seconds, simulation.Percent(found, repeat), simulation.Percent(wrong, repeat))
		n := float64(repeat)
		if math.IsInf(minutes, 1) && 2*found >= repeat && float64(wrong) <= alpha*n+2*math.Sqrt(alpha*(1-alpha)*n) {
			minutes = float64(8*(seconds+simulatedGap)) / 60
		}
	}
	return minutes, lengths
}

// A difference of 5 % is found within the hour. make simulations also prints how many minutes 4 and 4 runs need.
func TestTimeToFind(t *testing.T) {
	repeat := simulation.Repeats(t, 40)
	for i := range machines {
		m := &machines[i]
		for _, effect := range []float64{0.95, 0.98} {
			var minutes []float64
			found, equivalent := 0, 0
			for seed := range uint64(repeat) {
				one := newTrial(m, seed, effect)
				at := math.Inf(1)
				one.run(func() bool {
					e := one.plan.Compare(one.blocks, "tps").Arms[0]
					if e.Verdict != Undecided {
						if e.Verdict == Different {
							at = spent(one.blocks).Minutes()
							found++
						} else {
							equivalent++
						}
						return false
					}
					return true
				})
				minutes = append(minutes, at)
			}
			slices.Sort(minutes) // those that did not find it last
			median := minutes[len(minutes)/2]
			t.Logf("%-42s %.0f %%: found %.0f %%, equivalent %.0f %%, median %.1f min", m.name, 100*(1-effect), simulation.Percent(found, repeat),
				simulation.Percent(equivalent, repeat), median)
			if effect != 0.95 {
				continue
			}
			simulation.CheckShare(t, m.name+", 5 % not found", repeat-found, repeat, max(0.05, m.undecided), 3)
			if simulation.Asked() {
				for _, order := range []string{alternating, successive} {
					need, lengths := fourAndFourNeed(m, order, effect, repeat)
					t.Logf("%-42s 4 + 4 runs %s need %.0f min, ratio %.2f%s", "", order, need, median/need, lengths)
				}
			}
		}
	}
}
