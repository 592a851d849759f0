"""Whole lines in big blocks: nothing lost, nothing moved, nothing unbounded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.cadence.readers import UnreadableRun, blocks
from testing.cadence.readers.blocks import Input

LINES = st.lists(st.one_of(st.binary(max_size=12), st.binary(max_size=70)), max_size=9)


def split(path):
    with Input(str(path)) as source:
        return list(source.blocks())


@settings(max_examples=300)
@given(LINES, st.booleans(), st.integers(1, 40), st.integers(1, 40))
def test_lines_keep_their_number_and_their_start(
    tmp_path_factory, lines, ended, size, longest
):
    content = b"\n".join(line.replace(b"\n", b"") for line in lines)
    content += b"\n" if ended else b""
    path = tmp_path_factory.mktemp("run") / "run.log"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", size)
        patch.setattr(blocks, "LONGEST_LINE", longest)
        found = split(path)
        limit = 2 * (size + longest)
    assert all(block.endswith(b"\n") for block in found[:-1])
    assert all(len(block) <= limit for block in found)
    content = content.removeprefix(b"\xef\xbb\xbf")
    expected = content.split(b"\n")
    seen = b"".join(found).split(b"\n")
    assert len(seen) == len(expected)
    for one, other in zip(seen, expected, strict=True):
        assert one == other or (len(one) >= longest and other.startswith(one))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1 << 20])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_texts_cut_anywhere(tmp_path, monkeypatch, size, encoding):
    """In the mark, within a character, between a carriage return and its end."""
    monkeypatch.setattr(blocks, "SIZE", max(size, 3))  # a mark has three bytes
    path = tmp_path / "run.log"
    path.write_bytes("lösung\r\n損失 = 1\r\n\r\nend".encode(encoding))
    with Input(str(path)) as source:
        assert list(source.lines()) == [
            (1, "lösung", True),
            (2, "損失 = 1", True),
            (3, "", True),
            (4, "end", False),
        ]


def test_progress_tells_bytes_read_and_bytes_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "SIZE", 4)
    path = tmp_path / "run.log"
    path.write_bytes(b"123456789\n")
    seen = []
    with Input(str(path), lambda *call: seen.append(call)) as source:
        list(source.blocks())
    assert seen == [(4, 10), (8, 10), (10, 10), (10, 10)]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.log", "missing.log: No such file or directory."),
        ("/dev/null", "/dev/null: not a file."),
        (".", ".: not a file."),
        ("a\0b", r"'a\x00b': embedded null byte."),
    ],
)
def test_what_is_no_file(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableRun) as caught:
        Input(path)
    assert str(caught.value) == message
