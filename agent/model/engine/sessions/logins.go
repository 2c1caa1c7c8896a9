package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// What new connections spend before their first statement. The server lists them as an unauthenticated user, in the state
// login while it looks up the client's name and checks the account, and in another one while it waits for the client or
// for TLS. They are counted only while clients open connections.
const (
	fromLogins = `SELECT IF(STATE = 'login', '` + checking + `', '` + exchanging + `') AS phase, COUNT(*) AS n
FROM information_schema.PROCESSLIST WHERE USER = 'unauthenticated user' GROUP BY 1`
	checking, exchanging = "checking", "exchanging"

	// manyLogins is the number of connections per second from which on they are counted.
	manyLogins = 5
	// loginsVariable counts the connections that were opened.
	loginsVariable = "Connections"
)

var (
	loginSeconds = measure.NewCounter("mysql_login_seconds_total",
		"Time that new connections needed before their first statement, summed over the connections, from samples: "+
			"in the phase checking the server looks up the client's host name and checks the account, in exchanging it "+
			"waits for the client or TLS. Counted while clients open five connections a second or more.", "phase")
	loggingIn = measure.NewEvidence(measure.Server, measure.RateOf(loginSeconds))
)

// logins adds up the time that connections need to log in.
type logins struct {
	at     time.Time
	opened float64 // connections at the previous tick
	sums   map[string]float64
}

// read counts the connections that log in, if clients opened connections since the previous tick.
func (l *logins) read(ctx context.Context, q mysql.Querier, tick *mysql.Tick, out *engine.Status) error {
	opened, known := tick.Status.Number(loginsVariable)
	seconds, grown := time.Since(l.at).Seconds(), opened-l.opened
	first := l.at.IsZero()
	l.at, l.opened = time.Now(), opened
	if l.sums == nil {
		l.sums = map[string]float64{checking: 0, exchanging: 0}
	}
	if known && !first && grown >= manyLogins*seconds {
		rows, err := q.Rows(ctx, fromLogins)
		if err != nil && !mysql.Refused(err) {
			return err
		}
		for _, row := range rows {
			if n, ok := row.Number("n"); ok {
				l.sums[row.Text("phase")] += n * min(seconds, 2)
			}
		}
	}
	for _, phase := range []string{checking, exchanging} {
		out.Set(loginSeconds, l.sums[phase], phase)
	}
	return nil
}

// ofLogins are the findings that slow logins can explain.
var ofLogins = append([]cause.Limit{cause.Outside, cause.State}, cause.CPU...)

var _ = cause.Declare(cause.Explanation{
	Engine: mysql.Name,
	Causes: []cause.Cause{
		{
			Name: "TLS handshakes", Of: ofLogins,
			Reads: "connections that log in (`unauthenticated user`), `Ssl_finished_accepts`, new connections for each transaction",
			Find:  handshakes, Test: "repeat with connections that stay open; or without TLS, for the test only: if the throughput rises, this was the cause",
		},
		{
			Name: "name resolution", Of: ofLogins,
			Reads: "new connections whose account is not checked yet (state `login`), `skip_name_resolve`, `host_cache_size`",
			Find:  nameResolution, Test: "repeat with skip_name_resolve=ON and accounts by address, or with a host_cache_size above the number of clients' hosts",
		},
		{
			Name: "authentication", Of: []cause.Limit{cause.Outside},
			Reads: "new connections whose account is not checked yet (state `login`), without TLS and name resolution, and free cores",
			Find:  authentication, Test: "repeat with connections that stay open, or with an account whose plugin asks no other service (PAM, LDAP)",
		},
	},
})

// leastLogin is the time in seconds from which on a login is slow.
const leastLogin = 1e-3

// slowLogin returns the mean time of phases of logins, by Little's law, and its part of the finding. It is false if
// logins are few or fast.
func slowLogin(v *cause.View, phases ...string) (seconds, rate, part float64, is bool) {
	rate = v.Mean(engine.OpenedConnections)
	by, spent := v.IncreaseBy(loggingIn, "phase"), 0.0
	for _, phase := range phases {
		spent += by[phase]
	}
	seconds = spent / (rate * v.Seconds)
	part = min(1, spent/(v.Seconds*v.Threads*v.Share))
	return seconds, rate, part, rate >= manyLogins && rate >= 0.5*v.Throughput && seconds >= leastLogin && part > 0
}

func handshakes(v *cause.View) (cause.Found, bool) {
	seconds, rate, part, is := slowLogin(v, checking, exchanging)
	encrypted := v.PerSecond(mysql.Handshakes)
	if !is || !(encrypted >= rate/2) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: part, Evidence: fmt.Sprintf("clients made %s TLS handshakes a second, %.2g for each transaction, and a login takes %s ms",
		table.Rounded(encrypted), encrypted/v.Throughput, table.Milliseconds.Format(seconds))}, true
}

func nameResolution(v *cause.View) (cause.Found, bool) {
	seconds, rate, part, is := slowLogin(v, checking)
	if !is || !mysql.LooksUpNames(v) {
		return cause.Found{}, false
	}
	return cause.Found{Of: "host_cache_size", Part: part, Evidence: fmt.Sprintf(
		"%s new connections a second waited %s ms each while the server looked up the client's name: "+
			"skip_name_resolve is OFF, and host_cache_size=0 forgets each name",
		table.Rounded(rate), table.Milliseconds.Format(seconds))}, true
}

// fullCores is the share of the time with all cores in use from which on the time of a login says nothing.
const fullCores = 0.3

func authentication(v *cause.View) (cause.Found, bool) {
	seconds, rate, part, is := slowLogin(v, checking)
	if !is || mysql.LooksUpNames(v) || v.PerSecond(mysql.Handshakes) >= rate/2 || !(v.FullCores < fullCores) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: part, Evidence: fmt.Sprintf("%s new connections a second needed %s ms each until the account was checked, without TLS and with free cores",
		table.Rounded(rate), table.Milliseconds.Format(seconds))}, true
}
