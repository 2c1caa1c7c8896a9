// Package series holds values over time: a [Table] of columns on one axis, rates of counters, and
// the project's one representation of "unknown".
//
// A single value that may be unknown is an [Optional]. In a column an unknown value is NaN
// ([Unknown]), since a column of a long run has a million values. Both become null in JSON, or are
// left out. Only this package converts between them.
package series

import (
	"encoding/json"
	"math"
)

// Optional is a value that may be unknown. The zero Optional is unknown, which is not the same as
// 0. With the tag `json:",omitzero"` an unknown value is left out of JSON; otherwise it is null.
type Optional[T any] struct {
	Value T
	Known bool
}

// Some returns a known value.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Known: true} }

// IsZero reports whether the value is unknown, for `json:",omitzero"`.
func (o Optional[T]) IsZero() bool { return !o.Known }

// MarshalJSON returns the value, or null if it is unknown or not a finite number.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if f, ok := any(o.Value).(float64); !o.Known || ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// UnmarshalJSON reads a value; null is unknown.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{}
	if string(data) == "null" {
		return nil
	}
	if err := json.Unmarshal(data, &o.Value); err != nil {
		return err
	}
	o.Known = true
	return nil
}

// Unknown returns the value of a row about which nothing is known: NaN.
func Unknown() float64 { return math.NaN() }

// IsKnown reports whether a column's value v is known.
func IsKnown(v float64) bool { return !math.IsNaN(v) }

// Of returns a column's value as an Optional.
func Of(v float64) Optional[float64] {
	if !IsKnown(v) {
		return Optional[float64]{}
	}
	return Some(v)
}

// Number returns o as a column's value.
func Number[T ~int | ~int64 | ~uint64 | ~float64](o Optional[T]) float64 {
	if !o.Known {
		return Unknown()
	}
	return float64(o.Value)
}
