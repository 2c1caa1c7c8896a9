package marker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"

	"github.com/benchwatch/benchwatch/agent/run/grafana"
)

// requestError is a failed request about an annotation.
type requestError struct {
	op string // find, create, update, delete or deliver
	*grafana.RequestError
}

// contentStatuses are the statuses with which Grafana refuses a marker's content.
var contentStatuses = []int{
	http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed,
	http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
}

// newRequestError classifies err for an annotation.
func newRequestError(op string, err error) *requestError {
	e := &grafana.RequestError{Err: err}
	errors.As(err, &e)
	switch {
	case e.Problem != grafana.Refused:
	case op == "update" && e.Status == http.StatusNotFound:
		e.Problem = grafana.Busy // deleted since it was found
	case op == "find" || e.Status != 0 && !slices.Contains(contentStatuses, e.Status):
		e.Problem = grafana.NotGrafana
	}
	return &requestError{op, e}
}

func (e *requestError) Error() string { return e.op + " annotation: " + e.RequestError.Error() }

// hint is what the user can do, if anything.
func (e *requestError) hint() string {
	switch {
	case e.Problem == grafana.Unauthorised && e.Status == http.StatusForbidden:
		return "check grafana.token_file, and give the token's service account the role Editor, or the permissions " +
			"annotations:read, annotations:create and annotations:write (scope annotations:type:organization)"
	case e.Problem == grafana.Unauthorised:
		return "create a service account with the role Editor in Grafana (Administration, Users and access, Service accounts), add a token to it and put that into grafana.token_file"
	case e.Problem == grafana.NotGrafana:
		return "check that grafana.url is the address of Grafana's home page, with its sub-path if it has one"
	}
	return ""
}

// ambiguous reports whether a failed create may have been carried out, or may still be.
func (e *requestError) ambiguous() bool {
	if e.op != "create" || e.Problem == grafana.Unauthorised || e.Problem == grafana.Refused || e.Status/100 == 3 || e.Status/100 == 4 {
		return false
	}
	var op *net.OpError
	neverSent := errors.As(e.Err, &op) && op.Op == "dial"
	return !neverSent
}

// timedOut reports whether the request ended without an answer: Grafana may still carry it out.
func (e *requestError) timedOut() bool {
	return e.Status == http.StatusGatewayTimeout || e.Status == 0 &&
		(errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, os.ErrDeadlineExceeded))
}

// nothingListens reports whether the connection was refused: trying again costs nothing.
func (e *requestError) nothingListens() bool { return errors.Is(e.Err, syscall.ECONNREFUSED) }
