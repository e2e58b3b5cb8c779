package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// A lineServer is a server on standard input and output that is called without an SDK: for a large result, the SDK would
// take most of the time.
type lineServer struct {
	pid int
	in  io.Writer
	out *bufio.Reader
	id  int
}

// startLines starts a server. It ends with the stack.
func startLines(s *stack, cmd *exec.Cmd) (*lineServer, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.push(func() error { return errors.Join(in.Close(), cmd.Wait()) })
	l := &lineServer{pid: cmd.Process.Pid, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	_, err = l.request("initialize", `{"protocolVersion":"`+sessionEra+`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	if err == nil {
		_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return l, err
}

// request returns the line with the answer to a request.
func (l *lineServer) request(method, params string) ([]byte, error) {
	l.id++
	if _, err := fmt.Fprintf(l.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", l.id, method, params); err != nil {
		return nil, err
	}
	id := fmt.Appendf(nil, `"id":%d`, l.id)
	for {
		line, err := l.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("waiting for an answer to %s: %w", method, err)
		}
		ends := [][]byte{line[:min(len(line), 100)], line[max(0, len(line)-100):]} // the id is at one of them
		if bytes.Contains(ends[0], id) || bytes.Contains(ends[1], id) {
			return line, nil
		}
	}
}

// call calls a tool, which may not fail.
func (l *lineServer) call(tool, args string) ([]byte, error) {
	answer, err := l.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	if err == nil && (bytes.Contains(answer, []byte(`"isError":true`)) || !bytes.Contains(answer, []byte(`"result"`))) {
		err = fmt.Errorf("%s answered %.400s", tool, answer)
	}
	return answer, err
}
