package gotpc

import "strings"

// operation is a row's name.
type operation struct {
	printed string // NEW_ORDER_ERR
	name    string // new_order_error
	failed  bool   // it counts failed ones
}

// newOperation returns the operation with a printed name, nil if it can't be one.
func newOperation(printed string) *operation {
	if printed == "" {
		return nil
	}
	for i := range len(printed) {
		if c := printed[i]; c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return nil
		}
	}
	base, failed := strings.CutSuffix(printed, "_ERR")
	o := &operation{printed: printed, name: strings.ToLower(base), failed: failed}
	if failed {
		o.name += "_error"
	}
	return o
}
