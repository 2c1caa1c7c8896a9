package mongodb

import (
	"math"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// document is a server's answer or a part of one. Its methods return false for a value that is
// missing, malformed or of the wrong type.
type document bson.Raw

// value returns the value at path, without a type if it is missing. The driver's own lookup panics
// if a part of the path is malformed.
func (d document) value(path ...string) (v bson.RawValue) {
	for i, key := range path {
		if i > 0 {
			sub, ok := v.DocumentOK()
			if !ok {
				return bson.RawValue{}
			}
			d = document(sub)
		}
		v, _ = bson.Raw(d).LookupErr(key) // missing
	}
	return v
}

// number returns a number of any BSON type, or a string that contains one, since the type of a
// field differs between versions. True is 1.
func (d document) number(path ...string) (float64, bool) { return number(d.value(path...)) }

func number(v bson.RawValue) (f float64, ok bool) {
	if on, isBool := v.BooleanOK(); isBool {
		if on {
			f = 1
		}
		return f, true
	}
	text, isText := v.StringValueOK()
	if n, isDecimal := v.Decimal128OK(); isDecimal {
		text, isText = n.String(), true
	}
	if !isText {
		f, ok = v.AsFloat64OK()
	} else if n, err := strconv.ParseFloat(text, 64); err == nil {
		f, ok = n, true
	}
	return f, ok && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// is reports whether a truth value, which may be a number, exists and is true.
func (d document) is(path ...string) bool {
	n, ok := d.number(path...)
	return ok && n != 0
}

func (d document) text(path ...string) string {
	s, _ := d.value(path...).StringValueOK()
	return s
}

// time returns a date; false for 1970, which servers send for "never".
func (d document) time(path ...string) (time.Time, bool) {
	ms, ok := d.value(path...).DateTimeOK()
	return time.UnixMilli(ms), ok && ms > 0
}

func (d document) sub(path ...string) (document, bool) {
	sub, ok := d.value(path...).DocumentOK()
	return document(sub), ok
}

// list returns the documents in an array and leaves out other elements.
func (d document) list(path ...string) (list []document) {
	array, _ := d.value(path...).ArrayOK()
	values, _ := array.Values()
	for _, v := range values {
		if sub, ok := v.DocumentOK(); ok {
			list = append(list, document(sub))
		}
	}
	return list
}

// numbers calls f for each number directly in the document at path.
func (d document) numbers(f func(key string, n float64), path ...string) {
	sub, _ := d.sub(path...)
	elements, _ := bson.Raw(sub).Elements() // the valid ones
	for _, e := range elements {
		if n, ok := number(e.Value()); ok {
			f(e.Key(), n)
		}
	}
}

// texts returns the texts in an array, without anything else.
func (d document) texts(path ...string) (list []string) {
	array, ok := d.value(path...).ArrayOK()
	if !ok {
		return nil
	}
	values, err := array.Values()
	if err != nil {
		return nil
	}
	for _, v := range values {
		if text, ok := v.StringValueOK(); ok && text != "" {
			list = append(list, text)
		}
	}
	return list
}
