package marker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/secret"
)

// problem is what a failed request means for the next attempt.
type problem uint8

const (
	unreachable  problem = iota // no answer, or only a part of one
	busy                        // Grafana can't now
	unauthorised                // the token is missing, wrong or without the permission
	notGrafana                  // what answers is not Grafana's API
	refused                     // Grafana understood and does not accept this marker
)

// requestError is a request to Grafana that failed.
type requestError struct {
	op         string
	problem    problem
	status     int // 0: no answer
	message    string
	retryAfter time.Duration
	err        error
}

func (e *requestError) Error() string {
	s := e.op + " annotation"
	if e.status != 0 {
		s += fmt.Sprintf(": grafana answered %d %s", e.status, http.StatusText(e.status))
	}
	if e.message != "" {
		s += ": " + e.message
	}
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

func (e *requestError) Unwrap() error { return e.err }

// hint is what the user can do, if anything.
func (e *requestError) hint() string {
	switch {
	case e.problem == unauthorised && e.status == http.StatusForbidden:
		return "check grafana.token_file, and give the token's service account the role Editor, or the permissions annotations:read, annotations:create and annotations:write (scope annotations:type:organization)"
	case e.problem == unauthorised:
		return "create a service account with the role Editor in Grafana (Administration, Users and access, Service accounts), add a token to it and put that into grafana.token_file"
	case e.problem == notGrafana:
		return "check that grafana.url is the address of Grafana's home page, with its sub-path if it has one"
	}
	return ""
}

// ambiguous reports whether a create may have been carried out, or may yet be,
// although it failed.
func (e *requestError) ambiguous() bool {
	if e.op != "create" || e.problem == unauthorised || e.problem == refused || e.status/100 == 3 || e.status/100 == 4 {
		return false
	}
	var op *net.OpError
	neverSent := errors.As(e.err, &op) && op.Op == "dial"
	return !neverSent
}

// timedOut reports whether the request was given up for lack of an answer: Grafana may
// still carry out the request.
func (e *requestError) timedOut() bool {
	return e.status == http.StatusGatewayTimeout || e.status == 0 &&
		(errors.Is(e.err, context.DeadlineExceeded) || errors.Is(e.err, context.Canceled) || errors.Is(e.err, os.ErrDeadlineExceeded))
}

// nothingListens reports whether the connection was refused: asking again costs nothing.
func (e *requestError) nothingListens() bool { return errors.Is(e.err, syscall.ECONNREFUSED) }

func unreachableError(op string, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without method and URL, which the log line has anyway
	}
	if strings.HasPrefix(err.Error(), "failed to parse Location header") { // it quotes that, whatever it holds
		return &requestError{op: op, problem: notGrafana, message: "it redirects, which is not followed"}
	}
	return &requestError{op: op, problem: unreachable, err: err}
}

// contentStatuses are those with which Grafana refuses a marker for its content.
var contentStatuses = []int{
	http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed,
	http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
}

// statusError makes an answer other than 2xx into an error.
func statusError(op string, res *http.Response, body []byte, redactor *secret.Redactor) error {
	e := &requestError{op: op, status: res.StatusCode, retryAfter: retryAfter(res.Header.Get("Retry-After"))}
	message, fromGrafana := grafanaMessage(body)
	e.message = redactor.Text(message)
	switch s := res.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		e.problem = unauthorised
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly || s == http.StatusTooManyRequests || s >= 500:
		e.problem = busy
	case op == "update" && s == http.StatusNotFound && fromGrafana:
		e.problem = busy // deleted since it was found
	case s/100 == 3:
		e.problem = notGrafana
		e.message = "it redirects, which is not followed"
		if to, err := res.Location(); err == nil {
			e.message = fmt.Sprintf("it redirects to %s://%s, which is not followed", to.Scheme, redactor.Text(shorten(plain(to.Host), 100)))
		}
	case fromGrafana && op != "find" && slices.Contains(contentStatuses, s):
		e.problem = refused
	default:
		e.problem = notGrafana
	}
	return e
}

// grafanaMessage returns the message of an error in Grafana's form.
func grafanaMessage(body []byte) (string, bool) {
	var answer struct {
		Message *string `json:"message"`
	}
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || json.Unmarshal(body, &answer) != nil || answer.Message == nil {
		return "", false
	}
	return shorten(strings.ReplaceAll(plain(*answer.Message), "\n", " "), 200), true
}

// maxRetryAfter bounds how long one answer can put deliveries off.
const maxRetryAfter = 10 * time.Minute

// retryAfter reads the header: seconds, or a date.
func retryAfter(value string) time.Duration {
	var d time.Duration
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), maxRetryAfter)
}
