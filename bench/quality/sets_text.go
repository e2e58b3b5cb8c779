package quality

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// orders is CSV with quoted line feeds, empty fields and an outlier.
func orders(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString("order_id,customer_email,country,created_at,status,items,total,coupon,notes\n")
	for i := range 5000 {
		notes, coupon, total := "", "", fmt.Sprintf("%d.%02d", 3+rng.IntN(890), rng.IntN(100))
		switch rng.IntN(6) {
		case 0:
			notes = `"` + sentence(rng, 4) + `, ""` + sentence(rng, 1) + `"""`
		case 1, 2, 3, 4:
			notes = sentence(rng, 3)
		}
		if i%500 == 3 {
			notes = "\"" + sentence(rng, 2) + "\n" + sentence(rng, 2) + "\""
		}
		if rng.IntN(3) == 0 {
			coupon = pick(rng, "WELCOME", "SPRING24")
		}
		if i == 4000 {
			total = "N/A"
		}
		fmt.Fprintf(&b, "ORD-%d,user%d@example.com,%s,%s,%s,%d,%s,%s,%s\n", 100000+i, rng.IntN(1000), pick(rng, "JP", "FR", "BR", "IN", "US", "DE"),
			moment(rng), often(rng, 50, "shipped", pick(rng, "paid", "pending", "refunded")), 1+rng.IntN(8), total, coupon, notes)
	}
	return b.String()
}

// log is the log of a service, with traces of its stack.
func log(rng *rand.Rand) string {
	var b strings.Builder
	for i := range 8000 {
		at := fmt.Sprintf("2024-05-01T%02d:%02d:%02d.%03dZ", 3+i/3600, i/60%60, i%60, rng.IntN(1000))
		from := pick(rng, "sandbox.worker", "upstream.pool", "preview", "gateway.http")
		switch n := rng.IntN(100); {
		case n < 70:
			fmt.Fprintf(&b, "%s INFO  [%s] request done method=POST path=/mcp status=%d dur_ms=%d session=%s\n", at, from, pick(rng, 200, 200, 404), 1+rng.IntN(899), hex(rng, 8))
		case n < 90:
			fmt.Fprintf(&b, "%s DEBUG [%s] pool acquire upstream=srv-%d wait_us=%d\n", at, from, rng.IntN(30), 4+rng.IntN(4990))
		case n < 96:
			fmt.Fprintf(&b, "%s WARN  [%s] retry %d/3 upstream=srv-%d err=\"context deadline exceeded after %dms\"\n", at, from, 1+rng.IntN(3), rng.IntN(30), rng.IntN(9000))
		default:
			fmt.Fprintf(&b, "%s ERROR [%s] stage failed stage=%d command=jq exit=5 stderr=\"jq: error (at <stdin>:%d): Cannot iterate over null\"\n", at, from, rng.IntN(9), rng.IntN(90))
			if n == 99 {
				fmt.Fprintf(&b, "goroutine %d [running]:\nmain.run(0xc%09x, 0x4)\n\t/src/gateway/run.go:221 +0x%x\n", rng.IntN(900), rng.Uint32(), rng.IntN(900))
			}
		}
	}
	return b.String()
}
