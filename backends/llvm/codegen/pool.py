"""Emits the thread pool: workers claim chunks of a kernel by an atomic ticket.

One pool serves the process, in a library of its own. Its state is one global, in 8-byte words:

    0 ticket    epoch << 32 | chunks << 20 | chunks claimed from the last on << 10 | chunks claimed from the first on
    1 done      chunks that have finished
    2 status    the greatest status that a chunk returned, as unsigned numbers
    3 busy      1 while a run uses the pool; another run then works alone
    4 sleepers  workers that wait for the epoch to change
    5 function, 6 arguments
    7 started   workers that run
    8 wanted    workers that there are to be; the first run that needs them starts them
    9 waiting   1 while the caller sleeps until the last chunk has finished
   10 places    workers that may still join the run; a run of two threads takes one worker, however many there are

A chunk that has not finished keeps the caller from publishing the next epoch, so function and arguments read after a
claim are the right ones. Workers spin for a while, then spin and yield, and then sleep on the epoch (futex; Linux).
The caller, when no chunk is left to claim, spins for a while and then sleeps on `done`: where all cores are busy, a
worker that was put aside in the middle of a chunk gets the caller's core.

The caller claims chunks from the first on and workers from the last on, so that of kernel after kernel, and of run
after run, two threads have about the same half, and what of it their caches still hold.
"""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.text import I1, I64, PTR, FunctionBuilder, ModuleText, Target

MAX_CHUNKS = 256
FIELD = 10
"""Bits of a number of chunks in the ticket."""
SPINS = 2000
"""Turns that a worker waits for the next kernel before it lets others have its core: some 30 to 100 µs."""
YIELDS = 1000
"""Turns that it then waits, and yields in each, before it sleeps: some 0.3 ms, where no one else wants the core. To
rouse a worker that sleeps takes up to 0.1 ms where the core has gone idle."""
JOIN_SPINS = 4000
"""Turns that the caller waits for the last chunks before it sleeps."""
WORDS = 11
FUTEX_SYSCALL = {"x86_64": 202, "aarch64": 98}


def supports_pool(target: Target) -> bool:
    """Whether workers can sleep on this target: Linux on a known processor."""
    return "linux" in target.triple and target.triple.split("-")[0] in FUTEX_SYSCALL


def emit_pool(target: Target) -> ModuleText:
    """The library: `pool_run(fn, args, chunks, workers) -> status`, `pool_want(workers)`, `pool_reset()`."""
    module = ModuleText(target)
    module.globals["pool"] = f"internal global [{WORDS} x i64] zeroinitializer, align 64"
    module.declare("syscall", I64, [I64, "..."])
    module.declare("llvm.smin.i64", I64, [I64, I64])
    module.declare("pthread_create", "i32", [PTR, PTR, PTR, PTR])
    module.declare("pthread_detach", "i32", [I64])
    module.declare("sched_yield", "i32", [])
    _claim(module)
    _worker(module)
    _run(module)
    _start(module)
    _want(module)
    _reset(module)
    return module


def _word(b: FunctionBuilder, number: int) -> str:
    return b.op(f"getelementptr inbounds i64, ptr @pool, i64 {number}")


def _pause(b: FunctionBuilder) -> None:
    if b.target.triple.startswith("x86_64"):
        b.module.declare("llvm.x86.sse2.pause", "void", [])
        b.emit("call void @llvm.x86.sse2.pause()")
    else:
        b.module.declare("llvm.aarch64.hint", "void", ["i32"])
        b.emit("call void @llvm.aarch64.hint(i32 1)")  # yield


def _sleep(b: FunctionBuilder, word: str, expected: str) -> None:
    """FUTEX_WAIT_PRIVATE on the 32 bits at `word`; returns at once where they are not what was expected."""
    futex = FUTEX_SYSCALL[b.target.triple.split("-")[0]]
    b.op(f"call i64 (i64, ...) @syscall(i64 {futex}, ptr {word}, i64 128, i32 {expected}, ptr null, ptr null, i32 0)")


def _wake(b: FunctionBuilder, word: str, count: int | str) -> None:
    """FUTEX_WAKE_PRIVATE."""
    futex = FUTEX_SYSCALL[b.target.triple.split("-")[0]]
    b.op(f"call i64 (i64, ...) @syscall(i64 {futex}, ptr {word}, i64 129, i64 {count}, ptr null, ptr null, i32 0)")


def _fields(b: FunctionBuilder, ticket: str) -> tuple[str, str, str]:
    """The chunks claimed from the first on, those claimed from the last on, and all."""
    mask = str((1 << FIELD) - 1)
    parts = [ticket, *(b.binary("lshr", I64, ticket, str(FIELD * place)) for place in (1, 2))]
    first, last, chunks = (b.binary("and", I64, part, mask) for part in parts)
    return first, last, chunks


def _claim(module: ModuleText) -> None:
    """`i64 claim(i1 from_last)`: run chunks as long as some are unclaimed; returns the ticket that had none left."""
    b = FunctionBuilder(module, "claim", [(I1, "from_last")], I64, linkage="internal")
    b.emit(f"%one = select i1 %from_last, i64 {1 << FIELD}, i64 1")
    b.branch_to("look")
    b.start_block("look")
    b.emit(f"%ticket = load atomic i64, ptr {'@pool'} acquire, align 8")
    first, last, chunks = _fields(b, "%ticket")
    claimed = b.binary("add", I64, first, last)
    b.emit(f"%left = icmp ult i64 {claimed}, {chunks}")
    b.emit("br i1 %left, label %take, label %none")
    b.start_block("take")
    b.emit("%following = add i64 %ticket, %one")
    b.emit("%pair = cmpxchg ptr @pool, i64 %ticket, i64 %following acq_rel acquire")
    b.emit("%got = extractvalue { i64, i1 } %pair, 1")
    b.emit("br i1 %got, label %work, label %look")
    b.start_block("work")
    fn = b.op(f"load ptr, ptr {_word(b, 5)}, align 8")
    args = b.op(f"load ptr, ptr {_word(b, 6)}, align 8")
    from_last = b.binary("sub", I64, b.binary("sub", I64, chunks, "1"), last)
    chunk = b.select(I64, "%from_last", from_last, first)
    status = b.op(f"call i64 {fn}(ptr {args}, i64 {chunk}, i64 {chunks})")
    b.emit(f"%failed = icmp ne i64 {status}, 0")
    b.emit("br i1 %failed, label %note, label %finish")
    b.start_block("note")
    b.op(f"atomicrmw umax ptr {_word(b, 2)}, i64 {status} release")
    b.branch_to("finish")
    b.start_block("finish")
    before = b.op(f"atomicrmw add ptr {_word(b, 1)}, i64 1 seq_cst")
    b.emit(f"%finished = add i64 {before}, 1")
    b.emit(f"%all = icmp uge i64 %finished, {chunks}")
    b.emit("br i1 %all, label %tell, label %look")
    b.start_block("tell")
    b.emit(f"%waits = load atomic i64, ptr {_word(b, 9)} seq_cst, align 8")
    b.emit("%awaited = icmp ne i64 %waits, 0")
    b.emit("br i1 %awaited, label %rouse, label %look")
    b.start_block("rouse")
    _wake(b, _word(b, 1), 1)
    b.branch_to("look")
    b.start_block("none")
    b.emit("ret i64 %ticket")
    b.finish()


def _worker(module: ModuleText) -> None:
    """A worker never ends: it works, spins, sleeps."""
    b = FunctionBuilder(module, "worker", [(PTR, "unused")], PTR)
    b.branch_to("again")
    b.start_block("again")
    b.emit(f"%known = load atomic i64, ptr {'@pool'} acquire, align 8")
    first, last, chunks = _fields(b, "%known")
    b.emit(f"%left = icmp ult i64 {b.binary('add', I64, first, last)}, {chunks}")
    b.emit("br i1 %left, label %apply, label %rest")
    b.start_block("apply")
    free = b.op(f"atomicrmw sub ptr {_word(b, 10)}, i64 1 acq_rel")
    b.emit(f"%joins = icmp sgt i64 {free}, 0")
    b.emit("br i1 %joins, label %work, label %rest")
    b.start_block("work")
    b.emit("%ran.out = call i64 @claim(i1 true)")
    b.branch_to("rest")
    b.start_block("rest")
    b.emit("%seen = phi i64 [ %known, %again ], [ %known, %apply ], [ %ran.out, %work ]")
    b.branch_to("spin")
    b.start_block("spin")
    b.emit("%count = phi i64 [ 0, %rest ], [ %more, %still ], [ %more, %tired ]")
    b.emit("%now = load atomic i64, ptr @pool acquire, align 8")
    b.emit("%difference = xor i64 %now, %seen")  # of the same epoch, whatever has been claimed of it
    b.emit("%same = icmp ult i64 %difference, 4294967296")
    b.emit("br i1 %same, label %still, label %again")
    b.start_block("still")
    _pause(b)
    b.emit("%more = add i64 %count, 1")
    b.emit(f"%eager = icmp ult i64 %more, {SPINS}")
    b.emit("br i1 %eager, label %spin, label %tired")
    b.start_block("tired")
    b.op("call i32 @sched_yield()")
    b.emit(f"%patient = icmp ult i64 %more, {SPINS + YIELDS}")
    b.emit("br i1 %patient, label %spin, label %sleep")
    b.start_block("sleep")
    sleepers = _word(b, 4)
    b.op(f"atomicrmw add ptr {sleepers}, i64 1 seq_cst")
    b.emit("%epoch64 = lshr i64 %seen, 32")
    b.emit("%epoch = trunc i64 %epoch64 to i32")
    half = b.op("getelementptr inbounds i8, ptr @pool, i64 4")  # little endian: the epoch's half of the ticket
    _sleep(b, half, "%epoch")
    b.op(f"atomicrmw sub ptr {sleepers}, i64 1 seq_cst")
    b.branch_to("again")
    b.finish()


def _run(module: ModuleText) -> None:
    arguments = [(PTR, "fn"), (PTR, "args"), (I64, "chunks"), (I64, "workers")]
    b = FunctionBuilder(module, "pool_run", arguments, I64)
    busy = _word(b, 3)
    b.emit(f"%lock = cmpxchg ptr {busy}, i64 0, i64 1 acquire monotonic")
    b.emit("%mine = extractvalue { i64, i1 } %lock, 1")
    b.emit("br i1 %mine, label %publish, label %alone")

    b.start_block("alone")  # another run has the pool: this thread works by itself, on one chunk
    b.emit("%own = call i64 %fn(ptr %args, i64 0, i64 1)")
    b.emit("ret i64 %own")

    b.start_block("publish")
    started = b.load(I64, _word(b, 7), 8)
    wanted = b.load(I64, _word(b, 8), 8)
    b.emit(f"%short = icmp ult i64 {started}, {wanted}")
    b.emit("br i1 %short, label %hire, label %ready")
    b.start_block("hire")
    b.call("start", "void", [])
    b.branch_to("ready")
    b.start_block("ready")
    b.store(PTR, "%fn", _word(b, 5), 8)
    b.store(PTR, "%args", _word(b, 6), 8)
    b.emit(f"store atomic i64 0, ptr {_word(b, 1)} monotonic, align 8")
    b.emit(f"store atomic i64 0, ptr {_word(b, 2)} monotonic, align 8")
    b.emit(f"store atomic i64 %workers, ptr {_word(b, 10)} monotonic, align 8")
    b.emit("%old = load atomic i64, ptr @pool monotonic, align 8")
    b.emit("%epoch = lshr i64 %old, 32")
    b.emit("%next.epoch = add i64 %epoch, 1")
    b.emit("%high = shl i64 %next.epoch, 32")
    b.emit(f"%low = shl i64 %chunks, {2 * FIELD}")
    b.emit("%ticket = or i64 %high, %low")
    b.emit("store atomic i64 %ticket, ptr @pool seq_cst, align 8")
    b.emit(f"%asleep = load atomic i64, ptr {_word(b, 4)} seq_cst, align 8")
    b.emit("%any = icmp ne i64 %asleep, 0")
    b.emit("br i1 %any, label %wake, label %help")
    b.start_block("wake")
    half = b.op("getelementptr inbounds i8, ptr @pool, i64 4")
    b.emit("%few = call i64 @llvm.smin.i64(i64 %workers, i64 2147483647)")
    _wake(b, half, "%few")
    b.branch_to("help")
    b.start_block("help")
    b.op("call i64 @claim(i1 false)")
    b.branch_to("wait")
    b.start_block("wait")
    b.emit("%turns = phi i64 [ 0, %help ], [ %further, %linger ]")
    b.emit(f"%done = load atomic i64, ptr {_word(b, 1)} acquire, align 8")
    b.emit("%all = icmp uge i64 %done, %chunks")
    b.emit("br i1 %all, label %finish, label %linger")
    b.start_block("linger")
    _pause(b)
    b.emit("%further = add i64 %turns, 1")
    b.emit(f"%long = icmp ugt i64 %turns, {JOIN_SPINS}")
    b.emit("br i1 %long, label %doze, label %wait")
    b.start_block("doze")
    b.emit(f"store atomic i64 1, ptr {_word(b, 9)} seq_cst, align 8")
    b.emit(f"%so.far = load atomic i64, ptr {_word(b, 1)} seq_cst, align 8")
    b.emit("%enough = icmp uge i64 %so.far, %chunks")
    b.emit("br i1 %enough, label %awake, label %nap")
    b.start_block("nap")
    b.emit("%so.far32 = trunc i64 %so.far to i32")
    _sleep(b, _word(b, 1), "%so.far32")
    b.branch_to("doze")
    b.start_block("awake")
    b.emit(f"store atomic i64 0, ptr {_word(b, 9)} monotonic, align 8")
    b.branch_to("finish")
    b.start_block("finish")
    b.emit(f"%status = load atomic i64, ptr {_word(b, 2)} acquire, align 8")
    b.emit(f"store atomic i64 0, ptr {_word(b, 3)} release, align 8")
    b.emit("ret i64 %status")
    b.finish()


def _start(module: ModuleText) -> None:
    """`void start()`: start the workers that are wanted; where the system grants no more, the others do the work."""
    b = FunctionBuilder(module, "start", [], linkage="internal")
    handle = b.op("alloca i64, align 8")
    b.branch_to("more")
    b.start_block("more")
    started = b.load(I64, _word(b, 7), 8)
    b.emit(f"%short = icmp ult i64 {started}, {b.load(I64, _word(b, 8), 8)}")
    b.emit("br i1 %short, label %hire, label %out")
    b.start_block("hire")
    error = b.op(f"call i32 @pthread_create(ptr {handle}, ptr null, ptr @worker, ptr null)")
    b.emit(f"%bad = icmp ne i32 {error}, 0")
    b.emit("br i1 %bad, label %refused, label %made")
    b.start_block("made")
    b.op(f"call i32 @pthread_detach(i64 {b.load(I64, handle, 8)})")
    b.store(I64, b.binary("add", I64, started, "1"), _word(b, 7), 8)
    b.branch_to("more")
    b.start_block("refused")
    b.store(I64, started, _word(b, 8), 8)
    b.branch_to("out")
    b.start_block("out")
    b.emit("ret void")
    b.finish()


def _want(module: ModuleText) -> None:
    """`void pool_want(i64 workers)`: have at least that many from the next run on."""
    b = FunctionBuilder(module, "pool_want", [(I64, "workers")])
    at = _word(b, 8)
    b.op(f"atomicrmw umax ptr {at}, i64 %workers seq_cst")
    b.emit("ret void")
    b.finish()


def _reset(module: ModuleText) -> None:
    """`void pool_reset()`: as new, for a forked child, which has none of the workers."""
    b = FunctionBuilder(module, "pool_reset", [])
    for number in range(WORDS):
        b.store(I64, "0", _word(b, number), 8)
    b.emit("ret void")
    b.finish()
