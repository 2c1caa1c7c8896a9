package engine

// Reacher is a Position that can be compared though the transactions between
// two of them can't be counted, such as an optime.
type Reacher interface {
	// Reaches reports whether the position has everything that goal has.
	Reaches(goal Position) bool
}

// Reached reports whether position has everything that goal has; false if the
// two can't be compared.
func Reached(position, goal Position) bool {
	if r, ok := position.(Reacher); ok {
		return r.Reaches(goal)
	}
	missing, ok := position.Behind(goal)
	return ok && missing == 0
}
