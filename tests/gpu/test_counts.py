"""The counts of the GPU path are those of tests/models/gpu/counts.txt."""

import platform
from pathlib import Path

import pytest

from gpu import counts
from gpu.machine_code import NVCC, NVDISASM, Kernel, Multiprocessor, functions_of, kernels_of

nvcc = pytest.mark.skipif(NVCC is None, reason="there is no nvcc")


def expect_same(found: list[str], *kinds: str) -> None:
    different = counts.differences(found, counts.listed(*kinds))
    assert not different, "\n".join(different)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernels are compiled for the emulator on x86-64 only")
def test_graphs_steps_batches_and_launches_are_those_of_the_file() -> None:
    expect_same(counts.of_program(), *counts.BY_PROGRAM)


@pytest.mark.slow
@nvcc
@pytest.mark.parametrize("chip", counts.CHIPS)
def test_kernels_need_what_the_file_says(chip: str, tmp_path: Path) -> None:
    different = counts.differences(
        counts.of_kernels(chip, tmp_path), [line for line in counts.listed("kernel") if f" sm_{chip}," in line]
    )
    assert not different, "\n".join(different)


@pytest.mark.slow
@nvcc
@pytest.mark.parametrize("chip", counts.OTHER_CHIPS)
def test_the_kernels_that_spill_on_later_chips_are_the_files(chip: str, tmp_path: Path) -> None:
    found = counts.of_spills(chip, tmp_path)
    different = counts.differences(found, [line for line in counts.listed("spills") if f" sm_{chip}," in line])
    assert not different, "\n".join(different)


@pytest.mark.slow
@nvcc
@pytest.mark.skipif(NVDISASM is None, reason="there is no nvdisasm")
def test_the_instructions_of_attention_are_those_of_the_file(tmp_path: Path) -> None:
    expect_same(counts.of_paths(tmp_path), "path")


def test_no_bfloat16_kernel_spills_on_later_chips() -> None:
    kernels = ("BFloat16", "MultiplyRows")  # the second one has products in bfloat16 only
    assert [line for line in counts.listed("spills") if any(kernel in line for kernel in kernels)] == []


def test_a_line_that_is_not_the_files_is_shown_with_the_command_that_writes_it() -> None:
    file = ["graph, 1 rows: nodes=3: mm 3", "graph, 2 rows: nodes=3: mm 3", "step: nodes=1"]
    found = ["graph, 1 rows: nodes=4: mm 3, add 1", "graph, 2 rows: nodes=3: mm 3", "step: nodes=1"]
    assert counts.differences(file, file) == []
    assert counts.differences(found, file) == [
        "- graph, 1 rows: nodes=3: mm 3",
        "+ graph, 1 rows: nodes=4: mm 3, add 1",
        "If that is intended: tests/gpu/run count --write",
    ]
    assert counts.differences(file[:2], file)[0] == "- step: nodes=1"


def test_the_numbers_of_a_line_are_read() -> None:
    assert counts.values("step, 1 stream: nodes=124 product_gflops=0.076") == {"nodes": 124, "product_gflops": 0.076}
    assert counts.values("batch, vil, fp32: bytes=7 nodes=3: mm 2, add 1") == {"bytes": 7, "nodes": 3}


def test_registers_spills_and_shared_memory_are_read() -> None:
    report = (
        "ptxas info    : Compiling entry function 'void longshort::models::cuda::(anonymous namespace)::Norm<4>"
        "(longshort::models::cuda::NormRows)' for 'sm_80'\n"
        "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 0 barriers, 64 bytes smem, 456 bytes cmem[0]\n"
        "ptxas info    : Compiling entry function 'longshort::models::cuda::(anonymous namespace)::Keep"
        "(longshort::models::cuda::KeepRows)' for 'sm_80'\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 32 registers, used 0 barriers\n"
    )
    assert kernels_of(report) == {"Norm<4>": Kernel(40, 16, 64), "Keep": Kernel(32, 0, 0)}


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "blocks"),
    [
        (32, 0, 128, 16),  # 64 warps
        (168, 0, 128, 3),  # 21,504 registers a block
        (176, 0, 128, 2),  # 22,528 registers a block
        (32, 48 << 10, 128, 3),  # 49 KiB a block
        (32, 0, 32, 32),
    ],
)
def test_blocks_of_a_multiprocessor_share_its_registers_and_memory(
    registers: int, shared: int, threads: int, blocks: int
) -> None:
    assert Multiprocessor(shared=164 << 10).blocks_of(registers, shared, threads) == blocks


# A warp loads 3 words: one by one if fewer than 4 remain, else 4 at once. The division is usually short.
LISTING = """
.text._Z5Twicev:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/               @P0 BRA `(.L_x_0) ;
        /*0020*/                   MOV R2, 0x40 ;
        /*0030*/                   CALL.REL.NOINC `(.L_x_9) ;
.L_x_0:
        /*0040*/                   MUFU.RCP R1, R0 ;
.L_x_1:
        /*0050*/                   LDG.E R2, [R0] ;
        /*0060*/              @!P1 BRA `(.L_x_1) ;
.L_x_2:
        /*0070*/                   LDG.E.128 R4, [R0] ;
        /*0080*/                   HMMA.16816.F32.BF16 R8, R4, R2, R8 ;
        /*0090*/               @P2 BRA `(.L_x_2) ;
        /*00a0*/              @!P3 BRA `(.L_x_3) ;
        /*00b0*/                   HMMA.16816.F32.BF16 R8, R4, R2, R8 ;
        /*00c0*/                   BRA `(.L_x_4) ;
.L_x_3:
        /*00d0*/                   NOP ;
        /*00e0*/                   NOP ;
        /*00f0*/                   NOP ;
.L_x_4:
        /*0100*/                   EXIT ;
.L_x_9:
        /*0110*/                   RET.REL.NODEC R2 `(_Z5Twicev) ;
.L_x_10:
        /*0120*/                   BRA `(.L_x_10);
.text._Z5Otherv:
        /*0000*/                   EXIT ;
"""


def test_the_instructions_of_a_usual_way_are_counted() -> None:
    (name, code), (other, _) = functions_of(LISTING)
    assert (name, other) == ("_Z5Twicev", "_Z5Otherv")
    end = code.end()
    assert code.loops(0, end) == [(5, 6), (7, 9)]
    # S2R, BRA, MUFU; 3 x (LDG, BRA); 2 x (LDG, HMMA, BRA); BRA, HMMA, BRA; EXIT: not the call, not the three NOPs.
    assert code.longest_path(0, end, (3, 2)) == (3, 3 + 6 + 6 + 3 + 1)
    assert code.main_loop() == (7, 9)
    assert code.longest_path(7, 9, ()) == (1, 2)
    with pytest.raises(ValueError, match="say how often each of them runs"):
        code.longest_path(0, end, (1,))
