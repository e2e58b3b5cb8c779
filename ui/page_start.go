package ui

// startPage shows what is going on.
func startPage() page {
	return page{path: "", title: "Overview", file: "start.html", menu: "start", keys: "h", show: showStart}
}

func showStart(v *Visit) (any, error) {
	return struct{ System *SystemState }{nil}, nil
}
