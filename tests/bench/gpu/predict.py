"""Predicts the time of the language model's steps on an H100 or H200 from counts and the chip's figures.

A step's kernels run one after the other. Each takes NODE + LATENCY, and beside that the time of its work: that of its
bytes, of its products or of its instructions, whichever is longest, since these overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpu import counts

# From the end of a graph's kernel to the begin of the next one, which sees its results.
NODE = 1.3e-6
# Before and after a kernel's work: a load of an index, one of what that names, and the last store, about 0.6 us each.
LATENCY = 2.0e-6
# Bytes a second, of the 3.35 TB/s of an H100's memory.
BANDWIDTH = 3.0e12
# Operations a second of bfloat16 products with 8,192 rows by LibTorch (docs/gpu.md), of 989e12.
PRODUCTS = 668e12
# A multiprocessor issues at most so many instructions in a cycle, of 4, and a warp one in so many cycles: results of
# arithmetic take 4, those of shared memory and tensor cores about 30, some of which overlap. The second is an estimate.
ISSUED, WARP_CYCLES = 2.5, 6
MULTIPROCESSORS, CLOCK = 132, 1.98e9
BLOCK_WARPS = 4
# The host's calls for a step, and bytes a second of its copies.
HOST, PCIE = 15e-6, 25e9


@dataclass(frozen=True)
class Part:
    """A part of a step: its nodes, and the seconds of their work, with what bounds them."""

    name: str
    nodes: int
    work: float
    bound: str

    @property
    def seconds(self) -> float:
        return self.nodes * (NODE + LATENCY) + self.work

    def __str__(self) -> str:
        nodes = f"{self.nodes} x {(NODE + LATENCY) * 1e6:.1f} + " if self.nodes else ""
        return f"{self.name} {nodes}{self.work * 1e6:.0f} us ({self.bound})"


@dataclass(frozen=True)
class Blocks:
    """Thread blocks that multiply 64 keys: their instructions a warp, and how many a multiprocessor holds."""

    instructions: float
    resident: float

    def seconds(self, count: float) -> float:
        in_a_cycle = min(ISSUED, self.resident * BLOCK_WARPS / WARP_CYCLES)
        return count * BLOCK_WARPS * self.instructions / (MULTIPROCESSORS * in_a_cycle * CLOCK)


def blocks_of_file() -> dict[str, Blocks]:
    """By the kind of block, on sm_90a."""
    return {
        way.name: Blocks(
            counts.of(f"path, {way.name}")["instructions"], counts.of(f"kernel, sm_90a, {way.kernel}")["blocks"]
        )
        for way in counts.WAYS
    }


def part(name: str, nodes: float, work: Mapping[str, float]) -> Part:
    """`work`: seconds by what takes them, of all of these nodes together."""
    bound = max(work, key=lambda one: work[one])
    return Part(name, int(nodes), work[bound], bound)


def parts(step: Mapping[str, float], blocks: Mapping[str, Blocks]) -> list[Part]:
    """`step`: the numbers of a line "step" of counts.txt."""
    return [
        part("products", step["products"], {
            "bandwidth": (step["weights"] + step["product_rows"]) / BANDWIDTH,
            "tensor cores": step["product_gflops"] * 1e9 / PRODUCTS,
        }),
        part("attention", step["attention"], {
            "bandwidth": (step["cache"] + step.get("partial", 0)) / BANDWIDTH,
            "instructions": sum(kind.seconds(step.get(name, 0)) for name, kind in blocks.items()),
        }),
        part("rows", step["nodes"] - step["products"] - step["attention"], {"bandwidth": step["rows"] / BANDWIDTH}),
        Part("host", 0, HOST + (step["upload"] + step.get("download", 0)) / PCIE, "calls and copies"),
    ]  # fmt: skip


def seconds(step: Mapping[str, float], blocks: Mapping[str, Blocks]) -> float:
    return sum(one.seconds for one in parts(step, blocks))


# --- what one H200 measured (docs/gpu.md), with the counts of the tree that it ran ---

MEASURED_BLOCKS = {
    "single_blocks": Blocks(796, 8), "tile_window_blocks": Blocks(1673, 2), "tile_vector_blocks": Blocks(1318, 2)
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A step's seconds."""

    seconds: float
    step: str

    def predicted(self) -> float:
        return seconds(counts.values(self.step), MEASURED_BLOCKS)


MEASURED = {
    "step, 1 stream": Measured(
        0.44e-3,
        "nodes=124 products=49 attention=24 upload=296 download=832 weights=75808768 cache=27722112 "
        "partial=963072 product_rows=198240 rows=574688 product_gflops=0.076 single_blocks=1824",
    ),
    "step, 256 streams": Measured(
        2.79e-3,
        "nodes=124 products=49 attention=24 upload=69656 download=212992 weights=75808768 cache=7096860672 "
        "partial=246546432 product_rows=50749440 rows=146907968 product_gflops=19.407 single_blocks=466944",
    ),
    "step, a prompt's 4096 tokens": Measured(
        3.96e-3,
        "nodes=136 products=61 attention=12 upload=175904 weights=88391680 cache=1837105152 "
        "product_rows=815531424 rows=1457264672 product_gflops=312.862 tile_window_blocks=55296 "
        "tile_vector_blocks=59904",
    ),
}


def table() -> list[str]:
    """Each step's parts now, their sum, and the prediction and measurement of the tree that an H200 ran."""
    blocks = blocks_of_file()
    lines = ["| step | parts | predicted | of the measured tree | measured |", "|---|---|---|---|---|"]
    for name, measured in MEASURED.items():
        now = parts(counts.of(name), blocks)
        shown = ", ".join(map(str, now))
        then = measured.predicted()
        lines.append(
            f"| {name.removeprefix('step, ')} | {shown} | {sum(one.seconds for one in now) * 1e3:.2f} ms | "
            f"{then * 1e3:.2f} ms ({then / measured.seconds - 1:+.0%}) | {measured.seconds * 1e3:.2f} ms |"
        )
    return lines
