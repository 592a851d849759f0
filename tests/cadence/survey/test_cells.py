"""Where a series has values, in bounded memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from testing.cadence.survey.cells import LIMIT, Cells


@given(
    st.lists(
        st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=300), max_size=20
    )
)
def test_every_step_lies_in_a_cell_and_no_cell_is_empty(batches):
    cells = Cells()
    for batch in batches:
        cells.add(np.array(batch, np.int64))
    steps = {step for batch in batches for step in batch}
    assert len(cells.starts) <= LIMIT
    assert set(cells.starts.tolist()) == {s // cells.width * cells.width for s in steps}


def test_even_steps_take_the_short_way():
    even, plain = Cells(), Cells()
    for start in range(0, 90_000, 9_000):
        steps = np.arange(start, start + 9_000, 3)
        even.add(steps, every=3)
        plain.add(steps)
    assert even.width == plain.width
    assert even.starts.tolist() == plain.starts.tolist()
