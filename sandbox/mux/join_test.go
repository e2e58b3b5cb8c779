package mux

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// A writes is a connection that notes how much is written at a time.
type writes struct {
	net.Conn
	sizes chan int
}

func (w writes) Write(p []byte) (int, error) {
	w.sizes <- len(p)
	return w.Conn.Write(p)
}

// TestJoined: no header of data is written alone, and what comes through is what was sent, whatever its size.
func TestJoined(t *testing.T) {
	a, b := net.Pipe()
	sizes := make(chan int, 1000)
	gateway, err := Gateway(writes{a, sizes})
	if err != nil {
		t.Fatal(err)
	}
	defer gateway.Close()
	host, err := Host(b)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	out, err := gateway.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	in, err := host.AcceptStream()
	if err != nil {
		t.Fatal(err)
	}
	for len(sizes) > 0 {
		<-sizes // what opens a stream
	}
	header := []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9} // a body that looks like a header
	for _, sent := range [][]byte{
		[]byte("x"), header, bytes.Repeat(header, 1000), bytes.Repeat([]byte("0123456789abcde\n"), 10_000),
		make([]byte, joinedMax-headerSize), make([]byte, joinedMax-headerSize+1), make([]byte, joinedMax),
	} {
		if n, err := out.Write(sent); n != len(sent) || err != nil {
			t.Fatalf("writing %d bytes: %d, %v", len(sent), n, err)
		}
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes came through as others, or not: %v", len(sent), err)
		}
		if first, want := <-sizes, min(headerSize+len(sent), joinedMax); first != want {
			t.Errorf("of %d bytes %d were written at first, want %d", len(sent), first, want)
		}
		for len(sizes) > 0 {
			<-sizes
		}
	}
}
