package quality

import (
	"fmt"
	"math/rand/v2"
)

// issues is a page of the issues of a repository, with all keys that the API gives them.
func issues(rng *rand.Rand) string {
	return text(many(100, func(i int) any { return issue(rng, 1500-i) }))
}

const api = "https://api.github.example/"

func account(i int) object {
	name := fmt.Sprintf("user%d", i)
	url := api + "users/" + name
	return obj("login", name, "id", 10000+i*37, "node_id", fmt.Sprintf("MDQ6VXNlcjE%d", i), "avatar_url", "https://avatars.example/u/"+fmt.Sprint(i),
		"gravatar_id", "", "url", url, "html_url", "https://github.example/"+name, "followers_url", url+"/followers",
		"following_url", url+"/following{/other_user}", "gists_url", url+"/gists{/gist_id}", "starred_url", url+"/starred",
		"subscriptions_url", url+"/subscriptions", "organizations_url", url+"/orgs", "repos_url", url+"/repos",
		"events_url", url+"/events{/privacy}", "received_events_url", url+"/received_events",
		"type", map[bool]string{true: "Bot", false: "User"}[i%25 == 0], "user_view_type", "public", "site_admin", i == 7)
}

func label(rng *rand.Rand) object {
	name := pick(rng, "bug", "docs", "help wanted", "feature", "good first issue", "wontfix")
	return obj("id", 2000+rng.IntN(90), "node_id", "LA_"+hex(rng, 8), "url", api+"labels/"+name[:3], "name", name,
		"color", hex(rng, 6), "default", rng.IntN(2) == 0, "description", often(rng, 60, sentence(rng, 4), nil))
}

func milestone(rng *rand.Rand) object {
	return obj("url", api+"milestones/1", "html_url", "https://github.example/milestone/1", "labels_url", api+"milestones/1/labels",
		"id", 77001, "node_id", "MI_1", "number", 1, "title", "v1.0", "description", sentence(rng, 5), "creator", account(3),
		"open_issues", 4, "closed_issues", 11, "state", "open", "created_at", moment(rng), "updated_at", moment(rng),
		"due_on", moment(rng), "closed_at", nil)
}

func issue(rng *rand.Rand, number int) object {
	url := fmt.Sprintf("%srepos/o/r/issues/%d", api, number)
	html := fmt.Sprintf("https://github.example/o/r/issues/%d", number)
	isPull := rng.IntN(100) < 42
	closed := rng.IntN(100) < 40
	var pull, draft, milestoned, closedAt, reason, by any = absent, absent, nil, nil, nil, nil
	if isPull {
		draft = rng.IntN(5) == 0
		pull = obj("url", url, "html_url", html, "diff_url", html+".diff", "patch_url", html+".patch", "merged_at", often(rng, 50, moment(rng), nil))
	}
	if rng.IntN(6) == 0 {
		milestoned = milestone(rng)
	}
	state := "open"
	if closed {
		state, closedAt, by = "closed", moment(rng), account(rng.IntN(9))
		reason = often(rng, 70, "completed", "not_planned")
	}
	assignees := many(rng.IntN(3), func(int) any { return account(rng.IntN(9)) })
	var assignee any
	if len(assignees) > 0 {
		assignee = assignees[0]
	}
	return obj("url", url, "repository_url", api+"repos/o/r", "labels_url", url+"/labels{/name}", "comments_url", url+"/comments",
		"events_url", url+"/events", "html_url", html, "id", 2_100_000_000+number, "node_id", "I_"+hex(rng, 10), "number", number,
		"title", sentence(rng, 3+rng.IntN(5)), "user", account(rng.IntN(50)), "labels", many(rng.IntN(4), func(int) any { return label(rng) }),
		"state", state, "locked", rng.IntN(20) == 0, "assignee", assignee, "assignees", assignees, "milestone", milestoned,
		"comments", rng.IntN(16), "created_at", moment(rng), "updated_at", moment(rng), "closed_at", closedAt,
		"author_association", pick(rng, "NONE", "CONTRIBUTOR", "MEMBER"), "type", nil, "active_lock_reason", nil, "draft", draft,
		"pull_request", pull, "body", often(rng, 90, "### Steps\n"+sentence(rng, 60)+"\nVersion: 1."+fmt.Sprint(rng.IntN(9))+"\n", nil), "closed_by", by,
		"reactions", obj("url", url+"/reactions", "total_count", rng.IntN(4), "+1", rng.IntN(3), "-1", 0, "laugh", 0, "hooray", 0,
			"confused", 0, "heart", rng.IntN(2), "rocket", 0, "eyes", 0),
		"timeline_url", url+"/timeline", "performed_via_github_app", nil, "state_reason", reason)
}
