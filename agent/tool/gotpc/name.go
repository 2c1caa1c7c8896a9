package gotpc

import "strings"

// operation is a row's name.
type operation struct {
	printed string // NEW_ORDER_ERR
	name    string // new_order_error
	failed  bool   // it counts failed ones
}

// names remembers the operations of an output, so that no row allocates. It
// is bounded.
type names map[string]*operation

const (
	maxNames  = 128
	maxLength = 48
)

// of returns the operation with a printed name, nil if it can't be one.
func (n names) of(printed []byte) *operation {
	if o := n[string(printed)]; o != nil {
		return o
	}
	if len(n) >= maxNames || len(printed) == 0 || len(printed) > maxLength {
		return nil
	}
	for _, c := range printed {
		if c != '_' && (c < 'A' || c > 'Z') && !isDigit(c) {
			return nil
		}
	}
	s := string(printed)
	base, failed := strings.CutSuffix(s, "_ERR")
	o := &operation{printed: s, name: strings.ToLower(base), failed: failed}
	if failed {
		o.name += "_error"
	}
	n[s] = o
	return o
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
