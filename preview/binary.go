package preview

import "bytes"

// magics are the first bytes of binary formats.
var magics = []struct{ magic, name string }{
	{"\x1f\x8b", "gzip"},
	{"PK\x03\x04", "zip"},
	{"PK\x05\x06", "zip"},
	{"%PDF-", "PDF"},
	{"\x89PNG\r\n\x1a\n", "PNG image"},
	{"\xff\xd8\xff", "JPEG image"},
	{"GIF87a", "GIF image"},
	{"GIF89a", "GIF image"},
	{"BZh", "bzip2"},
	{"\xfd7zXZ\x00", "xz"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"\x7fELF", "ELF program"},
	{"SQLite format 3\x00", "SQLite database"},
	{"\x00asm", "WebAssembly"},
}

const unknownFormat = "unknown format"

const binaryHead = 8 << 10 // bytes searched for NUL

// binaryName names the format of binary data, "" for text. Data with the magic BZh must also hold other bytes than ASCII.
func binaryName(head []byte) string {
	part := head[:min(len(head), binaryHead)]
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) && (m.magic[0] != 'B' || !isPlain(part)) {
			return m.name
		}
	}
	if bytes.IndexByte(part, 0) >= 0 {
		return unknownFormat
	}
	return ""
}

// isPlain reports whether b is printable ASCII and tabs.
func isPlain(b []byte) bool {
	for _, c := range b {
		if (c < ' ' && c != '\t') || c > '~' {
			return false
		}
	}
	return true
}
