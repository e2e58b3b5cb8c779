package jq

import (
	"reflect"

	"github.com/itchyny/gojq"
)

// visit calls f with every node of a query that is pointed to, each behind those within it: what f puts in the place of
// a node is not looked into. gojq's tree has some thirty types, of which a caller means one or two.
func visit(q *gojq.Query, f func(node any)) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				return
			}
			walk(v.Elem())
			f(v.Interface())
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(reflect.ValueOf(q))
}
