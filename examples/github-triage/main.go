// Command github-triage serves a replica of the two calls of an issue tracker's REST API that the pipeline beside it
// makes: pages of issues, and the comments of one issue. The data is made up and always the same.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8090", "address to serve on")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err == nil {
		fmt.Fprintf(os.Stderr, "serving on http://%s\n", listener.Addr())
		server := &http.Server{Handler: newReplica(), ReadHeaderTimeout: 10 * time.Second}
		err = server.Serve(listener)
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

const (
	issueCount = 460
	perPage    = 100
)

// An issue has the fields of the real API that matter here, and a body that makes it as large as real ones are.
type issue struct {
	Number      int     `json:"number"`
	Title       string  `json:"title"`
	State       string  `json:"state"`
	Labels      []label `json:"labels"`
	User        user    `json:"user"`
	Comments    int     `json:"comments"`
	CommentsURL string  `json:"comments_url"`
	Body        string  `json:"body"`
}

type label struct {
	Name string `json:"name"`
}

type user struct {
	Login string `json:"login"`
}

type comment struct {
	IssueURL string `json:"issue_url"`
	User     user   `json:"user"`
	Author   string `json:"author_association"` // MEMBER for those who answer
	Body     string `json:"body"`
}

// A replica is the API over its data, which does not change.
type replica struct {
	issues   []issue
	comments map[int][]comment // by the number of the issue
}

// newReplica makes the data and returns the API.
func newReplica() http.Handler {
	random := rand.New(rand.NewPCG(1, 2))
	r := &replica{comments: map[int][]comment{}}
	kinds := []string{"bug", "bug", "feature", "question"}
	parts := []string{"parser", "printer", "cache", "installer", "scheduler"}
	for n := 1; n <= issueCount; n++ {
		i := issue{
			Number: n,
			Title:  fmt.Sprintf("The %s fails in case %d", parts[random.IntN(len(parts))], n),
			State:  []string{"open", "open", "closed"}[random.IntN(3)],
			Labels: []label{{kinds[random.IntN(len(kinds))]}},
			User:   user{fmt.Sprintf("user%d", random.IntN(90))},
			Body:   strings.Repeat("This is what I did, and this is what I saw. ", 10+random.IntN(30)),
		}
		for range random.IntN(12) {
			c := comment{User: user{fmt.Sprintf("user%d", random.IntN(90))}, Author: "NONE", Body: strings.Repeat("Me too. ", 1+random.IntN(40))}
			if random.IntN(6) == 0 {
				c.Author = "MEMBER"
			}
			r.comments[n] = append(r.comments[n], c)
		}
		i.Comments = len(r.comments[n])
		r.issues = append(r.issues, i)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /issues", r.page)
	mux.HandleFunc("GET /issues/{number}/comments", r.thread)
	return mux
}

// page answers with the issues of one page; behind the last one there is an empty array.
func (r *replica) page(w http.ResponseWriter, req *http.Request) {
	n, err := strconv.Atoi(req.FormValue("page"))
	if err != nil || n < 1 {
		http.Error(w, "page must be a number from 1", http.StatusBadRequest)
		return
	}
	list := []issue{}
	for _, i := range r.issues[min((n-1)*perPage, issueCount):min(n*perPage, issueCount)] {
		i.CommentsURL = fmt.Sprintf("http://%s/issues/%d/comments", req.Host, i.Number)
		list = append(list, i)
	}
	reply(w, list)
}

func (r *replica) thread(w http.ResponseWriter, req *http.Request) {
	n, err := strconv.Atoi(req.PathValue("number"))
	if err != nil || n < 1 || n > issueCount {
		http.Error(w, "there is no such issue", http.StatusNotFound)
		return
	}
	list := []comment{}
	for _, c := range r.comments[n] {
		c.IssueURL = fmt.Sprintf("http://%s/issues/%d", req.Host, n)
		list = append(list, c)
	}
	reply(w, list)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}
