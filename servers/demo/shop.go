package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
)

const (
	orderCount    = 200
	customerCount = 40
	pageSize      = 20
)

type order struct {
	ID         int64   `json:"id"`
	CustomerID string  `json:"customer_id"`
	Status     string  `json:"status"`
	Total      float64 `json:"total"`
	CreatedAt  string  `json:"created_at"`
	Items      []item  `json:"items"`
}

type item struct {
	SKU      string  `json:"sku"`
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
}

type customer struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Email  string `json:"email"`
	Phone  string `json:"phone,omitempty"`
	Region string `json:"region"`
	Active bool   `json:"active"`
}

var (
	statuses = []string{"open", "paid", "shipped", "cancelled"}
	regions  = []string{"north", "south", "east", "west"}
	given    = []string{"Ada", "Ben", "Chloé", "Dmitri", "Esra", "Femi", "Grace", "Hiro"}
	family   = []string{"Okafor", "Lindqvist", "Tanaka", "Moreau", "García"}
)

// shop is the data, which never changes.
type shop struct {
	orders    []order
	customers []customer
}

func newShop(r *rand.Rand) *shop {
	s := &shop{}
	for i := range customerCount {
		c := customer{
			ID:     fmt.Sprintf("c-%03d", i+1),
			Name:   given[i%len(given)] + " " + family[i/len(given)],
			Email:  fmt.Sprintf("customer%d@example.com", i+1),
			Region: regions[r.IntN(len(regions))],
			Active: r.IntN(5) > 0,
		}
		if r.IntN(3) > 0 {
			c.Phone = fmt.Sprintf("+1-202-555-%04d", 100+i) // 555-01xx is reserved for fiction
		}
		s.customers = append(s.customers, c)
	}
	for i := range orderCount {
		s.orders = append(s.orders, s.newOrder(r, i))
	}
	return s
}

func (s *shop) newOrder(r *rand.Rand, i int) order {
	first := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	o := order{
		ID:         int64(1001 + i),
		CustomerID: s.customers[r.IntN(len(s.customers))].ID,
		Status:     statuses[r.IntN(len(statuses))],
		CreatedAt:  first.Add(time.Duration(i)*7*time.Hour + time.Duration(r.IntN(3600))*time.Second).Format(time.RFC3339),
	}
	if i%10 == 7 {
		o.ID = 1<<53 + int64(2*i+1) // odd, so that a float64 cannot hold it
	}
	cents := 0
	for range 1 + r.IntN(4) {
		price, n := 50+r.IntN(20_000), 1+r.IntN(5)
		cents += price * n
		o.Items = append(o.Items, item{SKU: fmt.Sprintf("sku-%02d", 1+r.IntN(60)), Quantity: n, Price: float64(price) / 100})
	}
	o.Total = float64(cents) / 100
	return o
}

const orderSchema = `{
  "type": "object",
  "properties": {
    "id": {"type": "integer", "description": "Some are above 2^53."},
    "customer_id": {"type": "string"},
    "status": {"enum": ["open", "paid", "shipped", "cancelled"]},
    "total": {"type": "number"},
    "created_at": {"type": "string", "format": "date-time"},
    "items": {"type": "array", "items": {
      "type": "object",
      "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer"}, "price": {"type": "number"}},
      "required": ["sku", "quantity", "price"]
    }}
  },
  "required": ["id", "customer_id", "status", "total", "created_at", "items"]
}`

func (s *shop) tools() []tool.Tool {
	return []tool.Tool{{
		Name:        "list_orders",
		Description: "Lists the orders of the shop, oldest first: {orders, matching}, where matching counts what limit may have cut.",
		Input: `{
  "type": "object",
  "properties": {
    "status": {"type": "string", "enum": ["open", "paid", "shipped", "cancelled"], "description": "Only orders with this status."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 200, "description": "At most this many."}
  },
  "additionalProperties": false
}`,
		Output: `{
  "type": "object",
  "properties": {"orders": {"type": "array", "items": ` + orderSchema + `}, "matching": {"type": "integer"}},
  "required": ["orders", "matching"]
}`,
		Annotations: tool.ReadOnly(false),
		Call:        tool.New(s.listOrders),
	}, {
		Name:        "get_customer",
		Description: "Gets one customer by id.",
		Input: `{
  "type": "object",
  "properties": {"id": {"type": "string", "description": "The customer_id of an order, such as \"c-017\"."}},
  "required": ["id"],
  "additionalProperties": false
}`,
		Output: `{
  "type": "object",
  "properties": {
    "id": {"type": "string"},
    "name": {"type": "string"},
    "email": {"type": "string"},
    "phone": {"type": "string", "description": "Not every customer has one."},
    "region": {"enum": ["north", "south", "east", "west"]},
    "active": {"type": "boolean"}
  },
  "required": ["id", "name", "email", "region", "active"]
}`,
		Annotations: tool.ReadOnly(false),
		Call:        tool.New(s.getCustomer),
	}, {
		Name:        "get_page",
		Description: "Gets one page of 20 orders: {page, items, next_page}; next_page is null on the last of 10 pages.",
		Input: `{
  "type": "object",
  "properties": {"n": {"type": "integer", "minimum": 1, "description": "The page, counted from 1."}},
  "required": ["n"],
  "additionalProperties": false
}`,
		Annotations: tool.ReadOnly(false),
		Call:        tool.New(s.getPage),
	}}
}

type listOrdersArgs struct {
	Status string `json:"status"`
	Limit  *int   `json:"limit"`
}

func (s *shop) listOrders(_ context.Context, a listOrdersArgs) (*mcp.CallToolResult, error) {
	limit := orderCount
	if a.Limit != nil {
		limit = *a.Limit
	}
	if limit < 1 || limit > orderCount {
		return nil, invalid("limit is %d, want 1 to %d", limit, orderCount)
	}
	if a.Status != "" && !slices.Contains(statuses, a.Status) {
		return nil, invalid("status is %.40q, want one of %q", a.Status, statuses)
	}
	orders := []order{}
	for _, o := range s.orders {
		if a.Status == "" || o.Status == a.Status {
			orders = append(orders, o)
		}
	}
	return tool.JSON(struct {
		Orders   []order `json:"orders"`
		Matching int     `json:"matching"`
	}{orders[:min(limit, len(orders))], len(orders)})
}

type getCustomerArgs struct {
	ID string `json:"id"`
}

func (s *shop) getCustomer(_ context.Context, a getCustomerArgs) (*mcp.CallToolResult, error) {
	for _, c := range s.customers {
		if c.ID == a.ID {
			return tool.JSON(c)
		}
	}
	return nil, &tool.Error{Kind: "NotFound", Msg: fmt.Sprintf("no customer has the id %.40q", a.ID), Hint: fmt.Sprintf("ids go from c-001 to c-%03d", customerCount)}
}

type getPageArgs struct {
	N int `json:"n"`
}

func (s *shop) getPage(_ context.Context, a getPageArgs) (*mcp.CallToolResult, error) {
	const pages = orderCount / pageSize
	if a.N < 1 {
		return nil, invalid("n is %d, want at least 1", a.N)
	}
	page := struct {
		Page  int     `json:"page"`
		Items []order `json:"items"`
		Next  *int    `json:"next_page"`
	}{Page: a.N, Items: []order{}}
	if a.N <= pages {
		page.Items = s.orders[(a.N-1)*pageSize : a.N*pageSize]
	}
	if a.N < pages {
		next := a.N + 1
		page.Next = &next
	}
	return tool.JSON(page)
}

func invalid(format string, args ...any) error {
	return &tool.Error{Kind: tool.InvalidArgument, Msg: fmt.Sprintf(format, args...)}
}
