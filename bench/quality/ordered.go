package quality

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// object is a JSON object whose keys stay in order, as servers write them.
type object []field

type field struct {
	key   string
	value any
}

// obj makes an object of keys and values in turn. A key that ends in "?" is left out when its value is absent.
func obj(pairs ...any) object {
	var o object
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != absent {
			o = append(o, field{pairs[i].(string), pairs[i+1]})
		}
	}
	return o
}

// absent is the value of a key that an object does not have.
const absent = missing(0)

type missing int

// MarshalJSON writes the keys in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(f.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint("a data set is no JSON: ", err)) // they are constants
	}
	return string(b)
}
