package main

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Variables by which runtimes of MCP servers, such as ToolHive, say how a server is reached. Flags come first.
const (
	transportVariable = "MCP_TRANSPORT"
	portVariable      = "MCP_PORT"
	hostVariable      = "MCP_HOST"
)

// usualPort is that of a runtime that names none.
const usualPort = "8808"

// fromRuntime takes the address from the variables of a runtime, where there is no --listen. In a container with a network
// of its own that is the container's address: its loopback is nobody else's, and the runtime decides who reaches the other.
// Elsewhere it is the loopback.
func (l *listenFlags) fromRuntime(p *program) error {
	if l.address != "" {
		return nil
	}
	switch transport := p.env[transportVariable]; transport {
	case "", "stdio":
		return nil
	case "streamable-http", "http":
	default:
		return configError("start it with streamable-http", fmt.Errorf("%s=%s: that is not served", transportVariable, cut(transport, 40)))
	}
	port := p.env[portVariable]
	if port == "" {
		port = usualPort
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return configError("give a number below 65536", fmt.Errorf("%s=%s is not a port", portVariable, cut(port, 40)))
	}
	host := p.env[hostVariable]
	own, inside := machineAddress()
	switch ip, err := netip.ParseAddr(host); {
	case inside && (host == "" || isLoopback(host) || err == nil && (ip.IsUnspecified() || ip == own)):
		l.address, l.contained = net.JoinHostPort(own.String(), port), true
	case host == "":
		l.address = net.JoinHostPort("127.0.0.1", port)
	default:
		l.address = net.JoinHostPort(host, port)
	}
	return nil
}

// machineAddress is the address of this container in a network of its own, if it is one and has that.
func machineAddress() (netip.Addr, bool) {
	name, err := os.Hostname()
	if err != nil {
		return netip.Addr{}, false
	}
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return netip.Addr{}, false
	}
	return ownAddress(name, hosts, localAddresses())
}

// localAddresses are those of the interfaces.
func localAddresses() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var addresses []netip.Addr
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			addresses = append(addresses, prefix.Addr())
		}
	}
	return addresses
}

// containerName is the name that docker and podman give a container that nobody names. On a machine, or in a container
// with the machine's network, names are other.
var containerName = regexp.MustCompile(`^[0-9a-f]{12}$`)

// podHosts begins the file of a pod with a network of its own; that of one with the machine's begins otherwise.
var podHosts = []byte("# Kubernetes-managed hosts file.\n")

// ownAddress finds the address of a container in its file of hosts. It must be one that the container has.
func ownAddress(name string, hosts []byte, local []netip.Addr) (netip.Addr, bool) {
	if !containerName.MatchString(name) && !bytes.HasPrefix(hosts, podHosts) {
		return netip.Addr{}, false
	}
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 || !slices.Contains(fields[1:], name) {
			continue
		}
		ip, err := netip.ParseAddr(fields[0])
		if err == nil && !ip.IsLoopback() && !ip.IsUnspecified() && slices.Contains(local, ip) {
			return ip, true
		}
	}
	return netip.Addr{}, false
}
