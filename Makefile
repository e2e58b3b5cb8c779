# Shortcuts. Everything also works without make; CONTRIBUTING.md says how.
.PHONY: build check test fuzz bench gen

build:
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

check:
	.ci/run gate tests

test:
	go test ./...

fuzz:
	.ci/run fuzz

bench:
	go run ./bench

gen:
	go generate ./...
