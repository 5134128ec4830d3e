"""The scenarios that both client libraries must pass (`sdk/scenarios.json`), with the blocking client and with asyncio."""

from __future__ import annotations

import asyncio
import base64
import io
import itertools
import json
import re
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import posthorn
from posthorn import webhooks
from posthorn._async.download import AsyncDownload
from posthorn._async.pages import AsyncPages
from posthorn._io import asynchronous, blocking
from posthorn._sync.download import Download
from posthorn._sync.pages import Pages
from scripted_server import ScriptedServer, holds

SCENARIOS = json.loads((Path(__file__).parents[2] / "scenarios.json").read_text("utf-8"))
KEY = re.compile(r"[A-Za-z0-9._:-]{8,200}")
ITERATED = ("events.watch", "inbox.messages.watch")
ERROR_MEMBERS = {"requestId": "request_id", "retryAfterSeconds": "retry_after", "isTemporary": "is_temporary"}


class BlockingClock(blocking.Io):
    """A clock that only waits advance."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def random(self) -> float:
        return 0.5

    def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds * 1000, 6))
        self.time += seconds


class AsyncClock(asynchronous.Io):
    """The same for asyncio."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def random(self) -> float:
        return 0.5

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds * 1000, 6))
        self.time += seconds


class Pieces:
    """A binary file object that returns a piece at each read."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._file = io.BytesIO(b"".join(pieces))

    def read(self) -> bytes:
        return self._file.read()


def snake_case(name: str) -> str:
    return "from_" if name == "from" else re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def argument(name: str, value: Any) -> Any:
    """Returns the value of a field as Python takes it."""
    if name == "match":
        return lambda message: holds(message, value)
    if isinstance(value, list):
        return [argument("", one) for one in value]
    if not isinstance(value, dict):
        return value
    if "$bytes" in value:
        return base64.b64decode(value["$bytes"])
    if "$stream" in value:
        return Pieces([base64.b64decode(piece) for piece in value["$stream"]])
    return {member: argument(member, one) for member, one in value.items()}


def arguments(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns keyword arguments. Times are in seconds in Python."""
    return {
        snake_case(name.removesuffix("Ms")): value / 1000 if name.endswith("Ms") else argument(name, value)
        for name, value in fields.items()
    }


def method_of(client: Any, call: dict[str, Any]) -> Callable[..., Any]:
    first, *names = call["method"].split(".")
    found = getattr(client, snake_case(first))
    if "on" in call:
        found = found(call["on"])
    for name in names:
        found = getattr(found, snake_case(name))
    return found  # type: ignore[no-any-return]


class Outcome:
    """What a scenario came to."""

    def __init__(self) -> None:
        self.value: Any = None
        self.values: list[Any] = []
        self.error: posthorn.PosthornError | None = None

    def keep_download(self, download: Download | AsyncDownload, content: bytes) -> None:
        self.value = {
            "bytes": base64.b64encode(content).decode(),
            "sizeBytes": download.size,
            "filename": download.filename,
        }


def run_blocking(client: posthorn.Posthorn, call: dict[str, Any]) -> Outcome:
    outcome = Outcome()
    given = {**call.get("fields", {}), **call.get("options", {})}
    try:
        result = method_of(client, call)(*call.get("ids", []), **arguments(given))
        if isinstance(result, Pages) and call.get("take") == "first":
            outcome.value = result.first()
        elif isinstance(result, Pages) or call["method"] in ITERATED:
            for value in itertools.islice(result, call.get("take")):
                outcome.values.append(value)
        elif isinstance(result, Download):
            with result:
                outcome.keep_download(result, result.read())
        else:
            outcome.value = result
    except posthorn.PosthornError as error:
        outcome.error = error
    return outcome


async def run_async(client: posthorn.AsyncPosthorn, call: dict[str, Any]) -> Outcome:
    outcome = Outcome()
    given = {**call.get("fields", {}), **call.get("options", {})}
    try:
        result = method_of(client, call)(*call.get("ids", []), **arguments(given))
        if isinstance(result, AsyncPages) and call.get("take") == "first":
            outcome.value = await result.first()
        elif isinstance(result, AsyncPages) or call["method"] in ITERATED:
            async for value in result:
                outcome.values.append(value)
                if len(outcome.values) == call.get("take"):
                    break
        else:
            answer = await result
            if isinstance(answer, AsyncDownload):
                async with answer:
                    outcome.keep_download(answer, await answer.read())
            else:
                outcome.value = answer
    except posthorn.PosthornError as error:
        outcome.error = error
    return outcome


class ScenarioTest(unittest.TestCase):
    maxDiff = None

    def check(self, want: dict[str, Any], outcome: Outcome) -> None:
        if outcome.error is not None and "error" not in want:
            raise outcome.error
        if "error" in want:
            self.check_error(want["error"], outcome.error)
        if "value" in want:
            self.assertTrue(holds(outcome.value, want["value"]), f"{outcome.value} lacks {want['value']}")
        if "values" in want:
            member = want.get("of", "id")
            self.assertEqual([value[member] for value in outcome.values], want["values"])
        if "items" in want:
            wanted = [f"item-{number}" for number in range(1, want["items"] + 1)]
            self.assertEqual([value["id"] for value in outcome.values], wanted)

    def check_error(self, want: dict[str, Any], error: posthorn.PosthornError | None) -> None:
        if error is None:
            self.fail(f"{want} was wanted, and there was no error")
        self.assertEqual(type(error).__name__, want["class"])
        for member in want.keys() - {"class"}:
            self.assertEqual(getattr(error, ERROR_MEMBERS.get(member, member)), want[member], member)

    def check_server(self, want: dict[str, Any], server: ScriptedServer, waits: list[float]) -> None:
        self.assertEqual(server.faults, [])
        self.assertEqual(waits, want.get("waits", []))
        if want.get("sameKey"):
            keys = {one.headers.get("idempotency-key", "") for one in server.requests if one.method == "POST"}
            self.assertEqual(len(keys), 1)
            self.assertRegex(keys.pop(), KEY)

    def play_blocking(self, scenario: dict[str, Any]) -> None:
        server, clock = ScriptedServer(scenario["server"]), BlockingClock()
        try:
            options = arguments(scenario.get("client", {}))
            with posthorn.Posthorn(server.base_url, "ph_test", _io=clock, **options) as client:
                outcome = run_blocking(client, scenario["call"])
        finally:
            server.close()
        self.check(scenario["want"], outcome)
        self.check_server(scenario["want"], server, clock.waits)

    def play_async(self, scenario: dict[str, Any]) -> None:
        server, clock = ScriptedServer(scenario["server"]), AsyncClock()

        async def play() -> Outcome:
            options = arguments(scenario.get("client", {}))
            async with posthorn.AsyncPosthorn(server.base_url, "ph_test", _io=clock, **options) as client:
                return await run_async(client, scenario["call"])

        try:
            outcome = asyncio.run(play())
        finally:
            server.close()
        self.check(scenario["want"], outcome)
        self.check_server(scenario["want"], server, clock.waits)

    def play_webhook(self, scenario: dict[str, Any]) -> None:
        outcome = Outcome()
        for body in (scenario["body"], scenario["body"].encode()):
            try:
                outcome.value = webhooks._verify(
                    scenario["secret"], body, scenario["headers"], scenario["nowSeconds"]
                )
            except posthorn.PosthornError as error:
                outcome.error = error
            self.check(scenario["want"], outcome)


def add_tests() -> None:
    def add(name: str, play: Callable[[Any, dict[str, Any]], None], scenario: dict[str, Any]) -> None:
        setattr(ScenarioTest, f"test {name}: {scenario['name']}", lambda self: play(self, scenario))

    for scenario in SCENARIOS["scenarios"]:
        add("blocking", ScenarioTest.play_blocking, scenario)
        add("asyncio", ScenarioTest.play_async, scenario)
    for scenario in SCENARIOS["webhooks"]:
        add("webhook", ScenarioTest.play_webhook, scenario)


add_tests()

if __name__ == "__main__":
    unittest.main()
