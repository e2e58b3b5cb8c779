// Package docker runs sandbox workers in containers, through the API of a container engine (Docker, or Podman's socket
// that speaks the same). A container has no network, no capability and a read-only root, and serves one caller. The
// package is the only one that knows the engine's client; it reads no environment and builds no image unasked.
//
// # Life of a container
//
// It is created, attached to, and started; its first process is the host (see package worker), and the one connection
// carries a stream for each worker (package mux). A worker's hello says what holds it, and a container that is not
// what it was told to be is refused. Then it waits for a caller, serves runs of that caller one after the other, in a worker
// that lasts if all goes well ([sandbox.Resident]), and is removed when it has served enough, its time is up, its host
// complains or its connection ends. When the gateway ends, however it does, the host sees the end of its input and exits,
// and the engine removes the container.
//
// # What can go wrong, and the tests of it
//
//	gateway killed                   TestGatewayKilled
//	container killed, frozen         TestContainerKilled, TestPause
//	worker killed, stuck             TestWorkerKilled, TestWorkerKilledWhileFed, TestWorkerStopped
//	memory of the container used up  TestOutOfMemory
//	cancel, many at a time, slow reader, early end, binary data, floods of standard error, attacks
//	                                 TestContract
//	callers and runs apart           TestCallersApart, TestKeptForOneCaller, TestPerRun, TestLife
//	workers that wait for their caller: in the way, lost, their container's time up
//	                                 TestWaitingMakesRoom, TestWaitingLost, TestWaitingLife, TestResident
//	one run hungry for memory, processor, disk
//	                                 TestHungryNeighbour
//	engine absent, old, something else, image missing, without a worker
//	                                 TestConnectRefusals, TestImageMissing, TestImageVanishes, TestNoWorkerInImage
//	limits that are claimed and not enforced
//	                                 TestGaps, on reports: no rootless engine is at hand
//	the other engine                 TestPodman
//	engine that is stuck or slow     TestEngineStuck, TestLeftWhileCreated
//	more callers than containers     TestManyCallers
//	containers of gateways that are gone
//	                                 TestSweep, TestAbandoned
//	stream of the engine cut         TestFrames, FuzzFrames
//
// Not tried: control groups of version 2, engines on other machines, the runtime runsc, and the restart of an engine
// under load (to the driver it is the end of all connections, and then an engine that does not answer).
package docker
