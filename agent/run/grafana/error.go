package grafana

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Problem classifies a failed request for the next attempt.
type Problem uint8

const (
	Unreachable  Problem = iota // no answer, or an incomplete one
	Busy                        // Grafana is temporarily unable
	Unauthorised                // the token is missing, wrong or without the permission
	NotGrafana                  // the answer is not from Grafana's API
	Refused                     // Grafana understood and does not accept the request
)

// RequestError is a request to Grafana that failed.
type RequestError struct {
	Problem Problem
	Status  int // HTTP status; 0: no answer
	Message string
	// RetryAfter is how long Grafana asks to wait, at most maxRetryAfter.
	RetryAfter time.Duration
	Err        error
}

func (e *RequestError) Error() string {
	var parts []string
	if e.Status != 0 {
		parts = append(parts, fmt.Sprintf("grafana answered %d %s", e.Status, http.StatusText(e.Status)))
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

func (e *RequestError) Unwrap() error { return e.Err }

// IsStatus reports whether err is an answer with this status.
func IsStatus(err error, status int) bool {
	e, ok := errors.AsType[*RequestError](err)
	return ok && e.Status == status
}

func unreachableError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without method and URL, which callers name
	}
	if strings.HasPrefix(err.Error(), "failed to parse Location header") { // it quotes the header, whatever that contains
		return &RequestError{Problem: NotGrafana, Message: "it redirects, which is not followed"}
	}
	return &RequestError{Problem: Unreachable, Err: err}
}

// statusError converts an answer other than 2xx to an error.
func statusError(res *http.Response, body []byte, redactor *secret.Redactor) error {
	e := &RequestError{Status: res.StatusCode, RetryAfter: retryAfter(res.Header.Get("Retry-After"))}
	message, fromGrafana := messageOf(body)
	e.Message = table.Clip(strings.TrimSpace(redactor.Text(message)), 200)
	switch s := res.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		e.Problem = Unauthorised
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly || s == http.StatusTooManyRequests || s >= 500:
		e.Problem = Busy
	case s/100 == 3:
		e.Problem = NotGrafana
		e.Message = "it redirects, which is not followed"
		if to, err := res.Location(); err == nil {
			e.Message = fmt.Sprintf("it redirects to %s://%s, which is not followed", to.Scheme, table.Clip(redactor.Text(to.Host), 100))
		}
	case fromGrafana:
		e.Problem = Refused
	default:
		e.Problem = NotGrafana
	}
	return e
}

// messageOf returns the message of an error in Grafana's format.
func messageOf(body []byte) (string, bool) {
	var answer struct {
		Message *string `json:"message"`
	}
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || json.Unmarshal(body, &answer) != nil || answer.Message == nil {
		return "", false
	}
	return *answer.Message, true
}

// maxRetryAfter bounds how long one answer can delay requests.
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
