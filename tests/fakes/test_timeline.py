"""Timeline: order, questions, sources, threads."""

import threading

import pytest

from testing.cadence.events import Event
from testing.fakes import Timeline


@pytest.fixture
def timeline():
    timeline = Timeline()
    timeline.add("log", "loss", 0, 0.5)
    timeline.add("agent.train", "agent", 0)
    timeline.add("log", "hinge_loss", 1, 2.0)
    timeline.add("log", "loss", 1, 0.25)
    return timeline


def test_answers_questions(timeline):
    assert timeline.kinds() == ["log", "agent.train", "log", "log"]
    assert timeline.count("log") == 3
    assert timeline.count("log", "loss") == 2
    assert timeline.steps("log", "loss") == [0, 1]
    assert timeline.values("log", "loss") == [0.5, 0.25]
    assert [e.name for e in timeline.of("agent.train", "log", name="loss")] == [
        "loss",
        "loss",
    ]
    assert len(list(timeline)) == len(timeline) == 4


def test_refuses_an_unknown_kind(timeline):
    with pytest.raises(ValueError, match=r"^kind is 'train'\. Allowed: agent\.tra"):
        timeline.add("train")


def test_clears(timeline):
    timeline.clear()
    assert timeline.events == ()


def test_repr_shows_the_tail(timeline):
    assert repr(timeline) == (
        "<Timeline of 4 events: log loss@0 = 0.5, agent.train agent@0, "
        "log hinge_loss@1 = 2.0, log loss@1 = 0.25>"
    )
    timeline.add("log")
    timeline.add("log")
    timeline.add("log")
    assert repr(timeline).startswith("<Timeline of 7 events: ..., agent.train agent@0")


def test_takes_events_from_sources_in_place():
    timeline, news = Timeline(), []

    def source():
        found, news[:] = list(news), []
        return found

    timeline.attach(source)
    news.append(Event("summary", "a"))
    timeline.add("log")
    news.append(Event("summary", "b"))
    assert [e.name or e.kind for e in timeline] == ["a", "log", "b"]
    news.append(Event("summary", "c"))
    timeline.clear()
    assert len(timeline) == 0


def test_keeps_every_event_of_many_threads():
    timeline = Timeline()

    def work(name):
        for i in range(200):
            timeline.add("log", name, i)

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(timeline) == 1600
    for n in range(8):
        assert timeline.steps("log", str(n)) == list(range(200))
