"""The prediction of steps' times."""

import pytest

from bench.gpu import predict
from bench.gpu.predict import MEASURED, Blocks, part, parts

STEP = {
    "nodes": 10, "products": 4, "attention": 2, "upload": 25e3, "download": 0, "weights": 3e6, "product_rows": 3e6,
    "cache": 6e6, "partial": 0, "rows": 12e6, "product_gflops": 1.336, "single_blocks": 0,
}  # fmt: skip
OVERHEAD = predict.NODE + predict.LATENCY


def test_a_part_takes_its_nodes_and_its_longest_work() -> None:
    one = part("some", 3, {"bandwidth": 4e-6, "instructions": 5e-6})
    assert (one.name, one.bound) == ("some", "instructions")
    assert one.seconds == pytest.approx(3 * OVERHEAD + 5e-6)


def test_a_step_is_the_sum_of_its_parts() -> None:
    products, attention, rows, host = parts(STEP, {"single_blocks": Blocks(800, 8)})
    assert products.seconds == pytest.approx(4 * OVERHEAD + 2e-6)  # 6 MB, and 1.3 GFLOP: 2 us each
    assert attention.seconds == pytest.approx(2 * OVERHEAD + 2e-6)
    assert rows.seconds == pytest.approx(4 * OVERHEAD + 4e-6)
    assert host.seconds == pytest.approx(16e-6)


def test_blocks_that_are_few_issue_less() -> None:
    cycles = 4 * 600 / predict.MULTIPROCESSORS / predict.CLOCK
    assert Blocks(600, 8).seconds(1) == pytest.approx(cycles / 2.5)
    # 12 warps, each an instruction in 6 cycles.
    assert Blocks(600, 3).seconds(1) == pytest.approx(cycles / 2)


@pytest.mark.parametrize("name", MEASURED)
def test_what_was_measured_is_predicted_to_15_percent(name: str) -> None:
    assert MEASURED[name].predicted() == pytest.approx(MEASURED[name].seconds, rel=0.15)


def test_the_table_has_each_measured_step() -> None:
    assert [line.split(" | ")[0].removeprefix("| ") for line in predict.table()[2:]] == [
        "1 stream", "256 streams", "a prompt's 4096 tokens",
    ]  # fmt: skip
