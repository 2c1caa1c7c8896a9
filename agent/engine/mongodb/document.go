package mongodb

import (
	"math"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// document is a server's answer, or a part of one. Its methods return false for a
// value that is missing, malformed or of another type.
type document bson.Raw

func (d document) value(path []string) (bson.RawValue, bool) {
	v, err := bson.Raw(d).LookupErr(path...)
	return v, err == nil
}

// number returns a number of any BSON type, or one written as a string: which
// type a field has differs from version to version.
func (d document) number(path ...string) (float64, bool) {
	v, ok := d.value(path)
	if !ok {
		return 0, false
	}
	return number(v)
}

func number(v bson.RawValue) (f float64, ok bool) {
	var err error
	switch v.Type {
	case bson.TypeDecimal128:
		n, known := v.Decimal128OK()
		f, err = strconv.ParseFloat(n.String(), 64)
		ok = known && err == nil
	case bson.TypeString:
		text, known := v.StringValueOK()
		f, err = strconv.ParseFloat(text, 64)
		ok = known && err == nil
	default:
		f, ok = v.AsFloat64OK()
	}
	return f, ok && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// boolean returns a truth value, also one given as a number.
func (d document) boolean(path ...string) (value, ok bool) {
	v, ok := d.value(path)
	if !ok {
		return false, false
	}
	if b, ok := v.BooleanOK(); ok {
		return b, true
	}
	n, ok := number(v)
	return n != 0, ok
}

// is reports whether a truth value is there and true.
func (d document) is(path ...string) bool {
	value, _ := d.boolean(path...)
	return value
}

func (d document) text(path ...string) string {
	v, ok := d.value(path)
	if !ok {
		return ""
	}
	s, _ := v.StringValueOK()
	return s
}

// time returns a date; false for the year 1970, which servers send for "never".
func (d document) time(path ...string) (time.Time, bool) {
	v, ok := d.value(path)
	if !ok {
		return time.Time{}, false
	}
	ms, ok := v.DateTimeOK()
	if !ok || ms <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

func (d document) sub(path ...string) (document, bool) {
	v, ok := d.value(path)
	if !ok {
		return nil, false
	}
	sub, ok := v.DocumentOK()
	return document(sub), ok
}

// list returns the documents of an array, without its other elements.
func (d document) list(path ...string) []document {
	v, ok := d.value(path)
	if !ok {
		return nil
	}
	array, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	values, err := array.Values()
	if err != nil {
		return nil
	}
	var list []document
	for _, v := range values {
		if sub, ok := v.DocumentOK(); ok {
			list = append(list, document(sub))
		}
	}
	return list
}

// numbers calls f for the numbers directly in the document at path.
func (d document) numbers(f func(key string, n float64), path ...string) {
	sub, ok := d.sub(path...)
	if !ok {
		return
	}
	elements, err := bson.Raw(sub).Elements()
	if err != nil {
		return
	}
	for _, e := range elements {
		key, err := e.KeyErr()
		if err != nil {
			continue
		}
		v, err := e.ValueErr()
		if err != nil {
			continue
		}
		if n, ok := number(v); ok {
			f(key, n)
		}
	}
}
