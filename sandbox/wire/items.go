package wire

import "encoding/binary"

// How many bytes an item, and the text of its answer, may have that go with others.
const (
	MaxItem   = 64 << 10
	MaxAnswer = MaxItem - statusBytes
)

const (
	sizeBytes   = 4
	statusBytes = 4
)

// AppendItem appends an item of at most [MaxItem] bytes to b.
func AppendItem(b, item []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(item))), item...)
}

// CutItem returns the first item of b and what is behind it. It reports false if the item is not whole or too large.
func CutItem(b []byte) (item, rest []byte, ok bool) {
	if len(b) < sizeBytes {
		return nil, b, false
	}
	n := binary.BigEndian.Uint32(b)
	if n > MaxItem || int(n) > len(b)-sizeBytes {
		return nil, b, false
	}
	b = b[sizeBytes:]
	return b[:n], b[n:], true
}

// AppendAnswer appends the answer to an item: the exit status of the command, and its output, or, where the status is not
// 0, its message, of at most [MaxAnswer] bytes.
func AppendAnswer(b []byte, status int, text []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(statusBytes+len(text)))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(status)))
	return append(b, text...)
}

// CutAnswer returns the first answer of b and what is behind it. It reports false if the answer is not whole or too large.
func CutAnswer(b []byte) (status int, text, rest []byte, ok bool) {
	item, rest, ok := CutItem(b)
	if !ok || len(item) < statusBytes {
		return 0, nil, b, false
	}
	return int(int32(binary.BigEndian.Uint32(item))), item[statusBytes:], rest, true
}
