// Package sandboxtest is the contract of sandbox backends as tests: what commands do, what they cannot do, what happens
// when something breaks. Every backend's own tests call [Run].
//
// Attacks are rows of testdata/attacks.json: A01 to A105 and what was thought of later. An attack of several commands has a
// number too. A name in quotation marks is a part of the contract, which every backend runs; the others are tests of their
// own.
//
//	S01  A gateway that is killed leaves nothing: TestGatewayKilled (docker), TestSweep (local, and the next gateway).
//	S02  A worker that dies in a run is an error at once, and the next run has another: "lost worker",
//	     TestContainerKilled, TestWorkerKilled.
//	S03  The kernel kills for want of memory: the command, not the worker, and that is what is said: TestOutOfMemory.
//	S04  A run that is cancelled ends soon, long before it would by itself, busy, waiting or asleep: "cancel".
//	S05  32 commands at once: "concurrent".
//	S06  Who reads slowly holds back the program, not the gateway's memory: "slow reader", "bulk", TestWindow (wire).
//	S07  Who stops reading early ends what comes before, and that is a success: "early stop".
//	S08  Any bytes pass, those that an engine's stream gives a meaning among them: "binary", TestFrames.
//	S09  No session reads the files of another: TestSessionsApart (local), TestCallersApart (docker).
//	S10  The files of a sort that is killed are gone before the run gets the error: TestSortKilled; with their worker:
//	     TestEndings.
//	S11  A gigabyte of complaints is taken, and 64 KiB of it are kept: "flood of complaints".
//	S12  Output that is no UTF-8 is made so once, where it leaves the gateway: TestOutputNotUTF8.
//	S13  No engine, an old one, something else in its place: TestConnectRefusals.
//	S14  No image: nothing is pulled or made unasked, and the error says what to do: TestImageMissing, TestImageVanishes.
//	S15  A worker that claims protection it does not have, or lacks some, is refused: TestAuditRefuses, TestGaps.
//	S16  Podman: TestPodman.
//	S17  An engine that sets no limits (that of a user without control groups of version 2) is refused, unless
//	     that is allowed: TestGaps, on what a worker there would report. An engine of that kind needs a user session, which
//	     the machines of the tests do not have.
//	S18  A kernel without Landlock: what opens files is not served: TestWithoutLandlock.
//	S19  The gateway's environment, files, descriptors and network are out of reach: "probe", TestWorkerSeesNothing,
//	     TestWorkerLockedIn, TestHidden.
//	S20  The pool: no more than there may be, workers that wait, dead and silent ones: "pool", TestWarm, TestDeadWorker,
//	     TestWorkerStopped, TestAbandoned.
//	S21  A command starts no process: "probe". Should one do so, the number of a run is limited ("budgets of a run") and
//	     that of a container, without which it is refused: TestGaps.
//	S22  A disk that is full is said to be: "limits", "budgets of a run"; the neighbours go on: TestHungryNeighbour. The
//	     worker counts bytes and files; no file system of a fixed size is there to run full.
//	S23  An engine that restarts: runs fail with a clear word, and the same pool works again: TestEngineRestarts.
//	S24  Every allowed option, however it is written, does what the tool does: TestOptionsAgree, TestEveryOptionHasARow.
//	S25  Arguments made by chance reach no file and no program: TestCanary, FuzzParse.
package sandboxtest
