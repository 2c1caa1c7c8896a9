package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Witness is a Prober whose server can be asked what holds up its sessions. Its statements read only, take no lock, and
// are bounded in what they read and return.
type Witness interface {
	Prober
	// Arm connects, so that the server can be asked when it accepts no connections. It sends at most one statement.
	Arm(ctx context.Context) error
	// Testify asks the server. What could not be read is in Missing; an error means that there is no answer.
	Testify(ctx context.Context) (*evidence.Answer, error)
}

// OptionCapture controls whether a target is asked during a stall.
const OptionCapture = "capture"

const (
	// armTime bounds the connecting of a witness, testifyTime its answer.
	armTime     = 3 * time.Second
	testifyTime = 900 * time.Millisecond
	// armAgain is how long a witness that could not connect is left alone.
	armAgain = 3 * time.Second
)

var (
	// errBusy is returned for a witness that has not answered an earlier question.
	errBusy = errors.New("no answer to an earlier question yet")
	// errNotAsked is returned for a witness that is left alone: nobody knows whether its server answers.
	errNotAsked = errors.New("not asked")
)

// Witnesses are the targets of active runs, which are asked during a stall, each with a connection of its own that is
// idle until then.
type Witnesses struct {
	open func(Target) (Prober, error)
	log  *slog.Logger

	mu     sync.Mutex
	all    map[string]*witness // by target
	runs   map[string][]string // the targets of each run
	closed bool
	wait   sync.WaitGroup
}

// witness is a target. Its mu is held while its prober is used.
type witness struct {
	target Target
	giveUp context.CancelFunc // ends the first connecting
	mu     sync.Mutex
	prober Witness // nil: not connected
	failed time.Time
	closed bool
}

// NewWitnesses returns Witnesses that are opened by open.
func NewWitnesses(open func(Target) (Prober, error), log *slog.Logger) *Witnesses {
	return &Witnesses{open: open, log: log, all: map[string]*witness{}, runs: map[string][]string{}}
}

// Arm connects to the targets of a run, in the background. Targets of earlier calls for the run that are not among them
// are given up. It does nothing after Close.
func (w *Witnesses) Arm(run string, targets []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	var names []string
	for i := range targets {
		t := &targets[i]
		if t.Options[OptionCapture] == Off {
			continue
		}
		names = append(names, t.Name)
		if old := w.all[t.Name]; old != nil && sameTarget(&old.target, t) {
			continue
		} else if old != nil {
			w.dismiss(old)
		}
		ctx, giveUp := context.WithTimeout(context.Background(), armTime)
		one := &witness{target: *t, giveUp: giveUp}
		w.all[t.Name] = one
		w.wait.Go(func() {
			defer giveUp()
			one.mu.Lock()
			defer one.mu.Unlock()
			if err := w.connect(ctx, one); err != nil {
				w.log.Debug("a target can't be asked during stalls", "target", one.target.Name, "err", err)
			}
		})
	}
	w.runs[run] = names
	w.clean()
}

// Disarm gives up the targets of a run.
func (w *Witnesses) Disarm(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, run)
	w.clean()
}

// Close gives up all targets and waits for their connections. Arm does nothing afterwards.
func (w *Witnesses) Close() {
	w.mu.Lock()
	w.closed = true
	clear(w.runs)
	w.clean()
	w.mu.Unlock()
	w.wait.Wait()
}

// clean dismisses the targets that no run has. mu is held.
func (w *Witnesses) clean() {
	for name, one := range w.all {
		used := false
		for _, names := range w.runs {
			used = used || slices.Contains(names, name)
		}
		if !used {
			w.dismiss(one)
			delete(w.all, name)
		}
	}
}

func (w *Witnesses) dismiss(one *witness) {
	one.giveUp() // a silent server holds mu until then
	w.wait.Go(func() {
		one.mu.Lock()
		defer one.mu.Unlock()
		one.closed = true
		one.drop()
	})
}

func (one *witness) drop() {
	if one.prober != nil {
		_ = one.prober.Close() // it may be lost
		one.prober = nil
	}
}

// sampled is the Witness of an engine that has none of its own: it says what its samples have.
type sampled struct{ Prober }

// Arm implements Witness.
func (s sampled) Arm(ctx context.Context) error {
	_, err := s.Probe(ctx)
	return err
}

// Testify implements Witness.
func (s sampled) Testify(ctx context.Context) (*evidence.Answer, error) {
	status, err := s.Probe(ctx)
	if err != nil {
		return nil, err
	}
	return Testimony(status), nil
}

// testimonies are the functions of DeclareTestimony.
var testimonies []func(*Status, *evidence.Answer)

// DeclareTestimony adds a function that puts the values of samples into words of evidence, for engines without a Witness
// of their own. Packages call it for a package variable.
func DeclareTestimony(f func(*Status, *evidence.Answer)) bool {
	testimonies = append(testimonies, f)
	return true
}

// Testimony returns what a sample says during a stall: what is declared, and all of its values.
func Testimony(s *Status) *evidence.Answer {
	a := &evidence.Answer{Version: s.Version, Missing: s.Missing, States: map[string]int{}}
	for _, f := range testimonies {
		f(s, a)
	}
	for i := range s.Values {
		v := &s.Values[i]
		if v.Metric == ActiveSessions && v.V > 0 {
			a.Active += int(v.V)
			a.States[OneLine(v.Labels[1])] += int(v.V)
			if kind := waitsOfClasses[v.Labels[0]]; kind != "" {
				a.Wait(kind, a.Waiting[kind]+int(v.V))
			}
			continue
		}
		a.Set(v.Name(), v.V)
	}
	return a
}

// Said returns the value of a metric in an answer that Testimony returned, unknown if there is none.
func Said(a *evidence.Answer, m *measure.Metric, labels ...string) float64 {
	return a.Number((&Value{Metric: m, Labels: labels}).Name())
}

// waitsOfClasses are the kinds of waits by the class of a session.
var waitsOfClasses = map[string]evidence.Kind{
	RowLock: evidence.RowLock, Lock: evidence.Lock, Commit: evidence.Committing,
	FlowControlWait: evidence.FlowControl, Replication: evidence.Acknowledging,
}

// connect opens the connection of a target. Its mu is held.
func (w *Witnesses) connect(ctx context.Context, one *witness) (err error) {
	if one.closed || !one.failed.IsZero() && time.Since(one.failed) < armAgain {
		return errNotAsked
	}
	target := one.target
	if target.ReadPassword != nil {
		if password, err := target.ReadPassword(); err == nil {
			target.Password = password
		}
	}
	p, err := w.open(target)
	if err != nil {
		return err
	}
	prober, ok := p.(Witness)
	if !ok {
		prober = sampled{p}
	}
	if err := prober.Arm(ctx); err != nil {
		_ = prober.Close()
		one.failed = time.Now()
		return err
	}
	one.prober, one.failed = prober, time.Time{}
	return nil
}

// Testify asks the targets of a run at once. It returns after at most a second, with an answer of each target that was
// asked.
func (w *Witnesses) Testify(ctx context.Context, run string) []evidence.Answer {
	w.mu.Lock()
	var asked []*witness
	for _, name := range w.runs[run] {
		if one := w.all[name]; one != nil {
			asked = append(asked, one)
		}
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, testifyTime)
	defer cancel()
	answers := make([]*evidence.Answer, len(asked))
	var all sync.WaitGroup
	for i, one := range asked {
		all.Go(func() { answers[i] = w.ask(ctx, one) })
	}
	all.Wait()
	found := make([]evidence.Answer, 0, len(answers))
	for _, a := range answers {
		if a != nil {
			found = append(found, *a)
		}
	}
	return found
}

// ask asks one target. It returns nil for one that is left alone.
func (w *Witnesses) ask(ctx context.Context, one *witness) (a *evidence.Answer) {
	begin := time.Now()
	fail := func(err error) *evidence.Answer {
		return &evidence.Answer{Error: OneLine(errorText(err))}
	}
	defer func() {
		if r := recover(); r != nil {
			w.log.Error("a witness panicked", "target", one.target.Name, "panic", r)
			a = &evidence.Answer{Error: "internal error"}
		}
		if a == nil {
			return
		}
		a.Target, a.Engine, a.At, a.Seconds = one.target.Name, one.target.Engine, begin, time.Since(begin).Seconds()
	}()
	if !one.mu.TryLock() {
		return fail(errBusy)
	}
	defer one.mu.Unlock()
	if one.prober == nil {
		switch err := w.connect(ctx, one); {
		case errors.Is(err, errNotAsked):
			return nil
		case err != nil:
			return fail(err)
		}
	}
	a, err := one.prober.Testify(ctx)
	if err != nil {
		one.drop()
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("no answer within 0.9 s")
		}
		return fail(err)
	}
	return a
}
