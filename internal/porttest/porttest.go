// Package porttest finds ports for servers that tests start, and ports where nothing listens.
package porttest

import (
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// Systems give a port from 32768 on to a program that asks for any port. So no program of another test takes a lower one
// by chance before the server of this test has begun to listen.
const lowest, beyond = 10000, 32768

// Free is an address of the loopback interface where nothing listens.
func Free(t testing.TB) (address string) {
	t.Helper()
	var err error
	for range 100 {
		port := strconv.Itoa(lowest + rand.IntN(beyond-lowest))
		var l net.Listener
		if l, err = net.Listen("tcp", ":"+port); err == nil {
			l.Close()
			return "127.0.0.1:" + port
		}
	}
	t.Fatal(err)
	return ""
}

// Answers reports whether a server answers requests at an address. That the address takes connections is not enough: a program that is
// just being started may still have the socket with which Free has tried it.
func Answers(address string) bool {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + address + "/")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return true
}
