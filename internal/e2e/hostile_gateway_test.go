//go:build linux && !race

package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The bounds that a gateway keeps under attack.
const (
	attackedData = 1 << 20 // RLIMIT_DATA, in KiB
	mixedData    = 4 << 20 // in TestHostileMix: the limit also counts address space whose memory was given back
	attackedRSS  = 512     // MiB
	mixedRSS     = 640     // with the garbage of one attack when the next begins
)

var (
	attackPatience = flag.Duration("attack-patience", 2*time.Second, "how long a second caller of TestHostile may wait, and how much longer an attack may take than it says")
	attackMix      = flag.Duration("attack-mix", 0, "how long TestHostileMix attacks one gateway with all attacks in turn; 0 skips it")
)

// An attack is one way to hurt a gateway.
type attack struct {
	name    string
	servers func(t *testing.T) object // attached besides the harmless one; nil: none
	args    []string                  // more arguments of mcsh serve
	within  time.Duration             // the attack ends by itself within this
	run     func(ctx context.Context, t *testing.T, url string)
}

// An attacked gateway may use 1 GiB of data and has a harmless caller all the while.
type attacked struct {
	*process
	url string
}

// underAttack starts a gateway whose data the kernel limits.
func underAttack(t *testing.T, data int, servers object, args ...string) *attacked {
	t.Helper()
	p := mcsh(t, servers, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	p.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -d %d && exec "$@"`, data), "sh"}, append([]string{mcshPath()}, p.Args[1:]...)...)
	p.Path = "/bin/sh"
	g := &attacked{process: p, url: p.greeted(t)}
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		p.ends(t, patience)
	})
	return g
}

// TestHostile attacks a gateway in each known way. It lives, stays small, serves a second caller in time, and stops
// working when the attack has ended.
//
// The race detector takes the memory that is measured here, and .ci/run has a step for this test alone.
func TestHostile(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			servers := object{"odd": child(t, "odd")}
			if a.servers != nil {
				for name, entry := range a.servers(t) {
					servers[name] = entry
				}
			}
			g := underAttack(t, attackedData, servers, a.args...)
			g.attack(t, a)
			g.tookAtMost(t, attackedRSS)
		})
	}
}

// TestHostileMix attacks one gateway with everything, at random, and looks whether its memory grows.
func TestHostileMix(t *testing.T) {
	if *attackMix == 0 {
		t.Skip("for the night: -attack-mix 1h")
	}
	servers, args := object{"odd": child(t, "odd")}, []string{}
	for _, a := range attacks() {
		if a.servers != nil {
			for name, entry := range a.servers(t) {
				servers[name] = entry
			}
		}
		for _, arg := range a.args {
			if !slices.Contains(args, arg) {
				args = append(args, arg)
			}
		}
	}
	g := underAttack(t, mixedData, servers, args...)
	var sizes []int
	for end := time.Now().Add(*attackMix); time.Now().Before(end); {
		for _, i := range rand.Perm(len(attacks())) {
			a := attacks()[i]
			t.Run(a.name, func(t *testing.T) { g.attack(t, a) })
		}
		g.tookAtMost(t, mixedRSS)
		sizes = append(sizes, g.measure(t).memory)
		t.Logf("at rest: %d MiB", sizes[len(sizes)-1])
	}
	half := len(sizes) / 2
	if half == 0 {
		t.Fatal("the time was too short for two rounds")
	}
	if early, late := slices.Max(sizes[:half]), slices.Max(sizes[half:]); late > early+early/4+16 {
		t.Errorf("memory at rest grew from %d to %d MiB", early, late)
	}
}

// attack runs one attack beside a harmless caller.
func (g *attacked) attack(t *testing.T, a attack) {
	t.Helper()
	stop := g.neighbour(t)
	ctx, cancel := context.WithTimeout(t.Context(), a.within+*attackPatience)
	defer cancel()
	begun := time.Now()
	a.run(ctx, t, g.url)
	if took := time.Since(begun); ctx.Err() != nil {
		t.Errorf("the attack went on for %v, want at most %v", took, a.within)
	}
	slowest := stop()
	t.Logf("%s: %v; the second caller waited at most %v; peak %d MiB", a.name, time.Since(begun).Round(time.Millisecond), slowest.Round(time.Millisecond), g.memory(t))
	if slowest > *attackPatience {
		t.Errorf("a second caller waited for %v, want at most %v", slowest, *attackPatience)
	}
	g.quiet(t)
	g.released(t)
}

// released waits until requests and results have given their parts of the memory budget back. An unfinished message of a
// server counts until it is whole, up to 1 MiB.
func (g *attacked) released(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(2*time.Second + *attackPatience); ; time.Sleep(50 * time.Millisecond) { // between looks
		taken := g.taken(t)
		if taken["results"]+taken["bodies"] <= 1<<20 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("the attack has ended, and of the memory budget is still taken: %v", taken)
			return
		}
	}
}

// taken returns what is taken of the memory budget, in bytes, by share.
func (g *attacked) taken(t *testing.T) map[string]int {
	t.Helper()
	res, err := http.Get(strings.TrimSuffix(g.url, "/mcp") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^mcsh_memory_bytes\{share="(\w+)"\} (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		taken[m[1]] = int(n)
	}
	if len(taken) == 0 {
		t.Fatalf("no metric of the memory budget: %s", clip(string(text)))
	}
	return taken
}

func (g *attacked) tookAtMost(t *testing.T, most int) {
	t.Helper()
	if got := g.memory(t); got > most {
		t.Errorf("the gateway took %d MiB, want at most %d", got, most)
	}
}

// neighbour calls in turn a small pipeline and the list, in a session of its own, until the function that it returns is
// called, which returns the longest wait.
func (g *attacked) neighbour(t *testing.T) (stop func() time.Duration) {
	t.Helper()
	session := connect(t, &mcp.StreamableClientTransport{Endpoint: g.url}, versions[0], nil)
	call := func(params *mcp.CallToolParams, want string) time.Duration {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		// A gateway that hangs ends, and says where its goroutines are.
		stuck := time.AfterFunc(patience/4, func() { _ = g.Process.Signal(syscall.SIGQUIT) })
		begun := time.Now()
		res, err := session.CallTool(ctx, params)
		if !stuck.Stop() {
			<-g.heard
			t.Errorf("the second caller: %s did not return within %v, while the gateway was at\n%s", params.Name, patience/4, g.stderr.String())
		} else if err != nil {
			t.Errorf("the second caller: %s: %v", params.Name, err)
		} else if text := textOf(res); res.IsError || !strings.Contains(text, want) {
			t.Errorf("the second caller: %s gives %s", params.Name, clip(text))
		}
		return time.Since(begun)
	}
	small := pipelineCall([]object{toolStage("odd", "get_item", object{"n": 7}), command("jq", ".item")})
	list := &mcp.CallToolParams{Name: "list_all_tools", Arguments: object{"server": "odd"}}
	call(small, "7") // the first one starts the server and a worker
	done := make(chan struct{})
	var slowest time.Duration
	var loop sync.WaitGroup
	loop.Go(func() {
		for {
			slowest = max(slowest, call(small, "7"), call(list, "get_item"))
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond): // a caller, not an attack
			}
		}
	})
	end := sync.OnceFunc(func() {
		close(done)
		loop.Wait()
		_ = session.Close() // the gateway may be gone, which the calls have shown
	})
	t.Cleanup(end) // an attack that fails ends here
	return func() time.Duration {
		end()
		return slowest
	}
}

// quiet waits until the gateway and its workers use next to no processor time.
func (g *attacked) quiet(t *testing.T) {
	t.Helper()
	const window = 500 * time.Millisecond
	last := g.ticks(t)
	for end := time.Now().Add(2*time.Second + *attackPatience); ; {
		time.Sleep(window) // processor time is measured over it
		now := g.ticks(t)
		used := time.Duration(now-last) * 10 * time.Millisecond
		if used <= window/10 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("it used %v of the processor in %v after the attack", used, window)
			return
		}
		last = now
	}
}

// ticks is the processor time of the gateway so far, in hundredths of a second.
func (g *attacked) ticks(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var user, system int
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return user + system
}
