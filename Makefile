# Shortcuts. Everything also works without make; CONTRIBUTING.md says how.
.PHONY: build image registry check test fuzz bench gen

build:
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

# BASE=IMAGE builds on another base, such as that of deploy/base-image.sh. The tag is that of programs without a release.
image:
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o bin/ ./cmd/...
	docker build -t mcsh/mcsh:devel $(if $(BASE),--build-arg BASE=$(BASE)) .

# What is published in ToolHive's registry: DIGEST is that of the image that was pushed, sha256:….
registry:
	deploy/registry.sh bin/toolhive "$(DIGEST)"

check:
	MCSH_TEST_PARTS= .ci/run gate tests

test:
	go test ./...

fuzz:
	.ci/run fuzz

bench:
	go run ./bench

gen:
	go generate ./...
