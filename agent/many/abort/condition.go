package abort

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Condition ends a run when it holds.
type Condition struct {
	text    string
	measure *review.Condition // nil: a query
	query   string            // PromQL
	lasting time.Duration
}

// queryPrefix begins conditions that Prometheus evaluates.
const queryPrefix = "promql:"

// Parse reads a limit of a measure such as lag>10s, or promql: and an expression, optionally
// followed by how long it has to hold: flow_control>40% for 5s.
func Parse(text string) (*Condition, error) {
	c := &Condition{text: strings.TrimSpace(text)}
	rest, isQuery := strings.CutPrefix(c.text, queryPrefix)
	if isQuery {
		c.query = rest
		// An expression may itself contain " for ": only a duration after it counts.
		if i := strings.LastIndex(c.query, " for "); i >= 0 {
			if d, err := time.ParseDuration(strings.TrimSpace(c.query[i+len(" for "):])); err == nil && d > 0 {
				c.query, c.lasting = c.query[:i], d
			}
		}
		c.query = strings.TrimSpace(c.query)
		if c.query == "" {
			return nil, fmt.Errorf("%q: no expression, expected %sup == 0", c.text, queryPrefix)
		}
		return c, nil
	}
	bound, lasting, ok := strings.Cut(c.text, " for ")
	var err error
	if c.measure, err = review.ParseCondition(bound); err != nil {
		return nil, err
	}
	if c.measure.AtEnd() {
		return nil, fmt.Errorf("%q: %s is known only at the end of a run", c.text, c.measure.Name())
	}
	if ok {
		if c.lasting, err = time.ParseDuration(strings.TrimSpace(lasting)); err != nil || c.lasting <= 0 {
			return nil, fmt.Errorf("%q: %s is not a duration such as 5s", c.text, strings.TrimSpace(lasting))
		}
	}
	return c, nil
}

// String returns the condition as the user wrote it.
func (c *Condition) String() string { return c.text }

// IsQuery reports whether Prometheus evaluates the condition.
func (c *Condition) IsQuery() bool { return c.query != "" }
