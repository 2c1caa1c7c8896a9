// Package evidence is what servers and machines say while a run stalls, and how that becomes a reason.
//
// The package of an engine that can be asked during a stall returns an [Answer]: its sessions, whom they wait for, and
// values. It declares the reasons that its answers can prove:
//
//	var _ = evidence.Declare(evidence.Rules{
//		Engine:  "mysql",
//		Reasons: []evidence.Reason{{Name: "checkpoint", Reads: "…", Part: atCheckpoint, Text: checkpointText}},
//	})
//
// Waits for a session are explained for every engine by the tree of who waits for whom. Nothing outside of an engine's
// package knows the engine by name.
package evidence

import (
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Kind is what a session waits for, as it is named in a reason.
type Kind string

// The kinds of waits that several engines have. Engines may have others.
const (
	RowLock       Kind = "row lock"
	Lock          Kind = "lock"
	TableLock     Kind = "table lock"
	MetadataLock  Kind = "metadata lock"
	GlobalLock    Kind = "global read lock"
	BackupLock    Kind = "backup lock"
	UserLock      Kind = "user-level lock"
	FlowControl   Kind = "flow control"
	Committing    Kind = "commit"
	LogWrite      Kind = "write of the log"
	OtherNodes    Kind = "other nodes of the cluster"
	Acknowledging Kind = "acknowledgement of a replica"
)

// Session is a session of a server that waits, holds something, or is old. Texts have no literals.
type Session struct {
	ID   string `json:"id"`
	User string `json:"user,omitempty"`
	Host string `json:"host,omitempty"`
	// Statement is what it executes or, if it is idle, what it executed last, if that is known.
	Statement string `json:"statement,omitempty"`
	Idle      bool   `json:"idle,omitempty"`
	State     string `json:"state,omitempty"`
	// Seconds is for how long it has executed the statement or been idle, Transaction the age of its transaction.
	Seconds     series.Optional[float64] `json:"seconds,omitzero"`
	Transaction series.Optional[float64] `json:"transaction_seconds,omitzero"`
	// Waits is what the session waits for; nil: nothing that is known.
	Waits *Wait `json:"waits,omitempty"`
	// Holds is what it holds, in words, if others may wait for that.
	Holds string `json:"holds,omitempty"`
	// Own: the session is one that the agent opened.
	Own bool `json:"-"`
}

// Wait is what a session waits for.
type Wait struct {
	Kind Kind `json:"kind"`
	// On names the object, such as a table and index.
	On string `json:"on,omitempty"`
	// By are the sessions that hold it or come before; none if they are not known. Likely: it follows from when their
	// transactions began, the server does not list it.
	By     []string `json:"by,omitempty"`
	Likely bool     `json:"likely,omitempty"`
}

// Answer is what a server or machine said at one moment.
type Answer struct {
	Target  string `json:"target"`
	Engine  string `json:"engine"`
	Version string `json:"version,omitempty"`
	// At is when it was asked, Seconds how long it took to answer.
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`

	Sessions []Session `json:"sessions,omitempty"`
	// Waiting is how many sessions wait, by kind, and Active how many execute a statement: of all sessions, of which only
	// some are listed.
	Waiting map[Kind]int `json:"waiting,omitempty"`
	Active  int          `json:"active,omitempty"`
	// Connected is how many sessions there are, also idle ones; 0 if it is unknown, or if a request can wait for a session
	// that seems idle.
	Connected int `json:"connected,omitempty"`
	// Queued is how many clients wait in a proxy, so that no server has a session for them.
	Queued float64 `json:"queued,omitempty"`
	// States counts the active sessions by the server's name of their state.
	States map[string]int `json:"states,omitempty"`
	// Values are numbers by the server's names, counters as they are, Texts are other facts. A text with the name of a
	// kind says who is waited for.
	Values map[string]float64 `json:"values,omitempty"`
	Texts  map[string]string  `json:"texts,omitempty"`
	// Missing is what could not be read, and why. Error is why there is no answer.
	Missing []string `json:"missing,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Limits of an answer.
const (
	// MostSessions is how many sessions an engine returns, and MostWaits how many waits it reads.
	MostSessions = 60
	MostWaits    = 500
	mostNames    = 400
	longestText  = 1000
	longestName  = 200
)

// Set adds a value.
func (a *Answer) Set(name string, v float64) {
	if a.Values == nil {
		a.Values = map[string]float64{}
	}
	if len(a.Values) < mostNames && series.IsKnown(v) {
		a.Values[name] = v
	}
}

// Say adds a fact that is no number.
func (a *Answer) Say(name, text string) {
	if a.Texts == nil {
		a.Texts = map[string]string{}
	}
	if len(a.Texts) < mostNames && text != "" {
		a.Texts[name] = clip(text, longestText)
	}
}

// Wait counts sessions that wait.
func (a *Answer) Wait(kind Kind, n int) {
	if a.Waiting == nil {
		a.Waiting = map[Kind]int{}
	}
	a.Waiting[kind] = max(a.Waiting[kind], n)
}

// Session returns the session with an id, nil if the answer has none.
func (a *Answer) Session(id string) *Session {
	for i := range a.Sessions {
		if a.Sessions[i].ID == id {
			return &a.Sessions[i]
		}
	}
	return nil
}

// Add returns the session with an id, added if there is none yet; nil if there are too many.
func (a *Answer) Add(id string) *Session {
	if s := a.Session(id); s != nil {
		return s
	}
	if len(a.Sessions) >= 4*MostSessions || id == "" {
		return nil
	}
	a.Sessions = append(a.Sessions, Session{ID: clip(id, longestName)})
	return &a.Sessions[len(a.Sessions)-1]
}

// Block notes that a session waits for another one.
func (a *Answer) Block(waiting, holder string, kind Kind, on string) {
	s := a.Add(waiting)
	if s == nil || waiting == holder {
		return
	}
	if s.Waits == nil {
		s.Waits = &Wait{Kind: kind, On: clip(on, longestName)}
	}
	if holder != "" && len(s.Waits.By) < 8 && !slices.Contains(s.Waits.By, holder) && a.Add(holder) != nil {
		a.Session(waiting).Waits.By = append(a.Session(waiting).Waits.By, holder)
	}
}

// Number returns a value, unknown if the answer has none.
func (a *Answer) Number(name string) float64 {
	if v, ok := a.Values[name]; ok {
		return v
	}
	return series.Unknown()
}

// Moment is the answers of a run's servers and machines at one moment.
type Moment struct {
	At      time.Time `json:"at"`
	Answers []Answer  `json:"answers"`
	// Seconds is how many seconds of a stall are nearest to it. If no moment has any, all count alike.
	Seconds float64 `json:"-"`
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 { // not within a character
		n--
	}
	return s[:n] + "…"
}
