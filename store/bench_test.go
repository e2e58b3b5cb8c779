package store_test

import (
	"fmt"
	"testing"

	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// BenchmarkPutGet writes a new object and reads it.
func BenchmarkPutGet(b *testing.B) {
	keys := readKeys(b, line("one", 'a'))
	for _, kind := range []struct {
		name string
		open func(b *testing.B) store.Store
	}{
		{"directory", func(b *testing.B) store.Store { return openDirectory(b, b.TempDir()) }},
		{"sealed directory", func(b *testing.B) store.Store { return store.Seal(openDirectory(b, b.TempDir()), keys) }},
		{"S3", func(b *testing.B) store.Store { return openS3(b, storetest.S3(b)) }},
		{"sealed S3", func(b *testing.B) store.Store { return store.Seal(openS3(b, storetest.S3(b)), keys) }},
	} {
		for _, size := range []int{4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d KiB", kind.name, size>>10), func(b *testing.B) {
				s, data, n := kind.open(b), text(size), 0
				b.SetBytes(int64(size))
				for b.Loop() {
					name := fmt.Sprint("runs/", n)
					n++
					if err := put(b.Context(), s, name, data); err != nil {
						b.Fatal(err)
					}
					if got, err := get(b.Context(), s, name); err != nil || len(got) != size {
						b.Fatal(len(got), err)
					}
				}
			})
		}
	}
}
