package quality

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

func named(kind, name string, id int) object {
	return obj("name", name, "url", fmt.Sprintf("https://poke.example/api/v2/%s/%d/", kind, id))
}

// pokemon is one large document that nests deeply and repeats shapes.
func pokemon(rng *rand.Rand) string {
	sprite := func(i int) string { return fmt.Sprintf("https://sprites.example/%d.png", i) }
	set := func(i int) object {
		return obj("back_default", sprite(i), "back_female", sprite(i+1), "back_shiny", sprite(i+2), "back_shiny_female", nil,
			"front_default", sprite(i+3), "front_female", sprite(i+4), "front_shiny", sprite(i+5), "front_shiny_female", nil)
	}
	generation := func(names ...string) object {
		o := obj()
		for i, name := range names {
			o = append(o, field{name, set(i * 10)})
		}
		return o
	}
	versions := obj("generation-i", generation("red-blue", "yellow"), "generation-ii", generation("crystal", "gold", "silver"),
		"generation-iii", generation("emerald", "firered-leafgreen"), "generation-iv", generation("diamond-pearl", "platinum"),
		"generation-v", obj("black-white", append(obj("animated", set(1)), set(2)...)), "generation-vi", generation("omegaruby-alphasapphire", "x-y"),
		"generation-vii", obj("icons", obj("front_default", sprite(1), "front_female", nil), "ultra-sun", set(5)),
		"generation-viii", obj("icons", obj("front_default", sprite(1), "front_female", sprite(2))))
	sprites := append(set(25), obj("other", obj("dream_world", obj("front_default", sprite(1), "front_female", nil), "home", set(3),
		"official-artwork", obj("front_default", sprite(4), "front_shiny", sprite(5)), "showdown", set(7)), "versions", versions)...)
	moves := many(108, func(i int) any {
		return obj("move", named("move", sentence(rng, 1), i), "version_group_details", many(1+rng.IntN(9), func(j int) any {
			return obj("level_learned_at", rng.IntN(60), "move_learn_method", named("method", pick(rng, "machine", "level-up", "tutor", "egg"), 1),
				"order", often(rng, 30, j, nil), "version_group", named("version-group", sentence(rng, 1), j))
		}))
	})
	stat := func(int) any {
		return obj("base_stat", 20+rng.IntN(90), "effort", rng.IntN(3), "stat", named("stat", sentence(rng, 1), 1))
	}
	return text(obj("abilities", many(2, func(i int) any {
		return obj("ability", named("ability", sentence(rng, 1), i), "is_hidden", i == 1, "slot", i*2+1)
	}), "base_experience", 112, "cries", obj("latest", "https://cries.example/25.ogg", "legacy", "https://cries.example/legacy/25.ogg"),
		"forms", []any{named("form", "pikachu", 25)}, "game_indices", many(20, func(i int) any { return obj("game_index", 25+i, "version", named("version", sentence(rng, 1), i)) }),
		"height", 4, "held_items", many(2, func(i int) any {
			return obj("item", named("item", sentence(rng, 1), i), "version_details", many(5+rng.IntN(9), func(j int) any {
				return obj("rarity", 5, "version", named("version", sentence(rng, 1), j))
			}))
		}), "id", 25, "is_default", true, "location_area_encounters", "https://poke.example/api/v2/pokemon/25/encounters", "moves", moves,
		"name", "pikachu", "order", 35, "past_abilities", []any{obj("abilities", []any{obj("ability", nil, "is_hidden", true, "slot", 3)}, "generation", named("generation", "v", 5))},
		"past_stats", []any{obj("generation", named("generation", "v", 5), "stats", many(2, stat))}, "past_types", []any{}, "species", named("species", "pikachu", 25),
		"sprites", sprites, "stats", many(6, stat), "types", []any{obj("slot", 1, "type", named("type", "electric", 13))}, "weight", 60))
}

// events are lines of an event stream, with fields of some types of events, and some that come late.
func events(rng *rand.Rand) string {
	var b strings.Builder
	for i := range 4000 {
		kind := often(rng, 60, "page_view", often(rng, 75, "click", often(rng, 75, "purchase", "error"))).(string)
		e := obj("ts", 1714521600201+i*731, "event_id", uuid(rng), "type", kind, "user_id", often(rng, 93, 1+rng.IntN(4000), nil),
			"session", obj("id", fmt.Sprintf("s%d", rng.IntN(90000)), "country", pick(rng, "DE", "US", "BR"),
				"ua", obj("os", pick(rng, "macOS", "Windows", "Android", "iOS"), "ver", fmt.Sprintf("%d.%d", 10+rng.IntN(7), rng.IntN(9)))),
			"url", fmt.Sprintf("https://shop.example.com/p/%d?ref=%s", rng.IntN(3000), pick(rng, "seo", "mail")))
		switch kind {
		case "click":
			e = append(e, field{"target", obj("selector", fmt.Sprintf("#btn-%d", rng.IntN(40)), "x", rng.IntN(1400), "y", rng.IntN(3000))})
		case "purchase":
			var total any = fmt.Sprint(300 + rng.IntN(20))
			if rng.IntN(50) > 0 {
				total = float64(400+rng.IntN(40000)) / 100
			}
			e = append(e, field{"order", obj("items", many(1+rng.IntN(4), func(int) any {
				return obj("sku", "SKU-"+hex(rng, 4), "qty", 1+rng.IntN(5), "price", float64(rng.IntN(9000))/100)
			}), "total", total, "currency", pick(rng, "USD", "EUR"), "coupon", often(rng, 10, "SPRING24", absent))})
		case "error":
			e = append(e, field{"error", obj("code", often(rng, 40, "E_TIMEOUT", 500+rng.IntN(3)), "message", sentence(rng, 6), "stack", sentence(rng, 50))})
		}
		if i > 3000 && i%300 == 0 {
			e = append(e, field{"experiment", obj("name", "checkout_v2", "bucket", pick(rng, "A", "B"))})
		}
		b.WriteString(text(e) + "\n")
	}
	return b.String()
}

// users is an object whose keys are ids.
func users(rng *rand.Rand) string {
	all := obj()
	for i := range 1200 {
		all = append(all, field{"U" + strings.ToUpper(hex(rng, 8)), obj("name", sentence(rng, 2), "email", often(rng, 70, fmt.Sprintf("u%d@example.com", i), absent),
			"roles", many(rng.IntN(3), func(int) any { return pick(rng, "admin", "editor", "viewer") }), "age", often(rng, 80, 18+rng.IntN(60), nil))})
	}
	return text(obj("generated_at", "2024-07-19T04:17:08Z", "users", all))
}

// unions has paths with values of several types.
func unions(rng *rand.Rand) string {
	return text(many(400, func(i int) any {
		return obj("id", often(rng, 80, i, fmt.Sprintf("x-%d", i)), "value", pick[any](rng, 1.5, "a", nil, true, []int{1, 2}),
			"tags", pick[any](rng, "solo", []string{"a", "b"}), "owner", pick[any](rng, nil, "nobody", obj("name", sentence(rng, 1), "id", i)))
	}))
}

// geo is GeoJSON: arrays that nest to different depths.
func geo(rng *rand.Rand) string {
	point := func() any { return []float64{float64(rng.IntN(36000))/100 - 180, float64(rng.IntN(18000))/100 - 90} }
	line := func() any { return many(3+rng.IntN(5), func(int) any { return point() }) }
	return text(obj("type", "FeatureCollection", "features", many(150, func(i int) any {
		kind := pick(rng, "Point", "LineString", "Polygon")
		coordinates := map[string]func() any{"Point": point, "LineString": line, "Polygon": func() any { return []any{line()} }}[kind]()
		return obj("type", "Feature", "id", i, "properties", obj("name", sentence(rng, 2), "population", often(rng, 70, rng.IntN(90000), nil),
			"capital", often(rng, 20, true, absent)), "geometry", obj("type", kind, "coordinates", coordinates))
	})))
}

// late has a field that begins late in a long list.
func late() string {
	return text(many(10_000, func(i int) any {
		reason := any(absent)
		if i > 9500 {
			reason = "gdpr"
		}
		return obj("id", i, "score", float64(i)/7, "ok", i%3 == 0, "deleted_reason", reason)
	}))
}

// search is an envelope with pages, hits and highlights.
func search(rng *rand.Rand) string {
	return text(obj("took", 12, "timed_out", false, "_shards", obj("total", 5, "successful", 5, "skipped", 0, "failed", 0),
		"hits", obj("total", obj("value", 10000, "relation", "gte"), "max_score", 14.2, "hits", many(50, func(i int) any {
			return obj("_index", pick(rng, "docs-2024", "docs-2023"), "_id", hex(rng, 20), "_score", 14.2-float64(i)/10,
				"_source", obj("title", sentence(rng, 4), "author", obj("name", sentence(rng, 2), "orcid", often(rng, 30, "0000-0002-1825-0097", absent)),
					"published", moment(rng)[:10], "keywords", many(rng.IntN(5), func(int) any { return sentence(rng, 1) }), "abstract", sentence(rng, 80),
					"doi", often(rng, 80, "10.1000/"+hex(rng, 6), nil), "@timestamp", moment(rng)),
				"highlight", obj("abstract", []any{"<em>" + sentence(rng, 1) + "</em> " + sentence(rng, 9)}), "sort", []any{i, hex(rng, 8)})
		})), "aggregations", obj("years", obj("doc_count_error_upper_bound", 0, "buckets", many(8, func(i int) any {
			return obj("key_as_string", fmt.Sprintf("%d-01-01", 2016+i), "key", 1451606400000+int64(i)*31536000000, "doc_count", rng.IntN(900))
		}))), "next_page_token", hex(rng, 24)))
}

// tree is a directory that holds directories.
func tree(rng *rand.Rand) string { return text(directory(rng, "root", 6)) }

func directory(rng *rand.Rand, name string, depth int) object {
	return obj("name", name, "type", "directory", "children", many(2+rng.IntN(3), func(i int) any {
		if depth > 0 && rng.IntN(3) > 0 {
			return directory(rng, fmt.Sprintf("%s%d", words[rng.IntN(len(words))], i), depth-1)
		}
		return obj("name", fmt.Sprintf("%s%d.go", words[rng.IntN(len(words))], i), "type", "file", "size", rng.IntN(100000))
	}))
}

// metrics are time series with labels, and points that are pairs of a number and a string.
func metrics(rng *rand.Rand) string {
	return text(obj("status", "success", "data", obj("resultType", "matrix", "result", many(40, func(i int) any {
		return obj("metric", obj("__name__", "http_requests_total", "instance", fmt.Sprintf("10.0.0.%d:9090", i), "job", pick(rng, "api", "web"),
			"code", often(rng, 50, pick(rng, "200", "500"), absent)), "values", many(60, func(j int) any {
			return []any{1714521600 + j*60, fmt.Sprintf("%d.%d", rng.IntN(900), rng.IntN(9))}
		}))
	}))))
}
