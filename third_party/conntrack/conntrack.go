// Package conntrack stands in for github.com/mwitkow/go-conntrack, which prometheus/common
// imports. The original's traces use html/template, for which the linker keeps every exported
// method of the program (4 MB). Here connections are neither counted nor traced.
package conntrack

import (
	"context"
	"net"
)

type (
	options struct{ dial DialContext }
	// Option is an option of NewDialContextFunc.
	Option func(*options)
	// DialContext opens a connection.
	DialContext = func(ctx context.Context, network, address string) (net.Conn, error)
)

// DialWithTracing has no effect.
func DialWithTracing() Option { return func(*options) {} }

// DialWithName has no effect.
func DialWithName(string) Option { return func(*options) {} }

// DialWithDialContextFunc sets the function that opens connections.
func DialWithDialContextFunc(dial DialContext) Option { return func(o *options) { o.dial = dial } }

// NewDialContextFunc returns the function of the options, by default the one of a net.Dialer.
func NewDialContextFunc(all ...Option) DialContext {
	o := options{dial: (&net.Dialer{}).DialContext}
	for _, set := range all {
		set(&o)
	}
	return o.dial
}
