// Package docker runs sandbox workers in containers, through the API of a container engine (Docker, or Podman's socket
// that speaks the same). A container has no network, no capability and a read-only root, and serves one caller. The
// package is the only one that knows the engine's client; it reads no environment and builds no image unasked.
//
// # Life of a container
//
//	state      event                                     to         who acts
//	–          [Driver.Open]                             created    launch
//	created    attached and started                      examined   connect
//	examined   the hello of its first worker shows that  serving    inspect, with a new worker
//	           it is as its spec says
//	examined   anything else                             ended      launch
//	serving    its worker is replaced                    serving    the host: the worker dies, its files are
//	                                                                removed, and the next one starts
//	serving    its worker is closed                      ended      worker.Close
//	serving    its worker dies or hangs, its memory or   ended      the host exits, and says why on standard
//	           its disk was used up, or the gateway is              error
//	           silent for three minutes
//	any        the connection ends, however the gateway  ended      the host, which sees the end of its input
//	           ends
//	ended                                                removed    the driver; the engine by itself when the
//	                                                                first process has ended; the next gateway
//
// Its first process is the host (see package worker). The one connection carries the streams of its workers one after the
// other (see "Chunks" in package wire). The driver keeps no container for later: package sandbox does, and its doc comment
// has the states of a worker.
//
// # What can go wrong, and the tests of it
//
//	gateway killed                   TestGatewayKilled
//	container killed, frozen         TestContainerKilled, TestPause
//	worker killed, stuck             TestWorkerKilled, TestWorkerKilledWhileFed, TestWorkerStopped
//	memory of the container used up  TestOutOfMemory
//	cancel, many at a time, slow reader, early end, binary data, floods of standard error, attacks
//	                                 TestContract
//	callers and runs apart           TestCallersApart, TestKeptForOneCaller, TestPerRun
//	workers that wait for their caller: in the way, lost
//	                                 TestWaitingMakesRoom, TestWaitingLost
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
//
// # Decisions
//
//   - A run has its container to itself, and the caller's next run gets the same one. Memory, processes and processors
//     are limits of the container; two runs in one could fail each other.
//   - The host is the first process of the container and ends with whatever should end the container. It sees that (a kill
//     for want of memory, a full disk, a stuck worker) inside and at once; the engine is not asked.
//   - The protocol of the worker has credit for each run. A second multiplexer around it, with windows of its own, cost more
//     lines than the streams of workers that follow each other, and copied everything once more.
//   - Scratch files are in a volume without a name. A tmpfs would take the memory that sort spills to save.
//   - A running container is never swept. It ends by itself when its gateway does, so its owner need not be guessed.
//   - The image is built from binaries with the classic builder: one recipe serves a checkout, a released binary and a
//     machine without a registry.
package docker
